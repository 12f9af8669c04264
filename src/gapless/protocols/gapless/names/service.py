"""What one broker does about durable subscriptions: for its clients, and as a keeper.

A durable subscription is a record (`NameRecord`): a filter, and how far it is confirmed, by a position and by numbers
of publishers beyond it. While nobody listens that is all there is of it; it costs nothing, and holds back nobody.

1. A client that opens it is given the record, in a generation of its own (`rules`). It reads history from the position
   on, as every subscription can (`readings`), without what is confirmed beyond it. Then it is live, as others are.
2. While it is live, its client is told at each wave which position has reached everyone: all up to it was delivered.
3. A client confirms what it was delivered up to some place: that is a position, and numbers beyond it. It counts once a
   majority of the keepers holds it, if it is of the last generation.

So what was confirmed never comes again. What was not confirmed always does; if history was dropped, the client is told.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from gapless.errors import CallError
from gapless.protocol import Owners, SetTimer
from gapless.protocols.gapless.client_messages import (
    ClientConfirm,
    ClientHand,
    ClientMove,
    ClientNames,
    ClientOpen,
    NameKept,
    NameLost,
    NameMoved,
    NameOpened,
    NameRefused,
    NamesTold,
    Reached,
)
from gapless.protocols.gapless.clients.desk import Desk
from gapless.protocols.gapless.clients.session_state import Turn
from gapless.protocols.gapless.clients.sessions import Session
from gapless.protocols.gapless.lives import Home, broker_of
from gapless.protocols.gapless.name_messages import (
    NAME_MESSAGES,
    AskName,
    AskNames,
    HandName,
    KeepName,
    NameAnswer,
    NameMessage,
    NameRecord,
    NamesAnswer,
    NameTaken,
)
from gapless.protocols.gapless.names.calls import check_call
from gapless.protocols.gapless.names.groups import Groups
from gapless.protocols.gapless.names.listing import Listing
from gapless.protocols.gapless.names.proposals import Proposal, Proposals
from gapless.protocols.gapless.names.register import NAMES_MAX, Register
from gapless.protocols.gapless.names.rules import Change, confirm, move, note_absence, open_name
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.retention.waves import Waves
from gapless.protocols.parts.clock import Clock
from gapless.protocols.parts.forgetting import forget_oldest

__all__ = ["NAME_CALLS", "NAME_KINDS", "Names"]

NAME_CALLS = frozenset({ClientOpen, ClientConfirm, ClientNames, ClientMove, ClientHand})
NAME_KINDS = frozenset(NAME_MESSAGES)
PENDING_MAX = 200
"""Changes and questions of one client that are under way."""
ABSENCE_TRIES = 600
"""For so many ticks keepers are asked to note that a client is gone: a minute."""
RECORDS_AT_ONCE = 100
TICK_US = 100_000
HURRIED = 20
PATIENT = 5
"""For so many ticks a keeper that may have forgotten something asks at each tick; then at each fifth. It hurries,
because the next broker that fails may be one of those who know."""


class Names:
    """One life's part in it; the register is that of all lives."""

    def __init__(
        self,
        home: Home,
        options: GaplessOptions,
        register: Register,
        desk: Desk,
        waves: Waves,
        clock: Clock,
        *,
        send: Callable[[str, Any], None],
        set_timer: Callable[[SetTimer], None],
        is_broker: Callable[[str], bool],
        owners: Owners,
    ) -> None:
        """`send` reaches brokers as well as clients; `is_broker` tells which are brokers, `owners` whose the clients
        are."""
        self._user_of = owners.user_of
        self._broker = broker_of(home)
        self._options = options
        self._register = register
        self._desk = desk
        self._waves = waves
        self._clock = clock
        self._send_away = send
        self._proposals = Proposals(home, register.keepers, lambda: clock.now, self._send, set_timer)
        self._groups = Groups(self._broker, desk, waves, self._send, send, is_broker)
        self._listings: dict[int, Listing] = {}
        self._number = 0
        self._listening: dict[str, dict[str, tuple[str, int]]] = {}
        """By client and subscription: the name, and the generation."""
        self._early: list[tuple[str, ClientOpen]] = []
        """Who wants a name before any position is final here."""
        self._pending: dict[str, int] = {}
        self._told = 0
        """The position that those who listen were told of last."""
        self._local: deque[NameMessage] = deque()
        """What this broker says to itself."""
        self._unsynced: deque[tuple[int, str, NameAnswer]] = deque()
        """Answers that wait for the disk."""
        self._ticks = 0
        """Since the register began to ask what it may have forgotten."""

    def told(self, most: int) -> dict[str, dict[str, Any]]:
        """For operators: the names whose records are changed, how many changes came before, who has not answered."""
        return self._proposals.told(most)

    # ---- brokers ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """A keeper that may have forgotten something asks at once.

        The smallest story: of three keepers one dies and comes back without memory, then another dies for good. If the
        first has not asked before, it hears one keeper only, and may never agree to anything again.
        """
        if self._register.is_keeper and not self._register.is_sure and not self._ticks:
            self._recover()
            self._drain()

    def receive(self, peer: str, message: NameMessage) -> None:
        """Another broker asks, or answers."""
        self._take(peer, message)
        self._drain()

    def _send(self, peer: str, message: NameMessage) -> None:
        if peer == self._broker:
            self._local.append(message)
        else:
            self._send_away(peer, message)

    def _drain(self) -> None:
        while self._local:
            self._take(self._broker, self._local.popleft())

    def _take(self, peer: str, message: NameMessage) -> None:
        match message:
            case AskName() | KeepName():
                self._keep(peer, message)
            case NameAnswer():
                self._proposals.hear(peer, message)
            case AskNames():
                self._tell_names(peer, message)
            case NamesAnswer():
                self._hear_names(peer, message)
            case NameTaken():
                self._lose(message.client, message.name, message.generation, message.reason)
            case HandName():
                self._groups.hear(message)

    def _keep(self, peer: str, message: AskName | KeepName) -> None:
        register = self._register
        if not register.is_keeper:
            return
        if not register.is_sure:
            if not self._ticks:
                self._recover()
            if not register.is_sure:
                return  # it will be asked again
        for asker, answer in register.answer(peer, message):
            if self._waits_for_disk:
                self._unsynced.append((register.written, asker, answer))
            else:
                self._send(asker, answer)

    @property
    def _waits_for_disk(self) -> bool:
        return "synced" not in self._options.switched_off and self._register.written > self._register.persisted

    def persisted(self, number: int) -> None:
        """The disk has all up to this batch."""
        self._register.persisted = number
        while self._unsynced and self._unsynced[0][0] <= number:
            _, peer, answer = self._unsynced.popleft()
            self._send(peer, answer)
        self._drain()

    def _tell_names(self, peer: str, message: AskNames) -> None:
        if self._register.is_keeper:
            self._send(peer, self._register.page(message.request, message.after))
            if not self._register.is_sure and not self._ticks:
                self._recover()

    def _hear_names(self, peer: str, message: NamesAnswer) -> None:
        if message.request == 0:
            self._register.hear(peer, message, self._send)
        else:
            listing = self._listings.get(message.request)
            if listing is not None and listing.hear(peer, message, self._send):
                del self._listings[message.request]

    def _recover(self) -> None:
        self._ticks = 1
        self._register.recover(self._send)
        self._proposals.keep_ticking()

    # ---- time ---------------------------------------------------------------------------------------------

    def tick(self) -> None:
        """Ask again what was not answered."""
        self._proposals.tick()
        if self._ticks and not self._register.is_sure:
            self._ticks += 1
            if self._ticks * TICK_US >= self._options.return_ms * 1000:
                self._register.lose_patience()
            if self._ticks < HURRIED or self._ticks % PATIENT == 0:
                self._register.recover(self._send)
            self._proposals.keep_ticking()
        for number, listing in list(self._listings.items()):
            if not listing.is_wanted():
                del self._listings[number]
            else:
                listing.ask(self._send)
                self._proposals.keep_ticking()
        if self._early:
            self._proposals.keep_ticking()
            if self._waves.final:
                early, self._early = self._early, []
                for client, call in early:
                    self._call(client, call)
        self._drain()

    def tell_reached(self) -> None:
        """Tell the clients of live durable subscriptions a later position: all up to it was delivered to them."""
        self._groups.go_on()
        if self._waves.reached <= self._told:
            return
        self._told = self._waves.reached
        for client, listening in list(self._listening.items()):
            session = self._desk.sessions.get(client)
            if session is None:
                del self._listening[client]
                for name, generation in listening.values():
                    self._note_absence(client, name, generation)
                continue
            names = [name for name in listening if self._is_live(session, name)]
            for name in names:
                session.note(Reached(session.attempt, name, self._told, True, []))
            if names:
                self._desk.flush(session)

    def _note_absence(self, client: str, name: str, generation: int) -> None:
        """Let nobody be shown as the listener whose session has expired."""
        tries = iter(range(ABSENCE_TRIES))
        self._proposals.propose(
            Proposal(
                name,
                note_absence(generation, client),
                lambda record, refusal: None,
                lambda: client not in self._desk.sessions and next(tries, None) is not None,
                self._user_of(client),
            )
        )

    def _is_live(self, session: Session, name: str) -> bool:
        readings = self._desk.readings
        return (
            not session.is_orphan
            and name in session.subscriptions
            and name not in session.unready
            and session.is_live
            and name not in readings.of(session.client)
            and name not in readings.late(session.client)
        )

    # ---- clients ------------------------------------------------------------------------------------------

    def call(self, client: str, message: Any) -> None:
        """A message of a client about durable subscriptions."""
        self._call(client, message)
        self._drain()

    def _call(self, client: str, message: Any) -> None:
        session = self._desk.sessions.get(client)
        if session is None or message.attempt != session.attempt:
            return
        if not session.is_heard:
            session.turn(Turn.IGNORED)
            return
        check_call(client, message)
        if self._pending.get(client, 0) >= PENDING_MAX:
            raise CallError(f"{client!r} has more than {PENDING_MAX} changes of durable subscriptions under way")
        match message:
            case ClientOpen():
                self._open(session, message)
            case ClientConfirm():
                self._confirm(session, message)
            case ClientMove():
                self._move(session, message)
            case ClientHand():
                self._groups.say(session, message)
            case ClientNames():
                self._list(session, message)

    def _propose(
        self, session: Session, name: str, change: Change, done: Callable[[NameRecord | None, str], None]
    ) -> None:
        client, attempt = session.client, session.attempt
        self._pending[client] = self._pending.get(client, 0) + 1

        def is_wanted() -> bool:
            if self._desk.sessions.get(client) is session and session.attempt == attempt:
                return True
            self._release(client)
            return False

        def finished(record: NameRecord | None, refusal: str) -> None:
            if is_wanted():
                self._release(client)
                done(record, refusal)

        self._proposals.propose(Proposal(name, change, finished, is_wanted, self._user_of(client)))

    @property
    def _newest(self) -> int:
        """No stamp that this broker has heard of is larger."""
        return max(self._clock.now, self._clock.last)

    def _release(self, client: str) -> None:
        left = self._pending.pop(client, 1) - 1
        if left > 0:
            self._pending[client] = left

    def _open(self, session: Session, call: ClientOpen) -> None:
        if not self._waves.final:
            if sum(client == session.client for client, _ in self._early) >= PENDING_MAX:
                raise CallError(f"{session.client!r} opens more than {PENDING_MAX} durable subscriptions at a time")
            self._early.append((session.client, call))
            self._proposals.keep_ticking()
            return
        before: list[NameRecord | None] = [None]
        at = (session.client, self._broker, self._waves.final)
        rule = open_name(call, *at, self._user_of, newest=self._newest)

        def change(record: NameRecord | None) -> NameRecord:
            before[0] = record
            return rule(record)

        def done(record: NameRecord | None, refusal: str) -> None:
            if refusal or record is None:
                self._send_away(session.client, NameRefused(session.attempt, call.subscription, refusal))
                return
            if "named-position" in self._options.switched_off:
                record = msgspec.structs.replace(record, position=self._waves.final, got={}, done={})
            if record.is_shared:
                self._groups.enter(session, call.name, call.subscription)
            if record.client == session.client:
                self._listening.setdefault(session.client, {})[call.subscription] = (call.name, record.generation)
            self._send_away(session.client, NameOpened(session.attempt, call.subscription, record))
            if record == before[0]:
                return
            reason = (
                f"{session.client!r} has opened the durable subscription {call.name!r}: one client at a time has it"
            )
            self._tell_taken(before[0], record.generation, reason)

        self._propose(session, call.name, change, done)

    def _tell_taken(self, before: NameRecord | None, generation: int, reason: str) -> None:
        if before is not None and before.client and before.broker:
            self._send(before.broker, NameTaken(before.name, generation, before.client, reason))

    def _lose(self, client: str, name: str, generation: int, reason: str) -> None:
        session = self._desk.sessions.get(client)
        for subscription, known in list(self._listening.get(client, {}).items()):
            if known[0] == name and known[1] < generation:
                del self._listening[client][subscription]
                if session is not None and not session.is_orphan:
                    self._send_away(client, NameLost(session.attempt, subscription, reason))

    def _confirm(self, session: Session, call: ClientConfirm) -> None:
        listening = self._listening.setdefault(session.client, {})
        listening[call.subscription] = (call.name, call.generation)
        forget_oldest(listening, NAMES_MAX)

        def done(record: NameRecord | None, refusal: str) -> None:
            if refusal or call.is_leaving:
                self._listening.get(session.client, {}).pop(call.subscription, None)
            if record is not None and not refusal and self._deals(session, call, record):
                self._groups.enter(session, call.name, call.subscription)
            if refusal:
                self._send_away(session.client, NameLost(session.attempt, call.subscription, refusal))
            else:
                self._send_away(session.client, NameKept(session.attempt, call.subscription, call.serial))

        self._propose(session, call.name, confirm(call, session.client, self._broker), done)

    def _deals(self, session: Session, call: ClientConfirm, record: NameRecord) -> bool:
        """Whether the client deals for a group, and reads for that what it was judged to have the right to."""
        if not record.is_shared or record.client != ("" if call.is_leaving else session.client):
            return False
        reading = self._desk.readings.of(session.client).get(call.subscription)
        held = session.subscriptions.get(call.subscription)
        return record.filter in (None if reading is None else reading.text, None if held is None else held.filter.text)

    def _move(self, session: Session, call: ClientMove) -> None:
        before: list[NameRecord | None] = [None]
        rule = move(call, newest=self._newest)

        def change(record: NameRecord | None) -> NameRecord:
            before[0] = record
            return rule(record)

        def done(record: NameRecord | None, refusal: str) -> None:
            self._send_away(session.client, NameMoved(session.attempt, call.request, refusal))
            if record is not None and not refusal:
                what = "ended" if record.is_over else "moved to another position"
                reason = f"the durable subscription {call.name!r} was {what} by {session.client!r}"
                self._tell_taken(before[0], record.generation, reason)

        self._propose(session, call.name, change, done)

    def _list(self, session: Session, call: ClientNames) -> None:
        client, attempt = session.client, session.attempt
        if sum(listing.is_wanted() for listing in self._listings.values()) >= PENDING_MAX:
            return

        def done(records: list[NameRecord]) -> None:
            position = self._waves.newest
            for first in range(0, len(records) or 1, RECORDS_AT_ONCE):
                part = records[first : first + RECORDS_AT_ONCE]
                is_last = first + RECORDS_AT_ONCE >= len(records)
                self._send_away(client, NamesTold(attempt, call.request, part, position, is_last))

        self._number += 1
        self._listings[self._number] = listing = Listing(
            self._number,
            self._register.keepers,
            done,
            lambda: self._desk.sessions.get(client) is session and session.attempt == attempt,
        )
        listing.ask(self._send)
        self._proposals.keep_ticking()
