"""A broker of the protocol: dispatches each input to its handler, then re-establishes the state's invariants.

Handlers change one state (`state`), collect effects, and mark in `due` what they make necessary. `_settle` does that
after each input, until nothing is due. Timers run only while something waits for them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from gapless.protocol import (
    BrokerNode,
    BrokerPlace,
    Connected,
    DeleteEvents,
    Effect,
    EndSession,
    Forget,
    Input,
    Persisted,
    Received,
    Resumed,
    SetTimer,
    Start,
    Suspected,
    TimerFired,
    Trusted,
)
from gapless.protocols.gapless import (
    calls,
    deleting,
    disk,
    fences,
    handover,
    history,
    inputs,
    journal,
    local,
    membership,
    positions,
    reading,
    recovery,
    sealed_journals,
    sealing,
    sessions,
)
from gapless.protocols.gapless.client_state import SessionPhase
from gapless.protocols.gapless.durable import service as durable_service
from gapless.protocols.gapless.durable import steps as durable
from gapless.protocols.gapless.durable.state import GROUP_CLIENT
from gapless.protocols.gapless.identities import Status
from gapless.protocols.gapless.membership_state import Stage
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.overview import overview
from gapless.protocols.gapless.routing_state import Link
from gapless.protocols.gapless.state import BrokerState, Due
from gapless.protocols.gapless.topology import topology_of

__all__ = ["GaplessBroker"]

NUMBER_STEP = 1_000
"""The step between incarnations: a restart outranks any number of exclusions of the previous incarnation."""
RETRY_TIMER = "retry"
RETRY_US = 100_000
"""The interval at which unanswered requests are repeated, in microseconds."""
ANNOUNCE_TICKS = 50
"""The number of retry intervals after which a new incarnation repeats its announcement."""


def _settle_membership(s: BrokerState) -> None:
    for peer in membership.peers(s):
        if peer not in s.greeted and s.is_live(peer):
            membership.greet(s, peer)
            sealing.repeat_proposals(s, peer)
    if s.stage is Stage.RECOVERING:
        recovery.recover(s)
    sealing.propose_where_due(s)
    status = s.status(s.name)
    if s.stage is Stage.EXCLUDED:
        return
    if s.stage is not Stage.RECOVERING:
        s.stage = Stage.JOINED if status.is_joined else Stage.JOINING
    elif status.sealed_below >= s.number and recovery.has_recovered(s):
        s.stage = Stage.JOINING
    journal.replicate(s)
    recovery.answer_again(s)
    sessions.check_isolation(s)
    fences.ask_holders(s)
    s.deletes = any(each.deleted for each in s.statuses.values())
    positions.set_wave_timer(s)
    s.due = Due.ALL & ~Due.MEMBERSHIP | s.due


def _repeat_requests(s: BrokerState) -> None:
    """Set the retry timer if an unanswered request or unfinished work needs another retry interval."""
    if (
        s.readings or s.arrivals or s.wanted_journals or s.refilling or s.deletes or not s.is_installed
        or durable.has_requests(s)
    ):  # fmt: skip
        s.set_timer_once(RETRY_TIMER, RETRY_US)


RULES: Mapping[int, Callable[[BrokerState], None]] = {
    Due.MEMBERSHIP: _settle_membership,
    Due.HANDOVER: handover.advance,
    Due.REQUESTS: _repeat_requests,
    Due.LAGGING: local.switch_lagging_to_history,
    Due.SEARCHES: local.find_newest,
    Due.READINGS: local.read_on,
    Due.RESTARTS: local.restart_attempts,
    Due.ATTEMPTS: local.activate_whole,
    Due.CALLS: calls.admit_queued,
    Due.RELEASE: journal.release,
    Due.WAVE: positions.begin_wanted_wave,
    Due.ECHO: positions.echo_if_due,
    Due.FENCES: fences.check_fences,
}
"""The function that establishes the invariant of each `Due` bit."""


def _retry(s: BrokerState, _rest: str) -> None:
    s.ticks += 1
    s.due |= Due.REQUESTS
    if s.ticks % ANNOUNCE_TICKS == 0:
        s.asked_vouchers.clear()
        handover.ask_vouchers(s)
    sealed_journals.ask_journals(s)
    fences.ask_fences(s)
    reading.ask_again(s)
    if s.refilling:
        history.refill(s)
    deleting.delete_batch(s)
    durable.tick(s)


def _read_on(s: BrokerState, _rest: str) -> None:
    s.is_resting, s.read_work = False, 0
    s.due |= Due.READINGS


def _continue_proposal(s: BrokerState, broker: str) -> None:
    sealing.continue_proposal(s, broker)
    s.due |= Due.MEMBERSHIP


def _expire(s: BrokerState, client: str) -> None:
    sessions.expire(s, client)
    if s.sessions.get(client) is None or s.sessions[client].phase is SessionPhase.CLOSING:
        durable_service.note_absence(s, client)


def _stop_waiting(s: BrokerState, _rest: str) -> None:
    s.has_waited = True
    s.due |= Due.MEMBERSHIP


TIMERS: Mapping[str, Callable[[BrokerState, str], None]] = {
    RETRY_TIMER: _retry,
    positions.WAVE_TIMER: lambda s, _rest: positions.tick(s),
    reading.READ_TIMER: _read_on,
    sealing.PROPOSAL_TIMER: _continue_proposal,
    membership.ACCUSATION_TIMER: membership.accuse_again,
    sessions.SESSION_TIMER: _expire,
    sessions.ISOLATION_TIMER: lambda s, _rest: sessions.cut_off(s),
    recovery.RETURN_TIMER: _stop_waiting,
}
"""The handler of each kind of timer, by the part of the timer's key before the first slash."""


