"""How the cost of a publication grows with the number of other clients."""

from gapless.event_runs import EventRun
from gapless.events import Event
from gapless.protocol import Received
from gapless.protocols.gapless.client_messages import ClientAdvertise, ClientPublish
from tests.filters.test_work import lines_of

from .bench import Bench

FEW, MANY = 5, 200


def lines_of_a_publication(publishers: int) -> int:
    """Return the number of lines that a broker executes for a publication beside this number of other publishers."""
    bench = Bench(2)
    for number in range(publishers):
        bench.attach(f"p{number}", "b0")
        bench.say(f"p{number}", "b0", ClientAdvertise(1, f"p{number}/a1", f"topic = 't{number}'"))
    bench.begin_honest()
    publication = ClientPublish(1, EventRun.of([Event("honest", 1, {"topic": "honest"})]))
    lines = lines_of(lambda: bench.nodes["b0"].step(Received("honest", publication), bench.now))
    bench.pass_time(1.0)
    return lines


def test_advertisements_of_others_do_not_make_a_publication_more_expensive() -> None:
    assert lines_of_a_publication(MANY) <= lines_of_a_publication(FEW) + MANY // 10
