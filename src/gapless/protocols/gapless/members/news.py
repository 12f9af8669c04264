"""Who is told what of whom: news of statuses, and suspicions.

News of a broker goes to everyone near it, and to all who share a region with it, however wide that is.
"""

from collections.abc import Callable, Iterable, Mapping

from gapless.protocols.gapless.lives import Status
from gapless.protocols.gapless.members.contraction import Region
from gapless.protocols.gapless.members.membership import Membership
from gapless.protocols.gapless.members.status import Statuses, excluded_status
from gapless.protocols.gapless.messages import Accuse
from gapless.protocols.gapless.messages import Membership as MembershipNews

__all__ = ["StatusNews"]


class StatusNews:
    """What one life tells the others."""

    def __init__(self, membership: Membership, f: int, send: Callable[[str, MembershipNews | Accuse], None]) -> None:
        self._membership = membership
        self._radius = 2 * (f + 1)
        self._near = membership.overlay.within(membership.name, self._radius)
        self._send = send

    def announce(self) -> None:
        """Tell everyone near what concerns them."""
        for peer in self._near:
            self.introduce(peer)

    def introduce(self, peer: str) -> None:
        """Tell a peer what is known here of those around it, and of itself."""
        around = (peer, *self._membership.overlay.within(peer, self._radius))
        status = self._membership.status
        forgotten = {name: life for name, life in self._membership.forgotten.items() if name in around}
        known = {name: status[name] for name in around if name in status}
        self._send(peer, MembershipNews(known, forgotten, self._membership.parted))

    def spread_forgotten(self, news: Mapping[str, int]) -> None:
        """Tell everyone near that some brokers will not return. Those who did not know it pass it on."""
        for peer in self._near:
            self._send(peer, MembershipNews({name: excluded_status(life) for name, life in news.items()}, dict(news)))

    def spread_parted(self) -> None:
        """Tell everyone near that halves of the network had gone on without each other. Those pass it on."""
        for peer in self._near:
            self._send(peer, MembershipNews({}, {}, self._membership.parted))

    def spread(self, news: Mapping[str, Status], regions: Iterable[Region]) -> None:
        """Tell everyone near, and those who share one of these regions with it."""
        told: dict[str, Statuses] = {}
        for name, value in news.items():
            for peer in self._membership.overlay.within(name, self._radius):
                told.setdefault(peer, {})[name] = value
            for region in regions:
                if region.concerns(name):
                    for peer in region.group:
                        told.setdefault(peer, {})[name] = value
        for peer, part in told.items():
            if peer != self._membership.name:
                self._send(peer, MembershipNews(part, {}, self._membership.parted))

    def speak_of(self, name: str, guilty: bool) -> None:
        """Tell those who watch a broker what our detector thinks of it."""
        membership = self._membership
        if guilty and not membership.may_hand_over():
            return
        life = membership.life(name)
        for peer in membership.overlay.within(name, membership.watch):
            if peer != membership.name and not membership.suspects(peer):
                self._send(peer, Accuse(name, life, guilty))

    def repeat_accusations(self) -> None:
        """Others may decide now, or have lost what they heard."""
        for name in self._near:
            if self._membership.suspects(name) and not self._membership.excluded(name):
                self.speak_of(name, guilty=True)
