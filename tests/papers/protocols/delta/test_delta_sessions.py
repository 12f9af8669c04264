"""Sessions: both ends agree, and ignore messages of earlier sessions."""

from collections import deque
from typing import Any

import pytest

from gapless.overlay import chain
from gapless_papers.protocols.delta.messages import Hello, Partition, Use
from gapless_papers.protocols.delta.neighbourhood import Neighbourhood
from gapless_papers.protocols.delta.sessions import Session, Sessions


class End:
    """One broker with its sessions; the messages that it sends wait in a queue for each peer."""

    def __init__(self, name: str, brokers: int = 3, incarnation: int = 0) -> None:
        self.name = name
        self.around = Neighbourhood(name, chain(brokers), 2)
        self.outgoing: dict[str, deque[Any]] = {}
        self.closed: list[str] = []
        self.greeted: list[str] = []
        self.sessions = Sessions(incarnation, self.around, self._send, self)

    def _send(self, peer: str, message: object) -> None:
        self.outgoing.setdefault(peer, deque()).append(message)

    def summary(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[Partition, ...]]:
        return (f"known to {self.name}",), (), ()

    def on_greeted(self, session: Session, hello: Hello) -> None:
        assert hello.confirmed == (f"known to {session.peer}",)
        self.greeted.append(session.peer)

    def on_closed(self, session: Session) -> None:
        self.closed.append(session.peer)

    def suspect(self, peer: str) -> None:
        self.around.suspect(peer)
        self.sessions.on_suspected(peer)
        self.around.survey()
        self.sessions.use_active()

    def trust(self, peer: str) -> None:
        self.around.trust(peer)
        self.around.survey()
        self.sessions.use_active()
        self.sessions.on_trusted(peer)


def talk(*ends: End) -> None:
    """Deliver all messages, in turn, until none is left."""
    by_name = {end.name: end for end in ends}
    while any(queue for end in ends for peer, queue in end.outgoing.items() if peer in by_name):
        for end in ends:
            for peer, queue in end.outgoing.items():
                if peer in by_name and queue:
                    receive(by_name[peer], end.name, queue.popleft())


def receive(end: End, peer: str, message: Any) -> None:
    if isinstance(message, Hello):
        end.sessions.on_hello(peer, message)
    elif isinstance(message, Use):
        end.sessions.on_use(peer, message)


def agree(one: End, other: End) -> bool:
    here, there = one.sessions.get(other.name), other.sessions.get(one.name)
    return (
        here.is_peer_informed_of_session
        and there.is_peer_informed_of_session
        and (here.mine, here.theirs) == (there.theirs, there.mine) != ((), ())
    )


@pytest.fixture
def ends() -> tuple[End, End]:
    """Return b0 and b2, between which b1 has died; only b0 knows that yet."""
    one, other = End("b0"), End("b2")
    one.suspect("b1")
    return one, other


def test_neighbours_need_no_messages_at_the_start() -> None:
    one, other = End("b0"), End("b1")
    for end in (one, other):
        end.sessions.agree_silently()
    assert agree(one, other)
    assert not one.outgoing


def test_one_end_opens_a_session_and_the_other_accepts(ends: tuple[End, End]) -> None:
    one, other = ends
    talk(one, other)
    assert agree(one, other)
    assert (one.greeted, other.greeted) == (["b2"], ["b0"])
    assert one.sessions.get("b2").active
    assert not other.sessions.get("b0").active


def test_both_ends_open_a_session_at_once(ends: tuple[End, End]) -> None:
    one, other = ends
    other.suspect("b1")
    talk(one, other)
    assert agree(one, other)
    assert (one.greeted, other.greeted) == (["b2"], ["b0"])


def test_a_session_is_open_only_after_both_sides_know_its_number(ends: tuple[End, End]) -> None:
    one, other = ends
    receive(other, "b0", one.outgoing["b2"].popleft())
    there = other.sessions.get("b0")
    assert there.may_send
    assert not there.is_peer_informed_of_session, "b0 does not know this number yet: what comes may be older"
    talk(one, other)
    assert there.is_peer_informed_of_session


def test_a_broken_connection_starts_a_new_session(ends: tuple[End, End]) -> None:
    one, other = ends
    talk(one, other)
    before = one.sessions.get("b2").mine
    for end, peer in ((one, "b2"), (other, "b0")):
        end.sessions.on_connected(peer)
    talk(one, other)
    assert agree(one, other)
    assert one.sessions.get("b2").mine > before
    assert (one.closed, other.closed) == (["b2"], ["b0"])


def test_a_false_suspicion_ends_the_session_which_is_reopened_later(ends: tuple[End, End]) -> None:
    one, other = ends
    talk(one, other)
    other.suspect("b0")
    assert one.sessions.get("b2").is_peer_informed_of_session, "b0 knows nothing of it"
    other.trust("b0")
    talk(one, other)
    assert agree(one, other)
    assert one.closed == ["b2"]


def test_a_hello_from_a_suspected_broker_is_answered_when_it_is_trusted(ends: tuple[End, End]) -> None:
    one, other = ends
    other.suspect("b0")
    talk(one, other)
    assert not one.sessions.get("b2").may_send
    other.trust("b0")
    talk(one, other)
    assert agree(one, other)


def test_a_restarted_broker_is_distinguished_from_its_previous_incarnation(ends: tuple[End, End]) -> None:
    one, other = ends
    talk(one, other)
    fresh = End("b0", incarnation=1)
    fresh.suspect("b1")
    talk(fresh, other)
    assert agree(fresh, other)
    assert other.closed == ["b0"]


def test_a_session_that_neither_uses_is_closed(ends: tuple[End, End]) -> None:
    one, other = ends
    talk(one, other)
    one.trust("b1")
    talk(one, other)
    assert not one.sessions.get("b2").may_send
    assert not other.sessions.get("b0").may_send
    assert len(one.sessions) == len(other.sessions) == 0


def test_an_end_that_starts_to_use_a_session_while_the_other_closes_it_gets_a_new_one(ends: tuple[End, End]) -> None:
    one, other = ends
    talk(one, other)
    one.trust("b1")
    other.suspect("b1")
    talk(one, other)
    assert agree(one, other)
    assert other.sessions.get("b0").active
