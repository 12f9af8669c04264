"""Which events a durable subscription may omit: those acknowledged, and no others."""

from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.names import Acknowledged, EachAcknowledged
from gapless.protocol import Deliver, Send, Subscribe
from gapless.protocols.gapless.client_connection import ClientConnection
from gapless.protocols.gapless.client_publications import ClientPublications
from gapless.protocols.gapless.durable.client_messages import ClientAck
from gapless.protocols.gapless.durable.exclusive import ExclusiveAttachment
from gapless.protocols.gapless.durable.letters import Letters
from gapless.protocols.gapless.durable.messages import DurableRecord, Item, Progress
from gapless.protocols.gapless.durable.progress import ProgressTracker


def tracker(**known: object) -> ProgressTracker:
    return ProgressTracker(DurableRecord("n", "x > 0", Progress(5, **known), 1))  # type: ignore[arg-type]


def test_an_event_passes_when_none_before_it_is_unacknowledged() -> None:
    progress = tracker()
    for number in (1, 2, 3):
        assert progress.record_arrival(Item("p", number), 10 * number)
    progress.acknowledge(Item("p", 2))
    assert progress.advance() == []
    assert progress.write([]) == Progress(5, done={"p": [(2, 2)]})
    progress.acknowledge(Item("p", 1))
    assert progress.advance() == [Item("p", 1), Item("p", 2)]
    assert progress.write([]) == Progress(5, {"p": 2}, 20)


def test_an_event_acknowledged_before_does_not_pass_an_unacknowledged_one() -> None:
    progress = tracker(done={"p": [(2, 2)]})
    came = [progress.record_arrival(Item("p", number), 10) for number in (1, 2, 3)]
    assert came == [True, False, True]
    progress.advance()
    assert progress.write([]) == Progress(5, done={"p": [(2, 2)]})


def test_a_position_passes_behind_the_events_before_it() -> None:
    progress = tracker(got={"q": 7}, latest=8)
    progress.record_arrival(Item("p", 1), 10)
    progress.reached(20)
    progress.advance()
    assert progress.write([]) == Progress(5, {"q": 7}, 8)
    progress.acknowledge(Item("p", 1))
    progress.advance()
    assert progress.write([]) == Progress(20)


def test_lost_numbers_count_as_acknowledged_but_no_delivery_of_them_does() -> None:
    progress = tracker()
    progress.record_arrival(Item("p", 3), 10)
    progress.lost("p", 3, 11)
    assert progress.write([]) == Progress(5)
    progress.acknowledge(Item("p", 3))
    progress.advance()
    assert progress.write([]) == Progress(5, {"p": 3}, 11)


def attached(known: Progress) -> tuple[ClientConnection, ExclusiveAttachment]:
    connection = ClientConnection("ann", "b0")
    connection.is_attached = True
    letters = Letters(connection, ClientPublications(connection, 10))
    attachment = ExclusiveAttachment(Subscribe("s", "x > 0", name="n", ack="manual"), connection, letters)
    attachment.attached(DurableRecord("n", "x > 0", known, 1))
    connection.effects.clear()
    return connection, attachment


def acks(connection: ClientConnection) -> list[ClientAck]:
    sent = [effect.message for effect in connection.effects if isinstance(effect, Send)]
    return [message for message in sent if isinstance(message, ClientAck)]


def test_a_run_is_delivered_without_what_was_acknowledged_out_of_order() -> None:
    connection, attachment = attached(Progress(5, done={"p": [(2, 2)]}))
    for event in EventRun.of([Event("p", number, {"x": 1}, b"", 10 + number) for number in (1, 2, 3)]):
        attachment.take(event)
    attachment.reached(20)
    delivered = [effect.event.seq for effect in connection.effects if isinstance(effect, Deliver)]
    assert delivered == [1, 3]
    attachment.report()
    assert acks(connection)[-1].progress.got == {}, "1 is not acknowledged, and must come again"
    assert acks(connection)[-1].progress.position == 5


def test_acknowledgements_are_stored_up_to_the_first_that_is_not() -> None:
    connection, attachment = attached(Progress(5))
    for number in (1, 2, 3):
        attachment.take(Event("p", number, {"x": 1}, b"", 10 + number))
    attachment.acknowledge_each([3])
    attachment.report()
    attachment.acknowledge(1)
    assert not attachment.stored(acks(connection)[0].serial)
    assert EachAcknowledged("s", [3]) in connection.effects
    assert Acknowledged("s", 1, True) not in connection.effects
    assert not attachment.stored(acks(connection)[1].serial)
    assert Acknowledged("s", 1, True) in connection.effects