class GaplessBroker(BrokerNode):
    """A broker node of the protocol."""

    def __init__(self, place: BrokerPlace, options: GaplessOptions) -> None:
        self._topology = topology_of(place.overlay, place.f)
        self.state = BrokerState(place.name, place.incarnation * NUMBER_STEP, self._topology, options)
        self.state.owners = place.owners
        if place.disk is not None:
            disk.restore(self.state, place.disk)

    def step(self, item: Input, now: int) -> Sequence[Effect]:
        """Process one input and return its effects."""
        s = self.state
        effects: list[Effect] = []
        s.effects = effects
        s.clock.now = now
        s.read_work = reading.WORK_MAX if s.is_resting else 0  # several steps can belong to one turn of the event loop
        s.inbox_work = 0
        self._handle(s, item)
        self._settle()
        return effects

    # ---- inputs -------------------------------------------------------------------------------------------

    def _handle(self, s: BrokerState, item: Input) -> None:
        match item:
            case Received():
                if item.peer in self._topology.overlay:
                    inputs.receive(s, item.peer, item.message)
                else:
                    inputs.receive_client(s, item.peer, item.message)
            case TimerFired():
                self._timer_fired(s, item.key)
            case Connected():
                if item.peer in self._topology.overlay:
                    membership.connected(s, item.peer)
            case Suspected():
                if item.peer in self._topology.overlay:
                    membership.accuse(s, item.peer)
                else:
                    sessions.lost_client(s, item.peer)
            case Trusted():
                if item.peer in self._topology.overlay:
                    membership.withdraw_suspicion(s, item.peer)
                else:
                    sessions.mark_client_connected(s, item.peer)
            case Start():
                self._start(s)
            case EndSession():
                sessions.end_session(s, item.client)
            case Forget():
                membership.forget(s, item.broker)
            case DeleteEvents():
                deleting.delete_events(s, item.publisher)
            case Persisted():
                disk.persisted(s, item.number)
                s.due |= Due.RELEASE | Due.ECHO
            case Resumed():
                pass
            case _:
                raise AssertionError(f"no input of a broker: {item!r}")

    def _start(self, s: BrokerState) -> None:
        if s.number == 0:
            for peer in self._topology.overlay.neighbours(s.name):
                s.links[peer, 0] = Link(peer, 0, frozenset())
        for peer in self._topology.peers(s.name):
            membership.connected(s, peer)
        if s.stage is Stage.RECOVERING:
            s.emit(SetTimer(recovery.RETURN_TIMER, int(s.options.return_ms * 1000)))

    def _timer_fired(self, s: BrokerState, key: str) -> None:
        s.timers.discard(key)
        kind, _, rest = key.partition("/")
        TIMERS[kind](s, rest)

    # ---- establishing the invariants ----------------------------------------------------------------------

    def _settle(self) -> None:
        """Re-establish the invariants that must hold between steps."""
        while True:
            s = self.state
            due = s.due
            if due and (s.handover is not None or not s.is_installed):
                due &= Due.ALWAYS
            if due:
                if s.stage is Stage.EXCLUDED:
                    self._begin_anew(s)
                    continue
                rule = due & -due
                s.due &= ~rule
                RULES[rule](s)
            elif not (self._take_waiting(s) or ((s.disk.is_there or s.waiting) and self._pass_to_itself(s))):
                return

    def _take_waiting(self, s: BrokerState) -> bool:
        """Process the next input that was deferred during a handover. Return whether there was one."""
        if s.is_frozen or not (s.inbox or durable.is_due(s)):
            return False
        if durable.settle(s):
            return True
        if s.inbox and s.inbox_work >= inputs.WORK_MAX:
            reading.rest(s)
        elif s.inbox:
            s.inbox_work += inputs.work_of(s.inbox[0][1])
            inputs.take(s, *s.inbox.popleft())
            return True
        return False

    def _pass_to_itself(self, s: BrokerState) -> bool:
        """Write to the disk, and send the messages that were waiting for it. Return whether any was for this broker."""
        if s.disk.is_there:
            disk.collect(s)
        has_own = False
        for each in disk.take_due(s) if s.waiting else ():
            if each.peer == s.name:
                has_own = True
                inputs.AT_ONCE[type(each.body)](s, s.name, each.body)
            else:
                s.send(each.peer, each.body)
        return has_own

    def _begin_anew(self, old: BrokerState) -> None:
        """Start the next incarnation after the others have excluded this one. It keeps this one's promises and
        journals."""
        sessions.dismiss_all(old, "its broker was excluded by the others, and rejoins")
        number = max(old.status(old.name).sealed_below, old.number + 1)
        s = BrokerState(old.name, number, self._topology, old.options)
        s.effects, s.clock, s.disk, s.memory = old.effects, old.clock, old.disk, old.memory
        s.disk.are_statuses_changed = True
        s.disk.own_written.clear()
        s.disk.own_length = 0
        s.statuses = {**old.statuses, old.name: membership.merge(old.status(old.name), Status(number, 0, 0))}
        s.suspects, s.acceptors, s.ballot_round = old.suspects, old.acceptors, old.ballot_round
        s.journals = old.journals
        s.journals[old.incarnation] = old.journal
        old.journal.cut_to(dict(s.status(s.name).lengths).get(old.number, 0))
        s.sealed_final, s.owners, s.measures = old.sealed_final, old.owners, old.measures
        s.durable.take_register(old.durable)
        self.state = s
        self._start(s)
        for peer in sorted(s.suspects):
            membership.accuse(s, peer)

    # ---- queries ------------------------------------------------------------------------------------------

    def state_size(self) -> Mapping[str, int]:
        """Return the sizes of the broker's state, by component."""
        s = self.state
        return {
            "subscriptions": len(s.subscriptions),
            "advertisements": len(s.advertisements),
            "retained": len(s.log),
            "held for others": sum(map(len, s.journals.values())),
            "unacknowledged": sum(map(len, s.channels.values())),
        }

    def overview(self) -> dict[str, Any]:
        """Return the report for operators."""
        return overview(self.state)

    def sessions(self) -> list[str]:
        """Return the clients with sessions here."""
        return [name for name in self.state.sessions if not name.startswith(GROUP_CLIENT)]

    def has_session(self, client: str) -> bool:
        """Return whether the client's session is here."""
        return client in self.state.sessions

    def has_deleted(self, publisher: str) -> bool:
        """Return whether an operator has asked to delete the publisher's events up to some time."""
        return publisher in deleting.deletions(self.state)

    def may_hold_events_of(self, publisher: str) -> bool:
        """Return whether this broker's history may contain events of the publisher."""
        return deleting.may_hold(self.state, publisher)

    def held_by(self, client: str) -> dict[str, str]:
        """Return the filters of a client's subscriptions, by name."""
        session = self.state.sessions.get(client)
        return {} if session is None else {name: each.filter.text for name, each in session.locals.items()}

    def names_held(self, client: str) -> tuple[Collection[str], Collection[str]]:
        """Return the names of a client's subscriptions and advertisements."""
        session = self.state.sessions.get(client)
        if session is None:
            return (), ()
        subscriptions = self.held_by(client).keys()
        return subscriptions, session.held.keys() - subscriptions

    def reads_history(self, client: str) -> bool:
        """Return whether the client is reading history."""
        session = self.state.sessions.get(client)
        return session is not None and bool(session.readings)

    def take_history_bytes(self, client: str) -> int:
        """Return how many bytes of history were sent to the client since the last call."""
        session = self.state.sessions.get(client)
        if session is None:
            return 0
        found, session.history_bytes = session.history_bytes, 0
        return found
