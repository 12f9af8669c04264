"""The synchronous client has the same names and guarantees as the asynchronous one."""

import inspect
import pickle
import re
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pytest

import gapless.client
import gapless.sync
from gapless.errors import CallError, ClosedError, ConnectError, ConversionError, EventError, NoReplyError
from gapless.names import AckMode
from gapless.overlay import chain
from gapless.protocol import PublicationsLost
from gapless.runtime.fleet import Fleet, free_ports, local_network
from tests.runtime.local import QUICK


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    config = local_network(chain(2), runtime=QUICK)
    with Fleet(config, tmp_path_factory.mktemp("fleet")) as fleet:
        fleet.start_all()
        gapless.sync.connect(config.url, timeout_s=60).close()
        yield config.url


ONE_OF_BOTH: set[str] = set()


def public_names(found: type) -> set[str]:
    given = {
        each
        for base in found.__mro__
        if "__init__" in vars(base) and base.__module__.startswith("gapless.")
        for each in re.findall(
            r"^        self\.([a-z]\w*)\b.*? = ", inspect.getsource(vars(base)["__init__"]), re.MULTILINE
        )
    }
    return {each for each in {*dir(found), *given} if not each.startswith("_")}


TWO = [
    name
    for name in gapless.sync.__all__
    if name != "connect" and getattr(gapless.sync, name) is not getattr(gapless.client, name)
]


@pytest.mark.parametrize("name", TWO)
def test_both_have_the_same_names_and_parameters(name: str) -> None:
    one, other = getattr(gapless.client, name), getattr(gapless.sync, name)
    assert public_names(one) ^ public_names(other) == ONE_OF_BOTH
    for each, member in inspect.getmembers(one):
        if each.startswith("_") or not (inspect.isfunction(member) or isinstance(member, property)):
            continue
        same = getattr(other, each)
        assert bool(same.__doc__)
        if inspect.isfunction(member):
            here, there = inspect.signature(member).parameters, inspect.signature(same).parameters
            assert here.keys() == there.keys(), each
            assert [found.default for found in here.values()] == [found.default for found in there.values()], each


def test_the_names_of_a_client_are_these() -> None:
    assert len(TWO) > 8
    assert {"name", "network", "lost_publications", "on_publications_lost", "identity"} < public_names(gapless.Client)


def test_both_connect_alike() -> None:
    assert gapless.sync.Credentials is gapless.client.Credentials
    parameters = inspect.signature(gapless.client.connect).parameters
    assert parameters == inspect.signature(gapless.sync.connect).parameters


