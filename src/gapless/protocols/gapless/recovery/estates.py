"""What a broker holds of others' journals, and where the clients of lives that are over have gone.

A backup keeps its copy of a life's journal until that life keeps it elsewhere. If the life is excluded, the backup
keeps it until the heir has secured what is in it. After a hand-over every member keeps the estates that were divided in
it for as long: the heir may fail, too.

A client asks for its session by the life that held it last. An inherited session is with its heir. A life that is over
has an heir, or at least a successor in its place; either may begin the session afresh.
"""

from collections.abc import Callable

from gapless.protocols.gapless.history.store import History
from gapless.protocols.gapless.lives import broker_of, name_life, parse_life
from gapless.protocols.gapless.members.contraction import Region
from gapless.protocols.gapless.members.membership import Membership
from gapless.protocols.gapless.messages import Backup, BackupAll, Estate, Resolved, SessionRecord
from gapless.protocols.gapless.recovery.plan import TakeoverPlan
from gapless.protocols.gapless.retention.journal import Journal, JournalCopy
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["Estates"]

REMEMBERED_MAX = 10_000
"""How many clients and lives a broker can direct; who asks for an older one begins afresh."""


class Estates:
    """One broker's copies of others' journals, and its knowledge of heirs."""

    def __init__(
        self,
        home: str,
        membership: Membership,
        journal: Journal,
        history: History,
        tell: Callable[[Resolved], None],
    ) -> None:
        self.heirs: dict[str, str] = {}
        """By life, the life that took over its clients."""
        self._home = home
        self._history = history
        self._membership = membership
        self._journal = journal
        self._tell = tell
        self._copies: dict[tuple[str, int], JournalCopy] = {}
        self._homes: dict[str, str] = {}
        self._successors: dict[str, str] = {}
        self._resolving: dict[tuple[str, int], int] = {}

    def __len__(self) -> int:
        return sum(len(copy) for copy in self._copies.values())

    # ---- backups ------------------------------------------------------------------------------------------

    def restore(self, broker: str, life: int, message: BackupAll) -> None:
        """Become a backup of that life."""
        copy = self._copies[broker, life] = JournalCopy()
        copy.restore(message)
        self._history.keep_again(broker, [admission.event for admission in message.admissions])

    def note(self, broker: str, life: int, message: Backup) -> bool:
        """Another entry of that life's journal; False if this broker is no backup of it."""
        copy = self._copies.get((broker, life))
        if copy is None:
            return False
        copy.forget(message.forget)
        copy.note_records(message.records)
        copy.records.pop(message.gone, None)
        if message.events:
            copy.admit(message.number, message.after, message.events, message.original)
            self._history.keep(broker, message.events)
        return True

    def end(self, broker: str, life: int) -> None:
        """That life keeps its journal elsewhere now."""
        self._copies.pop((broker, life), None)

    # ---- hand-over ----------------------------------------------------------------------------------------

    def share(self, region: Region) -> list[Estate]:
        """The estates to be divided in the region: of its own lives, and of those whose heir is in it."""
        return [
            copy.estate(broker, life)
            for (broker, life), copy in self._copies.items()
            if not self._membership.lives(broker, life)
            and (broker in region.core or broker_of(self.heirs.get(name_life(broker, life), "")) in region.core)
        ]

    def homes(self) -> dict[str, str]:
        """The lives that hold inherited clients, of those that still live."""
        return {client: home for client, home in self._homes.items() if self._lives(home)}

    def divided(self, plan: TakeoverPlan, name: str, successors: dict[str, str]) -> None:
        """A hand-over has divided estates: remember who got what, and keep them until the heir has secured them."""
        for broker, successor in successors.items():
            self._successors[broker] = self._current_life(successor)
        for life, heir in plan.heirs.items():
            self._remember(self.heirs, name_life(*life), self._current_life(heir))
            self._keep(*life, plan.estates[life], plan)
        for client, holder in plan.holders.items():
            self._remember(self._homes, client, self._current_life(holder))
        for share in plan.inherited:
            self._remember(self._homes, share.record.client, self._current_life(share.heir))
        for client, owner in plan.owners.items():
            self._remember(self._homes, client, self._current_life(owner))
        for life, heir in plan.heirs.items():
            if heir == name:
                self._resolving[life] = self._journal.number
                self._tell(Resolved(*life, False))
        self.resolve()

    def learn(self, heirs: dict[str, str]) -> None:
        """Take over what others know of heirs; what this broker took part in itself counts more."""
        for life, heir in heirs.items():
            if life not in self.heirs:
                self._remember(self.heirs, life, heir)

    def resolve(self) -> None:
        """Tell everyone to forget the estates that this broker inherited and its backups hold."""
        for life, number in list(self._resolving.items()):
            if number <= self._journal.held:
                del self._resolving[life]
                self._copies.pop(life, None)
                self._tell(Resolved(*life, True))

    def resolved(self, peer: str, message: Resolved) -> None:
        """The peer is the heir of a life, and may have secured its estate."""
        if message.secured:
            self._copies.pop((message.broker, message.life), None)
        self._remember(self.heirs, name_life(message.broker, message.life), self._current_life(peer))

    def _keep(self, broker: str, life: int, records: dict[str, SessionRecord], plan: TakeoverPlan) -> None:
        copy = self._copies[broker, life] = JournalCopy()
        copy.note_records(records.values())
        for item in plan.admissions[broker, life]:
            copy.keep(item)

    # ---- clients ------------------------------------------------------------------------------------------

    def find_home(self, client: str, home: str) -> str | None:
        """The life that holds the client's session, or may begin one, if that is known."""
        inherited = self._homes.get(client)
        if inherited is not None and inherited != self._home:
            return inherited if self._lives(inherited) else None
        for _ in range(len(self.heirs) + len(self._successors) + 1):
            if self._lives(home):
                return home
            broker = broker_of(home)
            if home not in self.heirs and broker not in self._successors:
                return None
            home = self.heirs.get(home) or self._successors[broker]
        return None

    def _lives(self, home: str) -> bool:
        broker, life = parse_life(home)
        return broker in self._membership.overlay and self._membership.lives(broker, life)

    def _current_life(self, broker: str) -> str:
        return name_life(broker, self._membership.life(broker))

    def _remember(self, where: dict[str, str], key: str, value: str) -> None:
        where[key] = value
        forget_oldest(where, REMEMBERED_MAX)
