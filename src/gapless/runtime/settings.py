"""Every bound and every patience of the runtime, in one place.

A network's file may set them under `[runtime]`; brokers pass them on to clients with their welcome, so that both ends
of a connection agree.
"""

from math import inf

import msgspec

__all__ = ["RuntimeSettings"]

KIB = 1024
MIB = 1024 * KIB

CLIENT_FRAME, CLIENT_FRAME_EVENTS = 16 * MIB, 64


class RuntimeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set under `[runtime]` in the network's file."""

    heartbeat_ms: float = 200.0
    """A connection on which nothing was sent for that long gets a ping. Five of them fit into a suspicion, so that one
    that comes late does no harm."""

    suspect_ms: float = 1_000.0
    """A peer that was not heard of for that long is suspected; a connected one gets longer if it was slow before, or if
    its kernel still acknowledges what is sent (`silence`). Shorter finds the dead sooner, and errs more often."""

    hello_ms: float = 5_000.0
    """How long a connection may take to say who it is; whoever says nothing is sent away."""

    redial_min_ms: float = 25.0
    """How soon a lost connection is dialled again; each failure doubles it."""

    redial_max_ms: float = 500.0
    """Where the doubling ends: shorter than a suspicion, so that who is back is noticed in time."""

    join_ms: float = 5_000.0
    """How long a broker that starts asks around whether it is remembered, if somebody answers but not all do."""

    drain_ms: float = 3_000.0
    """How long a broker that is told to stop goes on passing on what it has."""

    frame_max: int = 256 * MIB
    """The largest frame in bytes; from a client, `client_frame_max`; before the greeting is accepted, 64 KiB. It is
    this large because a broker hands over all it keeps in one message. Room is made for what arrives and not for what
    is announced."""

    event_max: int = 64 * KIB
    """The largest event in bytes, attributes and payload together. Brokers and clients keep events by number, so this
    is what turns their bounds into bytes."""

    batch_max: int = 512
    """Messages in one frame. More costs latency and gains little: at 256 the cost of a frame is lost in the noise."""

    write_max: int = 1 * MIB
    """Bytes handed to a connection and not sent yet; above that, messages wait in the queue of their peer."""

    queue_pause: int = 20_000
    """Messages that wait for one peer: from there on, no client is read until half of them have left."""

    queue_max: int = 200_000
    """Messages that wait for one peer: from there on the connection is given up, which protocols survive by sending
    again what matters. Only reached if the peer stands still and others than clients go on sending."""

    clients_max: int = 10_000
    """Clients connected to one broker; further ones are refused, with a word."""

    max_clock_skew_ms: float = 500.0
    """By how much the clock of a broker's host may differ from those of most brokers that it hears. More is reported; a
    broker with ten times as much does not join. NTP keeps hosts within some milliseconds."""

    delay_ms: float = 0.0
    """For development: how much later what brokers send each other leaves, as if they were that far apart."""

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not 0 <= value < inf or (value == 0 and name != "delay_ms"):
                raise ValueError(f"{name} must be positive, but is {value}")
        if self.suspect_ms < 2 * self.heartbeat_ms:
            raise ValueError(
                f"suspect_ms ({self.suspect_ms:g}) must be at least twice heartbeat_ms ({self.heartbeat_ms:g}), "
                "or the living are suspected"
            )
        if self.frame_max < 2_048 * self.event_max:
            raise ValueError(
                f"frame_max ({self.frame_max}) must hold 2048 events of event_max ({self.event_max}), "
                "or a client that comes back cannot tell what it has"
            )

    @property
    def client_frame_max(self) -> int:
        """The largest frame that a broker takes from a client: 16 MiB, or 64 of the largest events. A client that comes
        back tells what it published and what is not safe yet in one message. So no more than half of this is on its way
        at a time."""
        return min(self.frame_max // 2, max(CLIENT_FRAME, CLIENT_FRAME_EVENTS * self.event_max))
