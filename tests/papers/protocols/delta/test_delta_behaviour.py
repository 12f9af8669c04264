"""A simulated network of `delta` brokers, some of which fail; each link takes 10 ms."""

from typing import Any

import pytest

from gapless.events import Event
from gapless.overlay import Overlay, chain, from_edges, star
from gapless.protocol import Activated, Advertise, Confirmed, Deliver, Ended, Publish, Subscribe, Unsubscribe
from gapless.simulator import Latency, Settings, Simulation
from gapless_papers.protocols.delta.broker import DeltaBroker

MS = 1000


class Network:
    """A simulation, and the events that its clients receive."""

    def __init__(self, overlay: Overlay, f: int, **options: Any) -> None:
        settings = Settings(Latency(10 * MS, 10 * MS), detect_least_us=50 * MS, detect_most_us=50 * MS)
        self.simulation = Simulation(overlay, "delta", f=f, options=options, settings=settings)
        self.seen: list[tuple[float, str, Any]] = []

    def client(self, name: str, broker: str) -> None:
        self.simulation.add_client(name, broker)

    def publish(self, client: str, *at_ms: float) -> None:
        for at in at_ms:
            self.simulation.call(client, Publish({"x": 1}), at=round(at * MS))

    def subscribe(self, client: str, at_ms: float, name: str = "s") -> None:
        self.simulation.call(client, Subscribe(name, "x = 1"), at=round(at_ms * MS))

    def crash(self, broker: str, at_ms: float, until_ms: float | None = None, *, memory: bool = False) -> None:
        self.simulation.crash(broker, at=round(at_ms * MS))
        if until_ms is not None:
            self.simulation.restart(broker, at=round(until_ms * MS), memory=memory)

    def run(self, until_ms: float) -> "Network":
        handlers = self.simulation._handlers
        for kind in (Activated, Deliver, Ended, Confirmed):
            handlers[kind] = self._note
        self.result = self.simulation.run(until=round(until_ms * MS))
        return self

    def _note(self, slot: Any, effect: Any, now: int) -> None:
        self.seen.append((now / MS, slot.name, effect))

    def broker(self, name: str) -> DeltaBroker:
        node = self.simulation.slots[name].node
        assert isinstance(node, DeltaBroker)
        return node

    def size(self, broker: str, kind: str) -> int:
        return self.broker(broker).state_size()[kind]

    def numbers(self, client: str) -> list[int]:
        """Return the numbers of the events delivered to the client, in order."""
        return [effect.event.seq for _, name, effect in self.seen if name == client and isinstance(effect, Deliver)]

    def times(self, client: str, kind: type) -> list[float]:
        return [at for at, name, effect in self.seen if name == client and isinstance(effect, kind)]

    def count(self, message: str) -> int:
        return self.result.message_counts.get(message, 0)


def line(brokers: int, f: int, **options: Any) -> Network:
    """Return a chain with a publisher at one end and a subscriber at the other."""
    network = Network(chain(brokers), f, **options)
    network.client("p", "b0")
    network.client("c", f"b{brokers - 1}")
    return network


# ---- without failures


def test_a_subscription_holds_when_the_farthest_broker_has_confirmed_it() -> None:
    network = line(5, 1)
    network.subscribe("c", 100)
    network.run(300)
    assert network.times("c", Activated) == [100 + 2 * 4 * 10]


def test_a_publication_is_confirmed_when_all_subscribers_have_it() -> None:
    network = line(5, 1)
    network.subscribe("c", 0)
    network.publish("p", 200)
    network.run(400)
    assert network.times("c", Deliver) == [240]
    assert network.times("p", Confirmed) == [280]
    assert all(network.size(f"b{place}", "publications") == 0 for place in range(5))


def test_a_publication_is_forwarded_only_to_matching_subscriptions() -> None:
    network = Network(star(5), 1)
    network.client("p", "b1")
    network.client("c", "b2")
    network.subscribe("c", 0)
    network.publish("p", 100)
    network.run(300)
    assert network.count("Publication") == 2
    assert network.numbers("c") == [1]


# ---- bypassing


@pytest.mark.parametrize(("f", "dead"), [(1, ["b2"]), (2, ["b2", "b3"]), (3, ["b2", "b3", "b4"])])
def test_as_many_as_f_in_a_row_are_bypassed(f: int, dead: list[str]) -> None:
    network = line(8, f)
    network.subscribe("c", 0)
    for broker in dead:
        network.crash(broker, 500)
    network.publish("p", 400, 505, 530, 1000)
    network.run(2000)
    assert network.numbers("c") == [1, 2, 3, 4]
    assert network.broker("b1").active_sessions == ("b0", f"b{f + 2}")


def test_one_more_cannot_be_bypassed() -> None:
    network = line(8, 1)
    network.subscribe("c", 0)
    for broker in ("b3", "b4"):
        network.crash(broker, 500)
    network.publish("p", 1000)
    network.run(1500)
    assert network.numbers("c") == []
    assert network.size("b2", "parked") == 1
    assert network.size("b2", "barriers") == 2


