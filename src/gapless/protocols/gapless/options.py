"""The options of the `gapless` protocol, each with the reason for its default."""

from typing import Literal

import msgspec

__all__ = ["REPAIRS", "GaplessOptions"]

REPAIRS = frozenset({
    "late-publishers", "pivots", "hand-over", "make-before-break", "held-start", "synced", "majority", "holders",
    "named-position", "tombstones", "parting",
})  # fmt: skip
"""What tests can switch off to see that the checkers notice. Without `pivots`, a covered subscription is sent on as in
the paper's Algorithm 2, and gets the other publishers' cuts from them, not from what covers it. Without `held-start`, a
subscription is ready before f + 1 brokers hold its cut. Without `synced`, brokers do not wait for their disks. Where
`partition` is `wait`: without `majority`, two brokers exclude a third all the same; without `holders`, those who are
left go on without what the excluded had confirmed. Without `named-position`, who opens a durable subscription goes on
with what is published. Without `tombstones`, what more than f brokers took along is told to nobody; without `parting`,
nobody is told that two halves have gone on without each other."""


class GaplessOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set under `[protocol.options]` in a scenario, or with `--option` on the command line."""

    coverage: bool = True
    """Let a covering subscription represent those it covers. Off only to see what it saves."""

    wave_ms: float = 200.0
    """How often the root asks what has reached everyone. Longer keeps events longer, shorter costs two messages a
    link and round; when nothing is kept, the pace falls to a sixteenth by itself."""

    window: int = 10_000
    """How many of its clients' publications a broker lets out before they have reached everyone; further ones
    wait. Each KiB of them counts as one more. It bounds what any broker has to keep. Clients that lie behind with
    what they were delivered, so that all others wait for them, may use four times as much."""

    client_window: int = 8_000
    """How many publications a client keeps that are not safe yet; further calls are refused. Over TCP also no more
    bytes than half of a client's frame."""

    delivery_window: int = 4_096
    """How many deliveries a broker sends ahead of what the application has taken; further ones wait at the broker."""

    retry_ms: float = 100.0
    """How long a client waits for an answer before it asks the next broker; twice as long each time that none came."""

    patience_ms: float = 1_000.0
    """How long a broker suspects another that nobody else suspects before it acts on it alone."""

    return_ms: float = 5_000.0
    """How long a broker that returns with a disk waits for any of those around it: after a blackout some are later than
    others. If it misses more than f of them, it waits for as long as that is so."""

    partition: Literal["wait", "go on"] = "wait"
    """What brokers do when they no longer hear others and cannot tell whether these have crashed or are cut off. `wait`
    loses no confirmed event: a broker is excluded only if a majority of those around it, itself included, have lost
    it, and if somebody has what it had confirmed. Until then publications that need it wait. A network starts only if
    every broker has 2f others within f + 1 links, so that f failures leave a majority. `go on` takes brokers that are
    not heard for crashed. It survives f failures in any tree, but if the network is cut, both sides may go on, and
    what one of them confirmed meanwhile is lost; each subscription gets the positions between which that was."""

    session_s: float = 60.0
    """How long a session waits for its client; then its subscriptions end where the client stopped. If it is inherited
    again before the client came, it waits half as long each time."""

    lag_ms: float = 2_000.0
    """How long everyone waits for a client that has not taken what it was delivered, or is away. Then nobody does any
    more, and it is served out of history."""

    history_bytes: int = 32 * 1024 * 1024
    """How much a broker keeps of what was admitted, to be read again, in memory, in bytes: of its own clients' events
    and of those that it is a backup for. Beyond that the oldest is dropped; with a disk, from the memory alone."""

    history_disk_bytes: int = 1024 * 1024 * 1024
    """The same, on its disk, if it has one."""

    history_s: float = 0.0
    """How old history may become, in seconds, before it is dropped, wherever it is; 0 if it may become any age."""

    history_keeps_names: bool = False
    """Whether what a durable subscription has not confirmed is kept beyond these bounds: of any age, and up to four
    times as many bytes. Off, because one name that nobody opens any more would fill the disks of all."""

    journal_bytes: int = 1024 * 1024
    """How much a broker appends to a journal on its disk before it writes the journal anew: without what is done."""

    work_per_turn: int = 400
    """How much of a hand-over a broker does before it looks after its connections again. In units of some hundredths of
    a millisecond: more takes peers longer to be heard, less takes the hand-over longer."""

    rest_ms: float = 0.0
    """For tests only: how long a broker rests between two such turns, while what it is sent has to wait."""

    switched_off: tuple[str, ...] = ()
    """For tests only: any of `late-publishers`, `pivots`, `hand-over`, `make-before-break`, `held-start`, `synced`,
    `majority`, `holders`, `named-position`, `tombstones`, `parting`."""

    def __post_init__(self) -> None:
        sizes = ("history_bytes", "history_disk_bytes", "journal_bytes")
        for name in ("window", "client_window", "delivery_window", "work_per_turn", *sizes):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        for name in ("wave_ms", "retry_ms", "patience_ms", "return_ms", "session_s", "lag_ms"):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be more than 0")
        for name in ("rest_ms", "history_s"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0")
        unknown = [name for name in self.switched_off if name not in REPAIRS]
        if unknown:
            raise ValueError(f"there is no repair {unknown[0]!r} to switch off; it has: {', '.join(sorted(REPAIRS))}")
