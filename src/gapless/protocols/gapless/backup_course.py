"""How journals get to those that hold them: this life's own to its backups, and others' to this one."""

from itertools import islice

from gapless.protocols.gapless.messages import Backup, BackupAll, BackupHeld
from gapless.protocols.gapless.recovery.persistence import Persistence
from gapless.protocols.gapless.recovery.state import BrokerState
from gapless.protocols.gapless.site import Site
from gapless.protocols.gapless.streams import Streams
from gapless.protocols.gapless.wave_course import WaveCourse

__all__ = ["BackupCourse"]


class BackupCourse:
    """One life's part in it."""

    def __init__(
        self, site: Site, state: BrokerState, streams: Streams, persistence: Persistence, waves: WaveCourse
    ) -> None:
        self._site = site
        self._state = state
        self._streams = streams
        self._persistence = persistence
        self._waves = waves

    # ---- others' journals ---------------------------------------------------------------------------------

    def hold_all(self, peer: str, body: BackupAll) -> None:
        """Become a backup of the peer."""
        life = self._streams.life_of(peer)
        self._state.estates.restore(peer, life, body)
        self._persistence.answer(peer, life, body.number)

    def hold(self, peer: str, body: Backup) -> None:
        """Another entry of the peer's journal."""
        life = self._streams.life_of(peer)
        if self._state.estates.note(peer, life, body):
            self._persistence.answer(peer, life, body.number)

    def end(self, peer: str) -> None:
        """The peer keeps its journal elsewhere."""
        self._persistence.end(peer)
        self._state.estates.end(peer, self._streams.life_of(peer))

    # ---- its own ------------------------------------------------------------------------------------------

    def choose(self) -> None:
        """The backups are the f nearest that live."""
        membership = self._state.membership
        alive = islice((name for name in self._site.near if not membership.excluded(name)), self._site.f)
        self._state.journal.choose_backups({name: membership.life(name) for name in alive})
        self.go_on()

    def held(self, peer: str, body: BackupHeld) -> None:
        """The peer holds the journal up to a number."""
        self._state.journal.answered(peer, self._streams.life_of(peer), body.number)
        self.go_on()

    def go_on(self) -> None:
        """More may be held now: let happen what waited for it."""
        self._state.clients.held()
        self._state.estates.resolve()
        self._waves.echo_if_due()
