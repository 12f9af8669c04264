"""Final positions: consistent cuts of the whole network, each identified by a timestamp.

The root (the lowest-ranked broker that has joined) sends a **wave** with a timestamp. Every broker advances its clock
past it, so that later admissions have larger timestamps. It echoes when all brokers behind it have echoed and
everything it had admitted before is released. Then the position is **final**: no event can get such a timestamp any
more. Since links are FIFO, every broker has processed all such events for it when `Final` arrives.

Echoes also name the incarnations that handovers have removed. A seal that a final position includes is a **fence**:
everything that those incarnations had admitted has arrived everywhere.

A wave that used a link which a handover removed is dropped; the members of the handover ask the root for another.
"""

import zlib

from gapless.protocols.gapless.client_state import LocalState, Session
from gapless.protocols.gapless.history import refill, trim
from gapless.protocols.gapless.identities import Incarnation
from gapless.protocols.gapless.link_messages import Echo, Final, FinalPosition, Wave
from gapless.protocols.gapless.membership_state import Stage
from gapless.protocols.gapless.messages import RequestWave
from gapless.protocols.gapless.outbox import note_position
from gapless.protocols.gapless.routing_state import Link, WaveState
from gapless.protocols.gapless.state import BrokerState, Due

__all__ = [
    "WAVE_TIMER",
    "ask_wave",
    "begin_wanted_wave",
    "drop_wave",
    "echo_if_due",
    "is_root",
    "learn_final",
    "receive_echo",
    "receive_final",
    "receive_request",
    "receive_wave",
    "root",
    "set_wave_timer",
    "tick",
]

WAVE_TIMER = "wave"
NOTIFIED_PER_S = 2_000
"""The number of clients notified of final positions per second. Few clients are notified of each position; with 10,000
clients, each one is notified every five seconds. A client with an older position only reads more history when it moves.
"""
IDLE_US = 1_000_000
"""A client to which nothing else was sent is notified again after one to two times this interval. The factor depends on
its name, so that not all are notified in the same step."""
PATIENCE = 20
"""The number of wave intervals after which the root begins another wave if the current one has not ended."""


def root(s: BrokerState) -> str | None:
    """Return the broker that begins the waves; None if no broker has joined."""
    return next((name for name in s.topology.brokers if s.status(name).is_joined), None)


def is_root(s: BrokerState) -> bool:
    """Return whether this broker begins the waves."""
    return root(s) == s.name and s.stage is Stage.JOINED


def ask_wave(s: BrokerState, *, is_lost: bool = False) -> None:
    """Ask the root for a wave because a final position is needed, at most once until the next one. With `is_lost`, the
    current wave may have used a removed link."""
    first = root(s)
    if first is None or (s.has_asked_wave and not is_lost):
        return
    s.has_asked_wave = True
    if first == s.name:
        receive_request(s, RequestWave(is_lost))
    else:
        s.send(first, RequestWave(is_lost))


def receive_request(s: BrokerState, message: RequestWave) -> None:
    """Process a request for a wave."""
    s.wave_wanted = True
    s.wave_lost |= message.is_lost
    s.due |= Due.WAVE


def tick(s: BrokerState) -> None:
    """Begin a wave at the root, and set the timer for the next."""
    if is_root(s):
        _begin_wave(s)
        set_wave_timer(s)


def set_wave_timer(s: BrokerState) -> None:
    """Set the timer for waves if this broker is the root and no such timer runs."""
    if is_root(s):
        s.set_timer_once(WAVE_TIMER, int(s.options.wave_ms * 1000))


def begin_wanted_wave(s: BrokerState) -> None:
    """At the root: begin a wave if one was requested and none is in progress, or if the last one is lost."""
    if (s.wave_lost or (s.wave_wanted and s.wave is None)) and is_root(s):
        _begin_wave(s)


def _begin_wave(s: BrokerState) -> None:
    if s.is_frozen:
        return
    interval = int(s.options.wave_ms * 1000)
    if s.wave is not None and s.clock.now - s.wave_began < PATIENCE * interval and not s.wave_lost:
        return
    s.wave_wanted = s.wave_lost = False
    s.wave_began = s.clock.now
    _pass_on(s, None, Wave(s.clock.next(), s.smallest_final))


def receive_wave(s: BrokerState, link: Link, message: Wave) -> None:
    """Process a wave."""
    if s.wave is None or s.wave.timestamp < message.timestamp:
        _pass_on(s, link, message)


