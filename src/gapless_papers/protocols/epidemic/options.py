"""The options of the `epidemic` protocol: all that the paper says can be tuned, and a bound on everything kept."""

from typing import Literal, TypeAlias

import msgspec

__all__ = ["CachedEvents", "Discard", "EpidemicOptions", "Recovery"]

Recovery: TypeAlias = Literal["none", "push", "subscriber-pull", "publisher-pull", "combined-pull"]
CachedEvents: TypeAlias = Literal["all", "own"]
Discard: TypeAlias = Literal["oldest", "foreign-first", "random"]


class EpidemicOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Set under `[protocol.options]` in a scenario, or with `--option` on the command line."""

    recovery: Recovery = "combined-pull"
    """How lost events are looked for. The default needs no traffic while nothing is lost."""

    gossip_ms: float = 30.0
    """Between two gossip rounds of a broker. Less finds losses sooner, more saves messages."""

    gossip_max_ms: float | None = None
    """If given, the interval adapts, as the paper's discussion suggests: a round that brought nothing doubles it, up to
    this; as soon as something is asked for, missed or recovered here it is `gossip_ms` again."""

    at_once: bool = False
    """With pull: whether a round starts as soon as a loss is noticed (footnote 6), besides those of every interval. It
    saves an interval, and several losses no longer share a round."""

    fanout: int = 2
    """To how many neighbours, of those behind which someone wants the pattern, a gossip message goes at each hop."""

    forward_probability: float = 0.9
    """Whether a gossip message goes on: at every broker for push, at a subscriber of its pattern for pull."""

    publisher_probability: float = 0.5
    """With `combined-pull`: how many of the rounds look towards the publisher; the others towards subscribers."""

    buffer: int = 1500
    """Events that a broker caches for others. What is cached too shortly cannot be recovered any more."""

    cached: CachedEvents = "all"
    """Whether brokers on the way cache an event too, or only its source and its subscribers."""

    discard: Discard = "oldest"
    """What leaves a full cache: the oldest, the oldest that is not the broker's own (as source or subscriber) while
    there is one, or one drawn at random, so that an event does not leave all caches at the same time."""

    lost: int = 1000
    """Missing events that a broker looks for at a time; the oldest are given up for newer ones."""

    give_up_ms: float = 10_000.0
    """How long a missing event is looked for: nobody caches it for ever."""

    remembered: int = 20_000
    """Events that a node knows to have had. When one is forgotten, it and all earlier ones of its publisher count as
    had: they are not delivered any more, rather than twice."""

    resend_ms: float = 100.0
    """Subscriptions that a neighbour does not confirm are sent again after so long; about a round trip or more."""

    hold_ms: float = 500.0
    """How long what was wanted behind a link that went stays known elsewhere, so that it need not be unlearnt and
    learnt again if the new link comes in time."""

    seed: int = 0
    """Another seed, other draws of the brokers: which pattern, which neighbour, forward or not."""

    def __post_init__(self) -> None:
        for name in ("forward_probability", "publisher_probability"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} is {getattr(self, name):g}, which is no probability; choose from 0 to 1")
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
            raise ValueError(f"hold_ms is {self.hold_ms:g}, which is negative; 0 holds nothing")

    @property
    def pulls(self) -> bool:
        """Whether losses are detected and pulled: events then carry a number for each pattern."""
        return self.recovery.endswith("pull")

    @property
    def follows_routes(self) -> bool:
        """Whether losses are looked for towards the publisher: events then record their ways."""
        return self.recovery in ("publisher-pull", "combined-pull")