def test_messages_lost_in_flight_are_resent_and_duplicates_are_recognised() -> None:
    network = line(6, 1)
    network.subscribe("c", 0)
    network.publish("p", *[480 + place for place in range(60)])
    network.crash("b3", 520)
    network.run(2000)
    assert network.numbers("c") == list(range(1, 61))
    assert network.times("p", Confirmed)[-1] < 1000


def test_a_subscription_bypasses_failed_brokers() -> None:
    network = line(6, 1)
    network.crash("b3", 0)
    network.subscribe("c", 20)
    network.publish("p", 500)
    network.run(1000)
    assert network.numbers("c") == [1]


def test_a_returning_island_learns_the_subscriptions_that_it_missed() -> None:
    """b2 is paused while the subscription bypasses it; afterwards events of its own publisher arrive without a gap."""
    network = line(5, 1)
    network.client("q", "b2")
    network.simulation.call("q", Advertise("a", "TRUE"), at=0)
    network.crash("b2", 100, 600, memory=True)
    network.subscribe("c", 300)
    network.publish("q", *range(580, 700, 5))
    network.publish("p", 1000)
    network.run(2000)
    received = [effect.event for _, _, effect in network.seen if isinstance(effect, Deliver)]
    numbers = [event.seq for event in received if event.publisher == "q"]
    assert numbers == list(range(numbers[0], 25))
    assert [event.seq for event in received if event.publisher == "p"] == [1]


# ---- partitions


def test_partitions_are_known_as_far_as_2f() -> None:
    network = Network(chain(9), 1)
    network.crash("b4", 100)
    network.run(400)
    known = {f"b{place}": network.size(f"b{place}", "partitions") for place in range(9) if place != 4}
    assert known == {"b0": 0, "b1": 1, "b2": 1, "b3": 2, "b5": 2, "b6": 1, "b7": 1, "b8": 0}
    assert network.size("b3", "barriers") == 0, "b5 is reached: an island"


def test_a_dead_end_is_a_barrier() -> None:
    network = Network(chain(5), 1)
    network.crash("b4", 100)
    network.run(400)
    assert network.size("b3", "barriers") == 1


@pytest.mark.parametrize("memory", [True, False])
def test_partitions_are_over_when_their_node_has_recovered(memory: bool) -> None:
    network = Network(chain(7), 2)
    network.crash("b3", 100, 500, memory=memory)
    network.run(1500)
    assert [network.size(f"b{place}", "partitions") for place in range(7)] == [0] * 7
    assert network.broker("b2").active_sessions == ("b3", "b1")
    assert network.size("b2", "sessions") == 2


def test_the_notifier_reaches_the_brokers_that_learned_of_the_partition() -> None:
    """The subscription is confirmed while b4 is unreachable; when b4 returns, the subscriber is notified."""
    network = line(5, 1)
    network.client("d", "b0")
    network.crash("b4", 100, 800, memory=True)
    network.subscribe("d", 300)
    network.run(700)
    subscription = next(iter(network.broker("b0")._table))
    assert [tag.nodes for tag in subscription.tags] == [("b4",)]
    network = line(5, 1)
    network.client("d", "b0")
    network.crash("b4", 100, 800, memory=True)
    network.subscribe("d", 300)
    network.run(1500)
    assert network.count("Recovered") >= 3
    assert not next(iter(network.broker("b0")._table)).tags


# ---- recovery


@pytest.mark.parametrize("memory", [True, False])
def test_a_subscriber_continues_when_its_broker_is_back(memory: bool) -> None:
    network = line(5, 1)
    network.subscribe("c", 0)
    network.publish("p", *range(400, 1400, 20))
    network.crash("b4", 600, 1000, memory=memory)
    network.run(3000)
    assert network.numbers("c") == list(range(1, 51))
    assert not network.times("c", Ended)


@pytest.mark.parametrize("memory", [True, False])
def test_events_of_a_publisher_arrive_when_its_broker_is_back(memory: bool) -> None:
    network = line(5, 1)
    network.subscribe("c", 0)
    network.publish("p", *range(400, 1400, 20))
    network.crash("b0", 601, 1000, memory=memory)
    network.run(3000)
    assert network.numbers("c") == list(range(1, 51))
    assert network.times("p", Confirmed)[-1] < 2000


def test_neighbours_that_restart_together_get_everything_back() -> None:
    network = line(7, 2)
    network.client("q", "b3")
    network.subscribe("c", 0)
    network.publish("p", *range(400, 1400, 20))
    network.crash("b3", 600, 900)
    network.crash("b4", 610, 905)
    network.run(3000)
    assert network.numbers("c") == list(range(1, 51))
    assert network.size("b3", "subscriptions") == network.size("b4", "subscriptions") == 1


def test_a_broker_that_restarts_next_to_the_dead_source_is_restored_by_brokers_around_it() -> None:
    """b3 loses its memory while the subscriber's broker, the centre of the star, is down."""
    network = Network(star(4), 2)
    network.client("c", "b0")
    network.client("p", "b3")
    network.subscribe("c", 0)
    network.publish("p", 300, 900)
    network.crash("b3", 400, 480)
    network.crash("b0", 475, 1200)
    network.run(3000)
    assert network.numbers("c") == [1, 2]


