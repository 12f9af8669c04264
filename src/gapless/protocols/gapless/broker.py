"""A broker of the `gapless` protocol: feeds each input to the part whose rule it is.

The package is the map. The parts of one life are put together in `life`; when that is over, another follows
(`succession`).
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, assert_never

from gapless.protocol import (
    BrokerNode,
    BrokerPlace,
    Connected,
    Effect,
    EndSession,
    Forget,
    HistoryRead,
    Input,
    Persisted,
    Received,
    Resumed,
    Start,
    Suspected,
    TimerFired,
    Trusted,
)  # fmt: skip
from gapless.protocols.gapless.client_messages import Attach
from gapless.protocols.gapless.clients.lagging import LAG
from gapless.protocols.gapless.clients.readings import READ_ON
from gapless.protocols.gapless.disk import Disk
from gapless.protocols.gapless.foreseeing import foresee, foresee_attach
from gapless.protocols.gapless.history.library import LIBRARY
from gapless.protocols.gapless.history.refill import REFILL
from gapless.protocols.gapless.life import Life
from gapless.protocols.gapless.lives import LIFE_STEP
from gapless.protocols.gapless.member_course import MEMBER_TIMERS
from gapless.protocols.gapless.messages import (
    Accuse,
    Ack,
    Backup,
    BackupAll,
    BackupEnd,
    BackupHeld,
    Body,
    Completed,
    Fenced,
    Frame,
    Membership,
    PutOff,
    Resolved,
    Resume,
    Sync,
    Tree,
)
from gapless.protocols.gapless.names.proposals import NAMES
from gapless.protocols.gapless.names.register import Register, keepers_of
from gapless.protocols.gapless.names.service import NAME_CALLS, NAME_KINDS
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.overview import SHOWN, overview
from gapless.protocols.gapless.pieces import Pieces
from gapless.protocols.gapless.recovery.found import read_disk
from gapless.protocols.gapless.site import Site
from gapless.protocols.gapless.succession import Succession
from gapless.protocols.gapless.turns import Turns
from gapless.protocols.gapless.wave_course import WAVE

__all__ = ["GaplessBroker"]


class GaplessBroker(BrokerNode):
    """A broker node of the `gapless` protocol."""

    def __init__(self, place: BrokerPlace, options: GaplessOptions) -> None:
        self._effects: list[Effect] = []
        self._overlay = overlay = place.overlay
        self._turns = Turns(
            self._handle, self._has_work, self._work, self._emit, options, is_broker=overlay.__contains__,
            foresee=self._foresee,
        )  # fmt: skip
        disk = Disk(place.disk is not None, options.journal_bytes)
        life = place.incarnation * LIFE_STEP
        found = None if place.disk is None else read_disk(place.disk, disk, options)
        if found is not None:
            life = max(life, (found.last_life(place.name) // LIFE_STEP + 1) * LIFE_STEP)
        register = Register(
            place.name,
            keepers_of(overlay.root, overlay.within(overlay.root, 2 * place.f), place.f),
            place.f,
            disk,
            None if place.disk is None else place.disk.entries,
            is_first=life == 0,
            names_max=place.owners.names_max,
        )
        self._site = Site(place.name, overlay, place.f, options, disk, register, self._emit, place.owners)
        self._lives = Succession(self._site, life, found)

    @property
    def life(self) -> Life:
        """Its life now, with all its parts."""
        return self._lives.now

    def _emit(self, effect: Effect) -> None:
        self._effects.append(effect)

    # ---- inputs -------------------------------------------------------------------------------------------

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Take one input; return what it causes."""
        self._effects = []
        self._lives.now.set_time(now)
        self._turns.take(item)
        life = self._lives.now
        life.names.tell_reached()
        if self._site.disk.is_there:
            self._effects += life.persistence.end_step()
        return self._effects

    def _has_work(self) -> bool:
        life = self._lives.now
        return life.handovers.has_work or life.clients.errand is not None

    def _work(self) -> Pieces[None]:
        life = self._lives.now
        errand = life.clients.errand
        if errand is None:
            yield from life.handovers.work()
        else:
            life.clients.errand = None
            yield from errand
            life.wave_course.echo_if_due()

    def _handle(self, item: Input) -> None:
        if self._lives.is_away:
            self._lives.take_while_away(item)
            return
        life = self._lives.now
        match item:
            case Received():
                self._on_received(life, item.peer, item.message)
            case TimerFired():
                self._on_timer(life, item)
            case Connected():
                if item.peer in self._overlay:
                    life.streams.connected(item.peer)
            case Suspected():
                if item.peer in self._overlay:
                    life.members.suspected(item.peer)
                else:
                    life.clients.lost_sight(item.peer)
            case Trusted():
                if item.peer in self._overlay:
                    life.members.trusted(item.peer)
                else:
                    life.clients.caught_sight(item.peer)
            case Resumed():
                life.members.woke()
            case Start():
                life.members.start()
                life.names.start()
            case EndSession():
                life.clients.end(item.client)
                life.wave_course.echo_if_due()
            case Forget():
                life.members.forget(item.broker)
            case Persisted():
                life.persistence.persisted(item.number)
                life.names.persisted(item.number)
                life.backups.go_on()
            case HistoryRead():
                life.library.looked_up(item)
            case _:
                raise AssertionError(f"no input of a broker: {item!r}")

    def _on_received(self, life: Life, peer: str, message: Any) -> None:
        kind = type(message)
        if kind is Frame or kind is Resume or kind is Ack:
            if life.members.listens_to(peer, message.life):
                body = life.streams.receive(peer, message)
                if body is not None:
                    self._on_body(life, peer, body)
        elif kind is Fenced:
            life.members.fenced(peer, message)
        elif kind in NAME_KINDS and peer in self._overlay:
            life.names.receive(peer, message)
        elif peer in self._overlay:
            life.library.receive(peer, message)
        elif kind is Attach:
            if life.clock.is_behind(message.clock):
                life.wave_course.hurry()  # waves bring the clocks of all brokers
            else:
                life.clock.see(message.clock)
            life.clients.attach(peer, message)
            if life.clients.errand is None:
                life.wave_course.echo_if_due()
        elif kind in NAME_CALLS:
            life.names.call(peer, message)
        else:
            life.clients.receive(peer, message)
            life.wave_course.echo_if_due()
            life.wave_course.hurry_if_full()

    def _on_body(self, life: Life, peer: str, body: Body) -> None:
        match body:
            case Tree():
                life.tree_course.receive(peer, body)
            case Backup():
                life.backups.hold(peer, body)
            case BackupHeld():
                life.backups.held(peer, body)
            case BackupAll():
                life.backups.hold_all(peer, body)
            case BackupEnd():
                life.backups.end(peer)
            case Membership():
                life.members.learn_forgotten(body.forgotten)
                life.members.learn_parted(body.parted)
                life.members.learn(body.status)
            case Accuse():
                life.members.accused(peer, body)
            case Sync():
                life.members.learn(body.status)
                if self._lives.now is life:
                    life.members.correct(peer, body.status)
                    life.handovers.receive(peer, body)
            case Completed():
                life.handovers.receive_completed(peer, body)
            case Resolved():
                life.estates.resolved(peer, body)
            case PutOff():
                life.clients.hear_put_off(body)
            case _:
                assert_never(body)

    def _on_timer(self, life: Life, item: TimerFired) -> None:
        kind, _, rest = item.key.partition("/")
        if kind == WAVE:
            life.wave_course.tick()
        elif kind in MEMBER_TIMERS:
            life.members.timer_fired(kind, rest)
        elif kind == LIBRARY:
            life.library.tick()
        elif kind == NAMES:
            life.names.tick()
        elif kind == REFILL:
            life.refill.rested()
        elif kind == LAG:
            life.clients.lagging.check(life.clock.now, life.waves.reached)
            life.wave_course.echo_if_due()
        elif kind == READ_ON:
            life.clients.readings.read_on()
        elif kind == "return":
            life.handovers.send_home(rest)
        elif kind == "session":
            life.clients.expire(rest)
            life.wave_course.echo_if_due()

    # ---- what is asked of a node --------------------------------------------------------------------------

    def state_size(self) -> Mapping[str, int]:
        """How much the broker keeps."""
        life = self._lives.now
        return {
            "subscriptions": len(life.table.subscriptions),
            "advertisements": len(life.table.advertisements),
            "retained": len(life.log),
            "held for others": len(life.estates),
            "unacknowledged": len(life.streams),
        }

    def overview(self) -> dict[str, Any]:
        """What an operator wants to know: who is out, who stands in, what is going on."""
        life = self._lives.now
        found = overview(life.state, life.handovers, life.number, self._site.near, is_away=self._lives.is_away)
        found["names"] = life.names.told(SHOWN)
        found["history"]["held_by_few"] = life.refill.held_by_few()
        if life.floor is not None:
            last = life.floor.last()
            found["history"]["kept_for_names"] = life.library.history.beyond
            found["history"]["last_name"] = None if last is None else [last.name, last.position]
        return found

    def _foresee(self, item: Input) -> Pieces[object] | None:
        if type(item) is Received and type(item.message) is Attach:
            is_sent_on = self.life.clients.is_sent_on(item.peer, item.message)
            return None if is_sent_on else foresee_attach(self.life.table, item.message)
        table = self.life.table
        return foresee(table, item) if table.has_searches else None

    @property
    def is_working(self) -> bool:
        """Whether it works on an input in pieces, and lets others wait behind it."""
        return self._turns.is_working

    def has_session(self, client: str) -> bool:
        """Whether the client's session is here."""
        return client in self.life.clients.sessions

    def sessions(self) -> list[str]:
        """The clients whose sessions are here."""
        return list(self.life.clients.sessions)

    def reads_history(self, client: str) -> bool:
        """Whether the client is brought what was published before."""
        clients = self.life.clients
        session = clients.sessions.get(client)
        return session is not None and (session.has_history or bool(clients.readings.of(client)))

    def held_by(self, client: str) -> dict[str, str]:
        """The filters of a client's subscriptions, by name."""
        session = self.life.clients.sessions.get(client)
        return {} if session is None else {name: item.filter.text for name, item in session.subscriptions.items()}

    def names_held(self, client: str) -> tuple[Collection[str], Collection[str]]:
        """What a client calls its subscriptions, those that read history included, and its advertisements."""
        session = self.life.clients.sessions.get(client)
        if session is None:
            return (), ()
        reading = session.read_texts
        subscriptions = {**session.subscriptions, **reading} if reading else session.subscriptions
        return subscriptions.keys(), session.advertisements.keys()