def test_the_example_runs(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = (gapless.sync.__doc__ or "").split("```python\n")[1].split("```")[0]
    exec(text.replace("gapless://127.0.0.1:7400", url), {})
    assert "{'amount': 7, 'topic': 'price'}" in capsys.readouterr().out


def test_publish_subscribe_and_iterate(url: str) -> None:
    with gapless.sync.connect(url, name="ann") as ann, gapless.sync.connect(url) as bob:
        assert ann.name.startswith("ann-")
        advertisement = ann.advertise("topic = 'price'")
        subscription = bob.subscribe("topic = 'price' AND amount < 10")
        assert subscription.starting_cut == {ann.name: 1}
        first = ann.publish({"topic": "price", "amount": 7}, b"seven")
        assert ann.publish_many({"topic": "price", "amount": amount} for amount in range(8, 100)) == 92
        assert next(subscription) == first
        assert [event.attributes["amount"] for event in subscription.take(2, timeout_s=5)] in ([8], [8, 9])
        subscription.close()
        assert [event.attributes["amount"] for event in subscription] in ([9], [])
        assert subscription.ending_cut is not None
        assert 3 <= subscription.ending_cut[ann.name] <= 93
        advertisement.close()
        with pytest.raises(EventError):
            ann.publish({"topic": "price", "amount": 1})


def test_losses_are_reported_in_a_thread_that_may_make_calls(url: str) -> None:
    with gapless.sync.connect(url) as client:
        client.advertise("TRUE")
        reported: list[list[tuple[int, int]]] = []
        done = threading.Event()

        def reported_to(ranges: list[tuple[int, int]]) -> None:
            reported.append(ranges)
            client.publish({"again": ranges[0][0]})
            if len(reported) == 1:
                raise ValueError("the second call comes all the same")
            done.set()

        client.on_publications_lost = reported_to
        assert client.on_publications_lost is reported_to
        subscription = client.subscribe("TRUE")
        for lost in ([(3, 5)], [(7, 7)]):
            client._loop.loop.call_soon_threadsafe(client._inner._publishing.on_lost, PublicationsLost(lost))
            subscription.take(timeout_s=20)
        assert done.wait(20)
        assert reported == [[(3, 5)], [(7, 7)]]
        assert client.lost_publications == [(3, 5), (7, 7)]
        client.on_publications_lost = None
        assert client.on_publications_lost is None


def test_knowledge_about_a_client_and_the_ends_of_its_subscriptions(url: str) -> None:
    with gapless.sync.connect(url) as client:
        advertisement = client.advertise("TRUE")
        subscription = client.subscribe("TRUE")
        client.publish_many([{"n": 1}, {"n": 2}])
        assert (client.is_all_confirmed, client.confirmed, client.lost_publications) == (True, 2, [])
        assert (client.identity.name, client.identity.home, client.identity.seq) == (
            client.name,
            f"{client.broker}/0",
            2,
        )
        client.unsubscribe(subscription)
        assert subscription.ending_cut == {client.name: 2}
        client.unadvertise(advertisement)
        with pytest.raises(EventError):
            client.publish({"n": 3})


def test_each_event_of_a_named_subscription_can_be_confirmed(url: str) -> None:
    with gapless.sync.connect(url) as client:
        client.advertise("topic = 'bill'")
        for ack in get_args(AckMode):
            bills = client.durable(f"bills {ack}", "topic = 'bill'", ack=ack)
            published = client.publish({"topic": "bill"})
            bill = next(each for each in bills if each.seq >= published.seq)  # it may begin before the publication
            assert (bill, bill.redelivered, bill.id) == (published, False, published.id)
            bill.ack()
            [known] = [each for each in client.admin.list() if each.name == bills.name]
            assert known.client == client.name
            with pytest.raises(CallError, match=f"this copy of {bill.id} was not delivered by a subscription"):
                pickle.loads(pickle.dumps(bill)).ack()
            bills.close()
            client.admin.delete(bills.name)


def test_iteration_waits_for_what_another_thread_publishes(url: str) -> None:
    with gapless.sync.connect(url) as client:
        client.advertise("TRUE")
        subscription = client.subscribe("TRUE")

        def later() -> None:
            time.sleep(0.2)
            client.publish({"n": 1})

        thread = threading.Thread(target=later)
        thread.start()
        assert next(subscription).attributes == {"n": 1}
        thread.join()
        with pytest.raises(TimeoutError):
            subscription.take(timeout_s=0.1)


@dataclass
class Price:
    topic: str
    amount: int


def test_typed_events_and_a_new_beginning(url: str) -> None:
    with gapless.sync.connect(url) as client:
        client.advertise("topic = 'price'")
        prices = client.subscribe("topic = 'price'", type=Price)
        client.publish(Price("price", 7))
        client.publish({"topic": "price"})
        client.publish_many([Price("price", 8)])
        assert next(prices) == Price("price", 7)
        with pytest.raises(ConversionError, match="it has no attribute 'amount'"):
            next(prices)
        assert prices.take(timeout_s=20) == [Price("price", 8)]
        with pytest.raises(CallError, match="has not ended"):
            prices.resubscribe()
        prices.close()
        assert prices.has_ended
        again = prices.resubscribe()
        client.publish(Price("price", 9))
        assert again.take(timeout_s=20) == [Price("price", 9)]


def test_request_and_reply(url: str) -> None:
    with gapless.sync.connect(url) as ann, gapless.sync.connect(url) as bob:
        ann.advertise("topic = 'ask'")
        bob.advertise("topic = 'price'")
        with bob.answer("topic = 'ask'", lambda request: {"topic": "price", "amount": request.integer("n")}):
            for n in range(20):
                reply = ann.request({"topic": "ask", "n": n}, reply="topic = 'price'", timeout_s=20)
                assert (reply.publisher, reply.attributes["amount"]) == (bob.name, n)
            assert ann.request({"topic": "ask", "n": 20}, type=Price) == Price("price", 20)
        with pytest.raises(NoReplyError, match="no reply that matches"):
            ann.request({"topic": "ask", "n": 21}, timeout_s=0.2)


def test_changes_are_iterated_over_until_the_client_is_closed(url: str) -> None:
    client = gapless.sync.connect(url)
    kinds: list[str] = []

    def watch() -> None:
        kinds.extend(change.kind for change in client.connection_changes())

    thread = threading.Thread(target=watch)
    thread.start()
    client.advertise("TRUE")
    time.sleep(0.2)
    client.close()
    thread.join(20)
    assert not thread.is_alive()
    assert kinds == ["connected"]


def test_unsendable_messages_are_refused_and_later_calls_do_not_hang(url: str) -> None:
    with gapless.sync.connect(url) as client:
        client.advertise("TRUE")
        for call in (lambda: client.publish({"file": "\udce9t.txt"}), lambda: client.publish_many([{"\udce9": 1}])):
            with pytest.raises(EventError, match="half of a surrogate pair"):
                call()
        with pytest.raises(CallError, match="half of a surrogate pair"):
            client.subscribe("topic = '\udce9'")
        subscription = client.subscribe("TRUE")
        event = client.publish({"file": "été.txt"})
        assert subscription.take(timeout_s=20) == [event]


@pytest.fixture
def interruptible() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupted_take_loses_nothing(url: str, interruptible: None) -> None:
    """Events fetched during an interrupted call are returned by the next one."""
    with gapless.sync.connect(url) as client:
        client.advertise("TRUE")
        subscription = client.subscribe("TRUE")

        def interrupt() -> None:
            time.sleep(0.2)
            client.publish({"n": 1})
            signal.pthread_kill(caller, signal.SIGINT)

        caller = threading.get_ident()
        thread = threading.Thread(target=interrupt)
        thread.start()
        seen = []
        try:
            while True:
                seen += subscription.take()
        except KeyboardInterrupt:
            thread.join()
        if not seen:
            seen += subscription.take(timeout_s=20)
        assert [event.attributes for event in seen] == [{"n": 1}]


def test_an_interrupt_that_does_not_wake_the_caller_is_still_handled(url: str, interruptible: None) -> None:
    """The system may deliver a signal to another thread, or just before the wait begins."""
    with gapless.sync.connect(url) as client:
        subscription = client.subscribe("TRUE")

        def interrupt() -> None:
            time.sleep(0.2)
            signal.pthread_kill(threading.get_ident(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            subscription.take(timeout_s=60)
        assert time.monotonic() - began < 30
        thread.join()


def test_closed_is_closed_and_no_thread_is_left(url: str) -> None:
    before = threading.active_count()
    client = gapless.sync.connect(url)
    client.close()
    client.close()
    with pytest.raises(ClosedError):
        client.publish({"n": 1})
    with pytest.raises(ConnectError):
        gapless.sync.connect(f"gapless://127.0.0.1:{free_ports(1)[0]}", timeout_s=0.1)
    assert threading.active_count() == before


def test_a_trace_is_written_where_it_is_asked_for(url: str, tmp_path: Path) -> None:
    with gapless.sync.connect(url, name="ann", trace=tmp_path) as ann:
        ann.advertise("TRUE")
        ann.publish({"n": 1})
    [part] = (tmp_path / "parts").iterdir()
    assert part.name == f"{ann.name}.part"
