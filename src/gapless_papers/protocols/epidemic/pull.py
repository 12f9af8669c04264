"""Pull with negative digests, towards subscribers or towards the publisher (paper, section 4.2, Figure 3).

Rounds take place only while events are missing. *Subscriber-based*: draw a pattern with missing events, and send their
numbers towards other subscribers of the pattern, which also receive these events. *Publisher-based*: draw a source with
missing events, and send their numbers back along the route of its latest event. A broker on the path that caches some
of them, under any pattern, sends them to the initiator and forwards the rest of the digest.
"""

from typing import assert_never

from gapless.protocols.parts.forgetting import forget_oldest
from gapless_papers.protocols.epidemic.gossip import BrokerView
from gapless_papers.protocols.epidemic.losses import Losses
from gapless_papers.protocols.epidemic.messages import PublisherPull, Pulling, SubscriberPull

__all__ = ["ROUTES_MAX", "Pull"]

ROUTES_MAX = 10_000
"""The number of sources whose latest route is known; the one that was silent for longest is forgotten."""


class Pull:
    """The gossip of one broker; `publisher_share` of its rounds go towards publishers."""

    def __init__(self, around: BrokerView, losses: Losses, publisher_share: float) -> None:
        self._around = around
        self._losses = losses
        self._publisher_share = publisher_share
        self._routes: dict[str, tuple[str, ...]] = {}

    def receive(self, peer: str, message: Pulling) -> None:
        """Process gossip of another broker."""
        match message:
            case SubscriberPull():
                self._on_subscriber_pull(peer, message)
            case PublisherPull():
                self._on_publisher_pull(message)
            case _:
                assert_never(message)

    def note_route(self, source: str, route: tuple[str, ...]) -> None:
        """Record that the latest event of the source came through these brokers, the source first."""
        self._routes.pop(source, None)
        self._routes[source] = route
        forget_oldest(self._routes, ROUTES_MAX)

    @property
    def routes(self) -> int:
        """Return how many routes are known."""
        return len(self._routes)

    def start_round(self) -> None:
        """Send a digest of missing events in a random direction; if that leads nowhere, in the other."""
        directions = [self._pull_from_publisher, self._pull_from_subscribers]
        if not self._around.dice.happens(self._publisher_share):
            directions.reverse()
        if not directions[0]() and 0 < self._publisher_share < 1:
            directions[1]()

    # ---- towards subscribers

    def _pull_from_subscribers(self) -> bool:
        around = self._around
        patterns = [pattern for pattern in self._losses.patterns() if around.table.peers(pattern)]
        if not patterns:
            return False
        pattern = around.dice.choice(patterns)
        around.gossip(pattern, SubscriberPull(around.name, pattern, self._losses.of_pattern(pattern)))
        return True

    def _on_subscriber_pull(self, peer: str, pull: SubscriberPull) -> None:
        around, pattern = self._around, pull.pattern
        left = {}
        for source, numbers in pull.missing.items():
            still = self._serve(pull.initiator, source, pattern, numbers)
            if still:
                left[source] = still
        goes_on = not around.table.has_clients(pattern) or around.dice.happens(around.options.forward_probability)
        if left and goes_on:
            around.gossip(pattern, SubscriberPull(pull.initiator, pattern, left), but=peer)

    # ---- towards the publisher

    def _pull_from_publisher(self) -> bool:
        around = self._around
        sources = [source for source in self._losses.sources() if source in self._routes]
        if not sources:
            return False
        source = around.dice.choice(sources)
        *route, first = self._routes[source]
        around.send_gossip(first, PublisherPull(around.name, source, self._losses.of_source(source), tuple(route)))
        return True

    def _on_publisher_pull(self, pull: PublisherPull) -> None:
        left = {}
        for pattern, numbers in pull.missing.items():
            still = self._serve(pull.initiator, pull.source, pattern, numbers)
            if still:
                left[pattern] = still
        if left and pull.route:
            *route, following = pull.route
            self._around.send_gossip(following, PublisherPull(pull.initiator, pull.source, left, tuple(route)))

    # ---- both

    def _serve(self, initiator: str, source: str, pattern: str, numbers: tuple[int, ...]) -> tuple[int, ...]:
        """Send the initiator the events cached here; return those that are not."""
        found = self._around.cache.find_numbers(source, pattern, numbers)
        if not found:
            return numbers
        for stamped in found:
            self._around.retransmit(initiator, stamped)
        served = {stamped.numbers[pattern] for stamped in found}
        return tuple(number for number in numbers if number not in served)