def test_all_restart_without_state() -> None:
    network = line(3, 1)
    network.subscribe("c", 0)
    network.publish("p", 300)
    for place in range(3):
        network.crash(f"b{place}", 400 + place, 450 + place)
    network.publish("p", 2500)
    network.subscribe("c", 3000, "again")
    network.publish("p", 3500)
    network.run(5000)
    assert network.numbers("c") == [1, 3]
    assert len(network.times("c", Ended)) == 1, "events that no broker keeps for it are lost, and it is notified"


# ---- legitimacy


def beyond_f(**options: Any) -> Network:
    """Return a network in which two of any three brokers in a row have failed, but no two neighbours: paths exist,
    and none is legitimate.
    """
    network = line(8, 1, **options)
    network.subscribe("c", 0)
    network.crash("b3", 500, 1500, memory=True)
    network.crash("b5", 500)
    network.publish("p", 1000)
    return network


def test_messages_that_are_not_legitimate_wait_until_a_broker_returns() -> None:
    network = beyond_f().run(1400)
    assert network.numbers("c") == []
    network = beyond_f().run(2500)
    assert network.numbers("c") == [1]
    assert network.times("c", Deliver)[0] > 1500


def test_with_relaxed_legitimacy_messages_are_forwarded() -> None:
    network = beyond_f(legitimacy="relaxed").run(1400)
    assert network.numbers("c") == [1]


def test_a_subscription_that_is_not_legitimate_waits_too() -> None:
    network = line(8, 1)
    network.crash("b2", 0, 1000)
    network.crash("b5", 0)
    network.subscribe("c", 500)
    network.run(900)
    assert not network.times("c", Activated)
    network = line(8, 1)
    network.crash("b2", 0, 1000)
    network.crash("b5", 0)
    network.subscribe("c", 500)
    network.run(3000)
    assert network.times("c", Activated)[0] > 1000


# ---- patience


def test_a_subscriber_whose_broker_stays_away_ends_at_its_position() -> None:
    network = line(4, 1, patience_ms=400)
    network.subscribe("c", 0)
    network.publish("p", 300, 600, 1500)
    network.crash("b3", 500)
    network.run(3000)
    assert network.numbers("c") == [1]
    ended = [effect for _, _, effect in network.seen if isinstance(effect, Ended)]
    assert [end.last_seq for end in ended] == [{"p": 1}]
    given_up = 500 + 50 + 400 + 2 * 10
    assert network.times("p", Confirmed) == [300 + 2 * 30, given_up, 1500]
    assert [network.size(f"b{place}", "subscriptions") for place in range(3)] == [0, 0, 0]


def test_a_broker_cut_off_for_too_long_notifies_its_subscribers_of_losses() -> None:
    network = line(4, 1, patience_ms=300)
    network.subscribe("c", 0)
    network.publish("p", 300, 600, 2000)
    network.simulation.cut("b2", "b3", at=500 * MS)
    network.simulation.heal("b2", "b3", at=1000 * MS)
    network.run(3000)
    assert network.numbers("c") == [1]
    assert network.times("c", Ended) == [500 + 50 + 300 + 3 * 10], "b2 has given up, and b1 tells b3"


def test_a_publisher_whose_broker_stays_away_moves_to_another() -> None:
    network = Network(from_edges([("b0", "b1"), ("b1", "b2"), ("b1", "b3")]), 1, patience_ms=400)
    network.client("p", "b1")
    for name, broker in (("c", "b0"), ("d", "b2"), ("e", "b3")):
        network.client(name, broker)
        network.subscribe(name, 0, name)
    network.publish("p", 300, 499, 700, 1500)
    network.crash("b1", 500)
    network.run(3000)
    for name in ("c", "d", "e"):
        assert network.numbers(name) == [1, 2, 3, 4], name


def test_more_than_f_in_a_row_end_subscriptions_only_if_something_was_dropped() -> None:
    for publications, ended in ((), 0), ((600,), 1):
        network = line(6, 1, patience_ms=300)
        network.subscribe("c", 0)
        network.publish("p", *publications)
        for broker in ("b2", "b3"):
            network.crash(broker, 500, 1500, memory=True)
        network.run(3000)
        assert len(network.times("c", Ended)) == ended


# ---- unsubscribing


def test_ended_subscriptions_are_removed_everywhere_also_at_a_broker_that_was_away() -> None:
    network = line(6, 1)
    network.subscribe("c", 0)
    network.crash("b2", 200, 600, memory=True)
    network.simulation.call("c", Unsubscribe("s"), at=400 * MS)
    network.run(2000)
    assert [network.size(f"b{place}", "subscriptions") for place in range(6)] == [0] * 6


def test_events_are_events() -> None:
    network = line(2, 1)
    network.subscribe("c", 0)
    network.publish("p", 100)
    network.run(200)
    assert [effect.event for _, _, effect in network.seen if isinstance(effect, Deliver)] == [Event("p", 1, {"x": 1})]
