"""The bounds and timeouts of the runtime.

A network's file can set them under `[runtime]`. Brokers send them to clients in the welcome, so
that both ends of a connection agree.
"""

from math import inf

import msgspec

__all__ = ["RuntimeSettings"]

KIB = 1024
MIB = 1024 * KIB

CLIENT_FRAME, CLIENT_FRAME_EVENTS = 16 * MIB, 64


class RuntimeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The table `[runtime]` of the network's file."""

    heartbeat_ms: float = 200.0
    """The time without outgoing data after which a ping is sent. Five intervals fit into a suspicion, so that one late
    ping does no harm."""

    suspect_ms: float = 1_000.0
    """A peer that was silent for this long is suspected. A connected peer gets longer if it was
    slow before, or if its kernel still acknowledges data (`silence`). A lower value detects
    failures earlier and errs more often.
    """

    hello_ms: float = 5_000.0
    """Timeout of the greeting; a connection without one is closed."""

    redial_min_ms: float = 25.0
    """Initial delay before a lost connection is dialled again; each failure doubles it."""

    redial_max_ms: float = 500.0
    """Maximum delay: shorter than a suspicion, so that a returned peer is noticed in time."""

    join_ms: float = 5_000.0
    """How long a starting broker asks whether it is remembered, if some brokers answer but not all do."""

    drain_ms: float = 3_000.0
    """How long a stopping broker continues to forward its messages."""

    frame_max: int = 256 * MIB
    """The largest frame in bytes between brokers. For clients see `client_frame_max`; before the greeting is accepted,
    the limit is 64 KiB. It is this large because a broker hands over its state in one message. Memory is allocated for
    the bytes that arrive, not for the announced length."""

    event_max: int = 64 * KIB
    """The largest event in bytes, attributes and payload together. Brokers and clients bound the
    number of events, so this turns their bounds into bytes.
    """

    batch_max: int = 512
    """The maximum number of messages in one frame. More would add latency and gain little: at 256 the cost of a frame
    is not measurable."""

    write_max: int = 1 * MIB
    """The maximum number of bytes that a connection has accepted and not sent yet; beyond it, messages wait in the
    peer's queue."""

    queue_pause: int = 20_000
    """The length of a peer's queue at which the broker stops reading from clients, until half of the queue is sent."""

    queue_max: int = 200_000
    """The length of a peer's queue at which its connection is closed; protocols then repeat the messages that matter.
    It is reached only if the peer is paused and peers other than clients continue to send."""

    clients_max: int = 10_000
    """The maximum number of clients connected to one broker; further ones are refused with a reason."""

    max_clock_skew_ms: float = 500.0
    """By how much the clock of a broker's host may differ from those of most brokers that it
    reaches. A larger difference is reported; a broker with ten times as much does not join. NTP
    keeps hosts within a few milliseconds.
    """

    delay_ms: float = 0.0
    """For development: an artificial delay of all traffic between brokers."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not 0 <= value < inf or (value == 0 and name != "delay_ms"):
                raise ValueError(f"{name} must be positive, but is {value}")
        if self.suspect_ms < 2 * self.heartbeat_ms:
            raise ValueError(
                f"suspect_ms ({self.suspect_ms:g}) must be at least twice heartbeat_ms ({self.heartbeat_ms:g}), "
                "or peers that are alive are suspected"
            )
        if self.frame_max < 2_048 * self.event_max:
            raise ValueError(
                f"frame_max ({self.frame_max}) must hold 2048 events of event_max ({self.event_max}), "
                "or a client that reconnects cannot report its state"
            )

    @property
    def client_frame_max(self) -> int:
        """The largest frame in bytes that a broker accepts from a client: 16 MiB, or 64 of the largest events. A client
        that reconnects sends all its unconfirmed publications in one message. So at most half of this is in flight at a
        time.
        """
        return min(self.frame_max // 2, max(CLIENT_FRAME, CLIENT_FRAME_EVENTS * self.event_max))
