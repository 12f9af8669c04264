"""A broker of the `gapless` protocol: feeds each input to the part whose rule it is.

The package is the map: reliable streams (`channel`), who lives (`members`), who subscribes from which cut on
(`routing`), what is kept (`retention`), clients (`clients`), going round the dead (`recovery`).

`tree_course` takes what travels along the tree: events (`event_course`), waves (`wave_course`), subscriptions.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, assert_never

from gapless.protocol import (
    BrokerNode,
    BrokerPlace,
    Connected,
    Effect,
    EndSession,
    HistoryRead,
    Input,
    Persisted,
    Received,
    Send,
    SetTimer,
    Start,
    Suspected,
    TimerFired,
    Trusted,
)  # fmt: skip
from gapless.protocols.gapless.channel import Channel
from gapless.protocols.gapless.client_messages import Attach
from gapless.protocols.gapless.clients.desk import Desk
from gapless.protocols.gapless.clients.lagging import LAG
from gapless.protocols.gapless.clients.readings import Readings
from gapless.protocols.gapless.clock import Clock
from gapless.protocols.gapless.disk import Disk
from gapless.protocols.gapless.event_course import LOCAL, EventCourse
from gapless.protocols.gapless.history.library import LIBRARY, Library
from gapless.protocols.gapless.history.refill import REFILL, Refill
from gapless.protocols.gapless.lives import name_life
from gapless.protocols.gapless.members.contraction import Region
from gapless.protocols.gapless.members.membership import Membership
from gapless.protocols.gapless.members.news import StatusNews
from gapless.protocols.gapless.members.resting import Rests
from gapless.protocols.gapless.members.status import alive_status, life_of
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
    Resolved,
    Resume,
    Sync,
    Tree,
    TreeBody,
)
from gapless.protocols.gapless.messages import Membership as MembershipNews
from gapless.protocols.gapless.names.proposals import NAMES, Proposals
from gapless.protocols.gapless.names.register import Register, keepers_of
from gapless.protocols.gapless.names.service import NAME_CALLS, NAME_MESSAGES, Names
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.overview import overview
from gapless.protocols.gapless.recovery.estates import Estates
from gapless.protocols.gapless.recovery.found import Found, read_disk
from gapless.protocols.gapless.recovery.handovers import Handovers
from gapless.protocols.gapless.recovery.keeper import Keeper
from gapless.protocols.gapless.recovery.state import BrokerState, Outlets
from gapless.protocols.gapless.retention.event_log import EventLog
from gapless.protocols.gapless.retention.journal import Journal
from gapless.protocols.gapless.retention.waves import Waves
from gapless.protocols.gapless.routing.records import Link
from gapless.protocols.gapless.routing.routing_table import RoutingTable
from gapless.protocols.gapless.tree_course import TreeCourse
from gapless.protocols.gapless.turns import Turns
from gapless.protocols.gapless.wave_course import WAVE, WaveCourse

__all__ = ["GaplessBroker"]

LIFE_STEP = 1_000
"""A restart outranks any number of exclusions of the life before."""
PRESSED = 32
"""A broker asks for wave after wave while it keeps this part of its window: at the pace of the clock it would fill."""
SKEW_MAX_US = 3_600_000_000
"""How far ahead of this broker's clock a client may claim that another's is: an hour. Nobody can push it into a far
future."""
RETURNING = "returning"
REST = "rest"
"""The keys of timers."""
RENEW_US = 500_000
"""How long a suspicion against an old life must last to count against a new one."""


class GaplessBroker(BrokerNode):
    """A broker node of the `gapless` protocol."""

    def __init__(self, place: BrokerPlace, options: GaplessOptions) -> None:
        self._name = place.name
        self._overlay = place.overlay
        self._f = place.f
        self._options = options
        self._waits = options.partition == "wait"
        self._radius = 2 * (place.f + 1)
        self._near = place.overlay.within(place.name, self._radius)
        self._effects: list[Effect] = []
        self._turns = Turns(
            self._handle,
            lambda: self._handovers,
            lambda effect: self._effects.append(effect),
            options,
            is_broker=place.overlay.__contains__,
        )
        self._rests = Rests()
        self._away: int | None = None
        """While it stays away: the status of its life that was excluded."""
        self._disk = Disk(place.disk is not None, options.journal_bytes)
        life = place.incarnation * LIFE_STEP
        found = None if place.disk is None else read_disk(place.disk, self._disk, options)
        if found is not None:
            life = max(life, (found.last_life(place.name) // LIFE_STEP + 1) * LIFE_STEP)
        root = place.overlay.root
        self._register = Register(
            place.name,
            keepers_of(root, place.overlay.within(root, 2 * place.f), place.f),
            place.f,
            self._disk,
            None if place.disk is None else place.disk.entries,
            is_first=life == 0,
        )
        self._begin(life, found)

    def _begin(self, life: int, found: Found | None) -> None:
        """A new life: nothing of an earlier one is left, but for what was found on the disk."""
        self._life = life
        self._home = name_life(self._name, life)
        self._clock = Clock()
        self._channels: dict[str, Channel] = {}
        self._membership = Membership(
            self._name,
            life,
            self._overlay,
            self._f,
            needs_majority=self._waits and "majority" not in self._options.switched_off,
        )
        self._news = StatusNews(self._membership, self._f, self._send)
        switched_off = frozenset(self._options.switched_off) | (set() if self._options.coverage else {"coverage"})
        self._table = RoutingTable(
            send=self._send_tree,
            tell_client=lambda subscription, cuts: self._clients.tell_cuts(subscription, cuts),
            advertisement_stable=lambda advertisement: self._clients.tell_stable(advertisement),
            switched_off=frozenset(switched_off),
            log_end=lambda: self._log.end,
        )
        self._journal = Journal(self._send, self._clock)
        self._log = EventLog()
        self._library = Library(
            self._name,
            self._options.history_bytes,
            self._journal.admitted,
            self._overlay,
            self._radius,
            is_out=self._membership.excluded,
            send=lambda peer, message: self._effects.append(Send(peer, message)),
            set_timer=lambda effect: self._effects.append(effect),
            read_disk=lambda effect: self._effects.append(effect),
            age_us=int(self._options.history_s * 1e6),
            found=None if found is None else (found.history, found.index),
        )
        self._journal.keep = lambda events: self._library.history.keep(self._name, events)
        self._waves = Waves(
            self._log.cut,
            lambda done: self._events.forget(done),
            is_busy=lambda: len(self._log) > 0,
            is_pressed=lambda: PRESSED * self._journal.weight > self._options.window,
            clock=self._clock,
            archive=self._library,
            knows_beginning=life == 0 or (found is not None and found.is_used),
        )
        self._refill = Refill(
            self._library,
            self._waves,
            (self._name, *self._near),
            lambda journal: (journal, *self._overlay.within(journal, self._radius)),
            self._f + 1,
            self._membership.excluded,
            lambda effect: self._effects.append(effect),
            is_first=life == 0,
        )
        history = self._library.history
        self._estates = Estates(self._home, self._membership, self._journal, history, self._tell_near, self._disk)
        self._clients = Desk(
            self._home,
            self._options,
            self._table,
            self._journal,
            send=self._send_client,
            set_timer=lambda effect: self._effects.append(effect),
            process=lambda events, number: self._events.process(events, LOCAL, None, number),
            find_home=self._estates.find_home,
            find_elsewhere=self._estates.find_elsewhere,
            contacts=(self._name, *self._overlay.within(self._name, self._f + 1)),
            readings=lambda desk: Readings(
                self._library,
                self._waves,
                self._clock,
                self._options.delivery_window,
                desk.enter,
                desk.flush,
                self._table.match,
                hurry=lambda: self._course.hurry(),
            ),
        )
        self._names = Names(
            self._name,
            self._options,
            self._register,
            self._clients,
            self._waves,
            proposals=lambda send: Proposals(
                lambda: self._home,
                self._register.keepers,
                lambda: self._clock.now,
                send,
                set_timer=lambda effect: self._effects.append(effect),
            ),
            send=lambda peer, message: self._effects.append(Send(peer, message)),
            send_client=self._send_client,
        )
        self._state = state = BrokerState(
            self._options,
            self._membership,
            self._table,
            self._log,
            self._journal,
            self._waves,
            self._estates,
            self._clients,
        )
        self._events = EventCourse(state, lambda: self._handovers, self._send_tree)
        self._handovers = Handovers(
            state,
            Outlets(
                send=self._send,
                send_tree=self._send_tree,
                process=self._events.process_merged,
                replay=lambda link, body: self._tree.take(link, body),
                links_changed=self._links_changed,
                set_timer=lambda effect: self._effects.append(effect),
                learn=self._learn,
            ),
        )
        self._course = WaveCourse(
            state, self._handovers, self._refill, self._send_tree, lambda effect: self._effects.append(effect)
        )
        self._keeper = Keeper(state, self._library, self._disk, life, self._answer_backup)
        if found is not None:
            self._keeper.take_over(found)
        self._tree = TreeCourse(state, self._handovers, self._events, self._course, self._send_tree)
        self._table.is_complete = life == 0
        if life == 0:
            for peer in self._overlay.neighbours(self._name):
                self._table.links[peer] = Link(peer, peer, 0)

    # ---- inputs -------------------------------------------------------------------------------------------

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Take one input; return what it causes."""
        self._effects = []
        self._clients.now = self._clock.now = now
        self._turns.take(item)
        self._names.tell_reached()
        if self._disk.is_there:
            self._effects += self._keeper.end_step()
        return self._effects

    def _handle(self, item: Input) -> None:
        if self._away is not None:
            self._on_input_while_away(item, self._away)
            return
        match item:
            case Received():
                self._on_received(item.peer, item.message)
            case TimerFired():
                self._on_timer(item)
            case Connected():
                self._on_connected(item)
            case Suspected():
                self._on_suspected(item)
            case Trusted():
                self._on_trusted(item)
            case Start():
                self._on_start()
            case EndSession():
                self._on_end_session(item)
            case Persisted():
                self._on_persisted(item)
            case HistoryRead():
                self._library.looked_up(item)
            case _:
                raise AssertionError(f"no input of a broker: {item!r}")

    def state_size(self) -> Mapping[str, int]:
        """How much the broker keeps."""
        return {
            "subscriptions": len(self._table.subscriptions),
            "advertisements": len(self._table.advertisements),
            "retained": len(self._log),
            "held for others": len(self._estates),
            "unacknowledged": sum(channel.pending() for channel in self._channels.values()),
        }

    def overview(self) -> dict[str, Any]:
        """What an operator wants to know: who is out, who stands in, what is going on."""
        return overview(self._state, self._handovers, self._life, self._near, is_away=self._away is not None)

    def _on_start(self) -> None:
        if self._life:
            self._news.announce()
            self._await_others()
        self._refresh()

    def _await_others(self) -> None:
        """With a disk: let those return who are later than this one."""
        if self._disk.is_there:
            self._membership.is_patient = True
            self._effects.append(SetTimer(RETURNING, int(self._options.return_ms * 1000)))

    def _on_received(self, peer: str, message: Any) -> None:
        kind = type(message)
        if kind is Frame or kind is Resume or kind is Ack:
            if self._listens_to(peer, message.life):
                if self._membership.hear(peer):
                    self._news.repeat_accusations()
                    self._refresh()
                self._on_channel(peer, message)
        elif kind is Fenced:
            self._on_fenced(peer, message)
        elif kind in NAME_MESSAGES and peer in self._overlay:
            self._names.receive(peer, message)
        elif peer in self._overlay:
            self._library.receive(peer, message)
        elif kind is Attach:
            self._clock.see(min(message.clock, self._clock.now + SKEW_MAX_US))
            self._clients.attach(peer, message)
            self._course.echo_if_due()
        elif kind in NAME_CALLS:
            self._names.call(peer, message)
        else:
            self._clients.receive(peer, message)
            self._course.echo_if_due()

    def _on_channel(self, peer: str, message: Frame | Resume | Ack) -> None:
        channel = self._channel(peer)
        if isinstance(message, Frame):
            body = channel.received(message)
            if body is not None:
                self._on_body(peer, body)
        elif isinstance(message, Resume):
            channel.resumed(message)
        else:
            channel.acknowledged(message)

    def _on_body(self, peer: str, body: Body) -> None:
        match body:
            case Tree():
                self._tree.receive(peer, body)
            case Backup():
                self._on_backup(peer, body)
            case BackupHeld():
                self._on_backup_held(peer, body)
            case BackupAll():
                self._on_backup_all(peer, body)
            case BackupEnd():
                self._keeper.end(peer)
                self._estates.end(peer, self._channel(peer).peer_life)
            case MembershipNews():
                self._learn(body.status)
            case Accuse():
                self._on_accuse(peer, body)
            case Sync():
                self._on_sync(peer, body)
            case Completed():
                self._handovers.receive_completed(peer, body)
            case Resolved():
                self._estates.resolved(peer, body)
            case _:
                assert_never(body)

    def _on_connected(self, item: Connected) -> None:
        if item.peer in self._overlay:
            if self._membership.excluded(item.peer):
                self._fence(item.peer)
            else:
                self._channel(item.peer).reconnect()

    def _on_suspected(self, item: Suspected) -> None:
        if item.peer not in self._overlay:
            self._clients.lost_sight(item.peer)
            return
        self._membership.suspect(item.peer)
        self._effects.append(SetTimer(f"overdue/{item.peer}", int(self._options.patience_ms * 1000)))
        self._news.speak_of(item.peer, guilty=True)
        self._refresh()

    def _on_trusted(self, item: Trusted) -> None:
        if item.peer in self._overlay:
            self._membership.trust(item.peer)
            self._news.speak_of(item.peer, guilty=False)
            self._clients.serve(not self._membership.is_cut_off())
            if self._waits and not self._membership.excluded(item.peer):
                self._news.introduce(item.peer)
        else:
            self._clients.caught_sight(item.peer)

    def _on_timer(self, item: TimerFired) -> None:
        kind, _, rest = item.key.partition("/")
        if kind == WAVE:
            self._course.tick()
        elif kind == "renew":
            if self._membership.suspects(rest):
                self._on_suspected(Suspected(rest))
        elif kind == "overdue":
            self._membership.grow_overdue(rest)
            self._refresh()
        elif kind == RETURNING:
            self._membership.is_patient = False
            self._refresh()
        elif kind == LIBRARY:
            self._library.tick()
        elif kind == NAMES:
            self._names.tick()
        elif kind == REFILL:
            self._refill.rested()
        elif kind == LAG:
            self._clients.lagging.check(self._clock.now, self._waves.reached)
            self._course.echo_if_due()
        elif kind == "return":
            self._handovers.send_home(rest)
        elif kind == "session":
            self._clients.expire(rest)
            self._course.echo_if_due()

    def _on_end_session(self, item: EndSession) -> None:
        self._clients.end(item.client)
        self._course.echo_if_due()

    def has_session(self, client: str) -> bool:
        """Whether the client's session is here."""
        return client in self._clients.sessions

    def sessions(self) -> list[str]:
        """The clients whose sessions are here."""
        return list(self._clients.sessions)

    def reads_history(self, client: str) -> bool:
        """Whether the client is brought what was published before."""
        session = self._clients.sessions.get(client)
        return session is not None and (session.has_history or bool(self._clients.readings.of(client)))

    def held_by(self, client: str) -> dict[str, str]:
        """The filters of a client's subscriptions, by name."""
        session = self._clients.sessions.get(client)
        return {} if session is None else {name: item.filter.text for name, item in session.subscriptions.items()}

    # ---- streams ------------------------------------------------------------------------------------------

    def _channel(self, peer: str) -> Channel:
        channel = self._channels.get(peer)
        if channel is None:
            life = self._membership.life(peer)
            channel = Channel(self._life, life, lambda message: self._effects.append(Send(peer, message)), self._clock)
            self._channels[peer] = channel
        return channel

    def _send(self, peer: str, body: Body) -> None:
        if not self._membership.excluded(peer):
            self._channel(peer).send(body)

    def _send_tree(self, link: Link, body: TreeBody) -> None:
        self._send(link.peer, Tree(link.tag, body))

    def _send_client(self, client: str, message: Any) -> None:
        self._effects.append(Send(client, message))

    def _listens_to(self, peer: str, life: int) -> bool:
        """Fence off excluded lives; learn of new ones."""
        if life > self._membership.life(peer):
            self._learn({peer: alive_status(life)})
        if self._membership.lives(peer, life):
            return True
        self._fence(peer)
        return False

    def _fence(self, peer: str) -> None:
        self._effects.append(Send(peer, Fenced(self._life, {peer: self._membership.status[peer]})))

    # ---- membership ---------------------------------------------------------------------------------------

    def _learn(self, status: Mapping[str, int]) -> None:
        """Someone knows more of who lives, or of who is settled."""
        if not self._membership.is_news(status):
            return
        regions = self._handovers.regions()
        before = dict(self._membership.status)
        news = self._membership.merge(status)
        news |= self._membership.merge(self._handovers.doubt(news))
        if self._membership.excluded(self._name) or life_of(news.get(self._name, 0)) > self._life:
            self._leave(news[self._name])
        else:
            born = [name for name, value in news.items() if life_of(value) > life_of(before.get(name, 0))]
            born = [name for name in born if not self._membership.excluded(name)]
            for name in born:
                if name in self._channels:
                    self._channels[name].meet(self._membership.life(name))
            self._tell_news(news, regions)
            for name in born:
                if self._membership.suspects(name):
                    self._effects.append(SetTimer(f"renew/{name}", RENEW_US))
            for name in born:
                self._news.introduce(name)
            self._news.repeat_accusations()
            self._refresh()

    def _tell_news(self, news: Mapping[str, int], regions: Sequence[Region] = ()) -> None:
        """Tell who must know, and listen to nobody who is out: the given regions count, and those that are now."""
        self._news.spread(news, (*regions, *self._handovers.regions()))
        for name in news:
            if self._membership.excluded(name):
                self._channels.pop(name, None)
                self._fence(name)

    def _leave(self, status: int) -> None:
        """This life was excluded: send the clients away and come back as a new one, mostly at once."""
        rest_us = self._rests.end(self._clock.now)
        if not rest_us:
            self._start_over(status)
            return
        self._clients.dismiss_all()
        self._handovers.has_work = False
        self._away = status
        self._effects.append(SetTimer(REST, rest_us))

    def _on_input_while_away(self, item: Input, status: int) -> None:
        """Only who is heard matters, and when to return."""
        if isinstance(item, TimerFired) and item.key == REST:
            self._away = None
            self._start_over(status)
        elif isinstance(item, Suspected) and item.peer in self._overlay:
            self._membership.suspect(item.peer)
        elif isinstance(item, Trusted) and item.peer in self._overlay:
            self._membership.trust(item.peer)

    def _start_over(self, status: int) -> None:
        """Begin the next life."""
        found = self._keeper.give_up(self._life) if self._disk.is_there or self._waits else None
        known = dict(self._membership.status) if self._membership.hears_somebody() else {}
        suspected = [name for name in self._near if self._membership.suspects(name)]
        self._clients.dismiss_all()
        self._rests.begin(self._clock.now)
        self._begin(life_of(status) + 1, found)
        self._membership.merge({name: value for name, value in known.items() if name != self._name})
        for name in suspected:
            self._membership.suspect(name)
        self._news.announce()
        self._await_others()
        self._refresh()

    def _on_fenced(self, peer: str, message: Fenced) -> None:
        """Believe it, unless it comes from one who is out itself, while others are still to be heard.

        A life that is not known here is none that is out. The smallest story: b4 stands still and is excluded; before
        it goes on, the whole network is killed and comes back. Everyone that b4 hears then is in another life.
        """
        is_new = message.life > self._membership.life(peer)
        if is_new or self._membership.lives(peer, message.life) or not self._membership.hears_somebody():
            self._learn(message.status)

    def _on_accuse(self, peer: str, body: Accuse) -> None:
        self._membership.accuse(peer, body.broker, body.life, body.guilty)
        self._refresh()

    def _refresh(self) -> None:
        """Bring everything in line with who lives."""
        verdicts = self._membership.verdicts()
        if verdicts:
            self._tell_news(verdicts)
            self._news.repeat_accusations()
        self._clients.serve(not self._membership.is_cut_off())
        if self._waits and self._life and self._membership.was_taken_in:
            self._estates.drop_found()
        self._choose_backups()
        self._handovers.follow()
        self._refill.follow()
        self._course.tick_if_root()

    def _choose_backups(self) -> None:
        alive = islice((name for name in self._near if not self._membership.excluded(name)), self._f)
        self._journal.choose_backups({name: self._membership.life(name) for name in alive})
        self._clients.held()
        self._estates.resolve()
        self._course.echo_if_due()

    # ---- hand-over ----------------------------------------------------------------------------------------

    def _on_sync(self, peer: str, body: Sync) -> None:
        life = self._life
        self._learn(body.status)
        if life == self._life:
            newer = {name: self._membership.status.get(name, 0) for name in body.status}
            newer = {name: value for name, value in newer.items() if value > body.status[name]}
            if newer:
                self._send(peer, MembershipNews(newer))
            self._handovers.receive(peer, body)

    def _links_changed(self) -> None:
        self._clients.readiness.check()
        self._course.tick_if_root()
        self._course.hurry(again=True)

    # ---- backups ------------------------------------------------------------------------------------------

    def _tell_near(self, message: Body) -> None:
        for peer in self._near:
            self._send(peer, message)

    def _on_backup_all(self, peer: str, body: BackupAll) -> None:
        life = self._channel(peer).peer_life
        self._estates.restore(peer, life, body)
        self._keeper.answer(peer, life, body.number)

    def _on_backup(self, peer: str, body: Backup) -> None:
        life = self._channel(peer).peer_life
        if self._estates.note(peer, life, body):
            self._keeper.answer(peer, life, body.number)

    def _answer_backup(self, peer: str, life: int, number: int) -> None:
        if self._membership.lives(peer, life):
            self._send(peer, BackupHeld(number))

    def _on_persisted(self, item: Persisted) -> None:
        self._keeper.persisted(item.number)
        self._names.persisted(item.number)
        self._clients.held()
        self._estates.resolve()
        self._course.echo_if_due()

    def _on_backup_held(self, peer: str, body: BackupHeld) -> None:
        self._journal.answered(peer, self._channel(peer).peer_life, body.number)
        self._clients.held()
        self._estates.resolve()
        self._course.echo_if_due()
