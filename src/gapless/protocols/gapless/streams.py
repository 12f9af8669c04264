"""The streams of one life to the lives of others (`channel`): which there are, and who is listened to."""

from collections.abc import Callable

from gapless.protocol import Effect, Send
from gapless.protocols.gapless.channel import Channel
from gapless.protocols.gapless.members.membership import Membership
from gapless.protocols.gapless.messages import Ack, Body, Fenced, Frame, Resume, Tree, TreeBody
from gapless.protocols.gapless.routing.records import Link
from gapless.protocols.parts.clock import Clock

__all__ = ["Streams"]


class Streams:
    """One life's ends of them. Nothing is said to who is out, but that it is."""

    def __init__(self, life: int, membership: Membership, clock: Clock, emit: Callable[[Effect], None]) -> None:
        self._life = life
        self._membership = membership
        self._clock = clock
        self._emit = emit
        self._channels: dict[str, Channel] = {}

    def __len__(self) -> int:
        """How many messages are kept for repetition."""
        return sum(channel.pending() for channel in self._channels.values())

    def _channel(self, peer: str) -> Channel:
        channel = self._channels.get(peer)
        if channel is None:
            life = self._membership.life(peer)
            channel = Channel(self._life, life, lambda message: self._emit(Send(peer, message)), self._clock)
            self._channels[peer] = channel
        return channel

    # ---- saying -------------------------------------------------------------------------------------------

    def send(self, peer: str, body: Body) -> None:
        """Behind all that was sent there before, and once."""
        if not self._membership.excluded(peer):
            self._channel(peer).send(body)

    def send_tree(self, link: Link, body: TreeBody) -> None:
        """Along a link of the tree."""
        self.send(link.peer, Tree(link.tag, body))

    def fence(self, peer: str) -> None:
        """Tell a life that is out that it is."""
        self._emit(Send(peer, Fenced(self._life, {peer: self._membership.status[peer]}, dict(self._membership.status))))

    # ---- hearing ------------------------------------------------------------------------------------------

    def receive(self, peer: str, message: Frame | Resume | Ack) -> Body | None:
        """What the message brings, if it is the next that the peer says."""
        channel = self._channel(peer)
        if isinstance(message, Frame):
            return channel.received(message)
        if isinstance(message, Resume):
            channel.resumed(message)
        else:
            channel.acknowledged(message)
        return None

    def life_of(self, peer: str) -> int:
        """The life of the peer at the other end."""
        return self._channel(peer).peer_life

    # ---- connections and lives ----------------------------------------------------------------------------

    def connected(self, peer: str) -> None:
        """The connection to the peer is fresh."""
        if self._membership.excluded(peer):
            self.fence(peer)
        else:
            self._channel(peer).reconnect()

    def meet(self, peer: str) -> None:
        """The peer has a new life: the stream, if there is one, goes on with that."""
        if peer in self._channels:
            self._channels[peer].meet(self._membership.life(peer))

    def end(self, peer: str) -> None:
        """The peer is out."""
        self._channels.pop(peer, None)
        self.fence(peer)