def _pass_on(s: BrokerState, origin: Link | None, wave: Wave) -> None:
    s.clock.see(wave.timestamp)
    if wave.stable > s.stable:
        s.stable = wave.stable
        if s.log:
            s.log = {key: events for key, events in s.log.items() if events.stamp > s.stable}
        trim(s)
        if s.refilling is None:
            refill(s)
    onward = [link for link in s.links.values() if link is not origin]
    s.due |= Due.ECHO
    s.disk.is_clock_due = True
    s.wave = WaveState(
        wave.timestamp, origin, len(s.journal), {link.key for link in onward}, {}, s.final.timestamp, s.disk.next
    )
    for link in onward:
        s.send_along(link, wave)


def receive_echo(s: BrokerState, link: Link, message: Echo) -> None:
    """Process the echo of all brokers behind a link."""
    wave = s.wave
    if wave is None or wave.timestamp != message.timestamp or link.key not in wave.waits_for:
        return
    wave.waits_for.discard(link.key)
    wave.final, wave.newest = min(wave.final, message.final), max(wave.newest, message.newest)
    _add_seals(wave.sealed, message.sealed)
    s.due |= Due.ECHO


def _add_seals(known: dict[Incarnation, int], more: list[tuple[Incarnation, int]]) -> None:
    for incarnation, clock in more:
        incarnation = Incarnation(*incarnation)
        known[incarnation] = min(clock, known.get(incarnation, clock))


def echo_if_due(s: BrokerState) -> None:
    """Echo the current wave if its conditions are met. The root declares the position final instead."""
    wave = s.wave
    if wave is None or wave.waits_for or s.released < wave.need or s.disk.persisted < wave.batch:
        return
    s.wave = None
    s.due |= Due.WAVE
    new = [(each, clock) for each, clock in s.sealed_here.items() if each not in s.sealed_final]
    _add_seals(wave.sealed, new)
    wave.newest = max(wave.newest, *(each.last_timestamp for each in (s.journal, *s.journals.values())))
    if wave.origin is not None:
        s.send_along(wave.origin, Echo(wave.timestamp, list(wave.sealed.items()), wave.final, wave.newest))
        return
    s.smallest_final = wave.final
    sealed = dict(s.sealed_final)
    _add_seals(sealed, list(wave.sealed.items()))
    receive_final(s, None, Final(FinalPosition(wave.timestamp, list(sealed.items()), wave.newest)))


def receive_final(s: BrokerState, origin: Link | None, message: Final) -> None:
    """Process a final position."""
    for link in s.links.values():
        if link is not origin:
            s.send_along(link, message)
    learn_final(s, message.position)


def learn_final(s: BrokerState, position: FinalPosition) -> None:
    """Record a final position, and notify the clients."""
    if position.timestamp <= s.final.timestamp:
        return
    s.final = position
    s.has_asked_wave = False
    s.due_readings |= dict.fromkeys(s.readings)
    s.due |= Due.AFTER_FINAL
    _add_seals(s.sealed_final, position.sealed)
    for client in _next_notified(s):
        session = s.sessions.get(client)
        if session is not None and not _is_idle(session, position.timestamp) and _has_live(session):
            note_position(s, session, position.timestamp)


def _next_notified(s: BrokerState) -> list[str]:
    """Return the clients to notify of this position: the next ones in turn, as many as `NOTIFIED_PER_S` allows."""
    due = (s.clock.now - s.notified_at) * NOTIFIED_PER_S // 1_000_000
    if due <= 0:
        return []
    s.notified_at = s.clock.now
    if due >= len(s.sessions):
        s.notified_next.clear()
        return list(s.sessions)
    if not s.notified_next:
        s.notified_next.extend(s.sessions)
    return [s.notified_next.popleft() for _ in range(min(due, len(s.notified_next)))]


def _is_idle(session: Session, timestamp: int) -> bool:
    """Return whether nothing was queued for the client since its last notification, and that was shortly before this
    position."""
    place, notified = session.position_sent
    pause_us = IDLE_US + zlib.crc32(session.client.encode()) % IDLE_US
    return session.next_place == place + 1 and timestamp - notified < pause_us


def _has_live(session: Session) -> bool:
    return any(each.state is LocalState.LIVE for each in session.locals.values())


def drop_wave(s: BrokerState, removed: list[Link]) -> None:
    """Drop the current wave if it used a removed link, because it cannot complete."""
    keys = {link.key for link in removed}
    if s.wave is not None and (s.wave.origin in removed or s.wave.waits_for & keys):
        s.wave = None
        s.due |= Due.WAVE
