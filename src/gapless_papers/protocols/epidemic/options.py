"""The options of the `epidemic` protocol: every parameter of the paper, and a bound on all state."""

from typing import Literal, TypeAlias

import msgspec

__all__ = ["CachedEvents", "Discard", "EpidemicOptions", "Recovery"]

Recovery: TypeAlias = Literal["none", "push", "subscriber-pull", "publisher-pull", "combined-pull"]
CachedEvents: TypeAlias = Literal["all", "own"]
Discard: TypeAlias = Literal["oldest", "foreign-first", "random"]


class EpidemicOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set under `[protocol.options]` in a scenario, or with `--option` on the command line."""

    recovery: Recovery = "combined-pull"
    """The method of recovery. The default causes no traffic while nothing is lost."""

    gossip_ms: float = 30.0
    """The time between two gossip rounds of a broker. Lower values find losses sooner, higher ones save messages."""

    gossip_max_ms: float | None = None
    """If set, the interval adapts, as the paper's discussion suggests: a round without result doubles it, up to this
    value. As soon as an event is requested, missed or recovered here it returns to `gossip_ms`."""

    at_once: bool = False
    """With pull: whether to start an additional round as soon as a loss is detected (footnote 6). This saves an
    interval, but several losses no longer share a round."""

    fanout: int = 2
    """The number of neighbours, of those with a subscriber of the pattern behind them, that get a gossip message at
    each hop."""

    forward_probability: float = 0.9
    """The probability that a gossip message is forwarded: at every broker for push, at subscribers of its pattern
    for pull."""

    publisher_probability: float = 0.5
    """With `combined-pull`: the share of the rounds that go towards the publisher; the others go towards
    subscribers."""

    buffer: int = 1500
    """The number of events that a broker caches for others. An event that was evicted can no longer be recovered."""

    cached: CachedEvents = "all"
    """Whether brokers on the path also cache an event, or only its source and its subscribers."""

    discard: Discard = "oldest"
    """The event that a full cache evicts: the oldest; the oldest for which the broker is neither source nor subscriber,
    while there is one; or a random one, so that an event does not leave all caches at the same time."""

    lost: int = 1000
    """The number of missing events that a broker tries to recover at a time; the oldest are given up for newer ones."""

    give_up_ms: float = 10_000.0
    """How long to try to recover a missing event: caches evict it sooner or later."""

    remembered: int = 20_000
    """The number of received events that a node remembers. When one is forgotten, it and all earlier ones of its
    publisher count as received: they are dropped rather than delivered twice."""

    resend_ms: float = 100.0
    """When to repeat subscriptions that a neighbour has not confirmed; at least about a round trip."""

    hold_ms: float = 500.0
    """How long other brokers still know the subscriptions behind a removed link, so that these need not be withdrawn
    and sent again if the new link is up in time."""

    seed: int = 0
    """The seed of the brokers' random draws: pattern, neighbour, and forwarding."""

    def __post_init__(self) -> None:
        for name in ("forward_probability", "publisher_probability"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(
                    f"{name} is {getattr(self, name):g}, which is not a probability; choose a number from 0 to 1"
                )
        for name in ("gossip_ms", "give_up_ms", "resend_ms"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} is {getattr(self, name):g}, but must be more than 0")
        for name in ("fanout", "buffer", "lost", "remembered"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, but must be at least 1")
        if self.gossip_max_ms is not None and self.gossip_max_ms < self.gossip_ms:
            raise ValueError(
                f"gossip_max_ms is {self.gossip_max_ms:g}, less than gossip_ms, which is {self.gossip_ms:g}"
            )
        if self.hold_ms < 0:
            raise ValueError(f"hold_ms is {self.hold_ms:g}, but must not be negative")

    @property
    def pulls(self) -> bool:
        """Return whether losses are detected and pulled: events then carry a number for each pattern."""
        return self.recovery.endswith("pull")

    @property
    def follows_routes(self) -> bool:
        """Return whether losses are recovered from the publisher: events then record their paths."""
        return self.recovery in ("publisher-pull", "combined-pull")
