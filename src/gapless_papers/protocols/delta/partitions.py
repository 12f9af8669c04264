"""Partitions: unreachable nodes, their detectors, and the brokers that must know of them (section III).

A broker that has to bypass others is the *detector* of a partition for each of them: an identifier with the path to it.
If it has an active session to a broker behind, the partition is an *island*, else a *barrier*. Detectors notify all
brokers at distance up to 2δ, which keep it in their partition tables.

If a subscription cannot be propagated to a node, its confirmation is tagged with the partition. A publication that
comes out of a partition is tagged by the first broker that knows of it, and not delivered to a subscription with the
same tag. When the partition has recovered, the detector notifies the same brokers, and a notifier follows the
publications to the subscribers whose subscriptions carry the tag.

A broker that reaches a node past the detector ends the partition for itself and others, though not for the detector.
"""

from collections.abc import Callable, Iterable

from gapless.protocol import BrokerPlace
from gapless_papers.protocols.delta.messages import NO_TAGS, Number, Partition, PartitionOver, Partitions, Tags, Vector
from gapless_papers.protocols.delta.neighbourhood import Neighbourhood
from gapless_papers.protocols.delta.sessions import Session, Sessions

__all__ = ["PartitionTable", "ended_by"]


class PartitionTable:
    """The partitions that one broker knows of."""

    def __init__(
        self, place: BrokerPlace, neighbourhood: Neighbourhood, sessions: Sessions, send: Callable[[str, object], None]
    ) -> None:
        self._name = place.name
        self._reach = 2 * place.f
        self._neighbourhood = neighbourhood
        self._sessions = sessions
        self._send = send
        self._incarnation = place.incarnation
        self._count = 0
        self._own: dict[tuple[str, ...], Partition] = {}
        self._known: dict[Partition, int] = {}
        """The known partitions, with the number of hops over which each is still to be propagated."""
        self._by_node: dict[str, dict[Partition, None]] = {}
        self._over: dict[tuple[str, str], Number] = {}
        """By detector and node, the number up to which partitions are over."""

    def __len__(self) -> int:
        return len(self._known)

    @property
    def barriers(self) -> int:
        """Return how many of the broker's own partitions are barriers."""
        active = [self._neighbourhood.paths[peer] for peer in self._neighbourhood.active]
        return sum(all(path[: len(nodes)] != nodes for path in active) for nodes in self._own)

    # ---- detection and propagation

    def detect(self) -> None:
        """Open a partition for each broker that is bypassed now and was not before."""
        found = []
        for nodes in self._neighbourhood.failed:
            if nodes not in self._own:
                self._count += 1
                partition = self._own[nodes] = Partition(self._name, (self._incarnation, self._count), nodes)
                self._enter(partition, self._reach)
                found.append(partition)
        if found:
            self._send_all(tuple(found), self._reach, None)

    @property
    def own(self) -> tuple[Partition, ...]:
        """Return the current partitions detected here."""
        return tuple(self._own.values())

    def introduce(self, session: Session) -> None:
        """Send the peer of a new session the partitions that others have detected."""
        by_reach: dict[int, list[Partition]] = {}
        for partition, left in self._known.items():
            if partition.detector not in (self._name, session.peer):
                by_reach.setdefault(left, []).append(partition)
        for left, partitions in by_reach.items():
            self._send_away(session, tuple(partitions), left)

    def learn_all(self, session: Session, partitions: tuple[Partition, ...]) -> None:
        """Adopt the peer's list of the partitions it has detected; others of that detector are over."""
        for old in [each for each in self._known if each.detector == session.peer and each not in partitions]:
            for node in old.nodes:
                self.on_over(session, PartitionOver(session.peer, node, old.number, self._reach - session.distance))
        self.on_partitions(session, Partitions(partitions, self._reach - session.distance))

    def on_partitions(self, session: Session, message: Partitions) -> None:
        """Record partitions that others have detected, and propagate them."""
        news = tuple([each for each in message.partitions if self._is_new(each)])
        if news:
            for partition in news:
                self._enter(partition, message.left)
            self._send_all(news, message.left, session)

    # ---- recovery

    def recover(self, node: str) -> list[str]:
        """Record that the node knows everything that this broker knows; return the detectors whose partitions with it
        are over.
        """
        path = self._neighbourhood.paths[node]
        ended = {each.detector: each.number for each in self._by_node.get(node, ()) if each.detector in path}
        if self._incarnation or any(node in nodes for nodes in self._own):
            ended[self._name] = (self._incarnation, self._count)
        for detector, upto in ended.items():
            self._drop(detector, node, upto)
            self._send_over(PartitionOver(detector, node, upto, self._reach), None)
        return list(ended)

    def on_over(self, session: Session, message: PartitionOver) -> None:
        """Record that partitions are over, and propagate that."""
        if message.detector != self._name and self._drop(message.detector, message.node, message.upto):
            self._send_over(message, session)

    # ---- tags

    def tags_away_from(self, direction: str) -> Tags:
        """Return the partitions of nodes unreachable in every other direction, to tag a confirmation that goes this
        way.

        A node that is reachable again and recovering has confirmed it by then.
        """
        if not self._own:
            return NO_TAGS
        return frozenset([self._own[nodes] for nodes in self._neighbourhood.failed if nodes[0] != direction])

    def tags_of(self, publisher: str, vector: Vector) -> Tags:
        """Return the partitions from which a publication with this vector comes: it was published at their
        last nodes.
        """
        way = [name for name, _, _ in vector]
        if len(way) < 2 or way[0] != publisher:
            return NO_TAGS
        source, around = way[1], (*way[2:], self._name)
        partitions = self._by_node.get(source, ())
        return frozenset([each for each in partitions if each.nodes[-1] == source and each.detector in around])

    # ---- internals

    def _enter(self, partition: Partition, left: int) -> None:
        self._known[partition] = left
        for node in partition.nodes:
            self._by_node.setdefault(node, {})[partition] = None

    def _is_new(self, partition: Partition) -> bool:
        """Return whether the partition is neither known nor over; news of both can arrive by different paths."""
        over = any(self._over.get((partition.detector, node), ()) >= partition.number for node in partition.nodes)
        return not over and partition not in self._known and partition.detector != self._name

    def _drop(self, detector: str, node: str, upto: Number) -> bool:
        self._over[detector, node] = max(upto, self._over.get((detector, node), ()))
        partitions = self._by_node.get(node, ())
        ended = [each for each in partitions if each.detector == detector and each.number <= upto]
        for partition in ended:
            del self._known[partition]
            if detector == self._name:
                del self._own[partition.nodes]
            for other in partition.nodes:
                del self._by_node[other][partition]
                if not self._by_node[other]:
                    del self._by_node[other]
        return bool(ended)

    def _send_all(self, partitions: tuple[Partition, ...], left: int, source: Session | None) -> None:
        for session in self._sessions.usable():
            if session is not source:
                self._send_away(session, partitions, left)

    def _send_away(self, session: Session, partitions: tuple[Partition, ...], left: int) -> None:
        if left >= session.distance:
            self._send(session.peer, Partitions(partitions, left - session.distance))

    def _send_over(self, message: PartitionOver, source: Session | None) -> None:
        for session in self._sessions.usable():
            if session is not source and message.left >= session.distance:
                left = message.left - session.distance
                self._send(session.peer, PartitionOver(message.detector, message.node, message.upto, left))


def ended_by(tags: Iterable[Partition], detector: str, node: str) -> Tags:
    """Return those tags that are over when the detector's partitions with the node are over."""
    return frozenset([each for each in tags if each.detector == detector and node in each.nodes])
