"""The client for programs without an event loop: the same names, the same promises."""

import inspect
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.local import QUICK

import gapless.sync
from gapless.client import client as asynchronous
from gapless.client import subscription, sync_client
from gapless.errors import ClosedError, ConnectError, EventError
from gapless.overlay import chain
from gapless.runtime.fleet import Fleet, free_ports, local_network


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A network of two broker processes."""
    config = local_network(chain(2), runtime=QUICK)
    with Fleet(config, tmp_path_factory.mktemp("fleet")) as fleet:
        fleet.start_all()
        gapless.sync.connect(config.url, timeout_s=60).close()
        yield config.url


def test_both_have_the_same_names() -> None:
    for one, other in (
        (asynchronous.Client, sync_client.Client),
        (asynchronous.Advertisement, sync_client.Advertisement),
        (subscription.Subscription, sync_client.Subscription),
    ):
        internal = {"unadvertise", "unsubscribe", "greeting", "answer", "welcomed", "refused", "report", "is_settled",
                    "holds_back", "is_over", "oldest", "put", "end", "release"}  # fmt: skip
        names = {name for name, _ in inspect.getmembers(one) if not name.startswith("_")} - internal
        assert names <= {name for name, _ in inspect.getmembers(other)} | {"cuts", "last"}
    parameters = inspect.signature(asynchronous.connect).parameters
    assert parameters == inspect.signature(gapless.sync.connect).parameters


def test_publish_subscribe_and_iterate(url: str) -> None:
    with gapless.sync.connect(url, name="ann") as ann, gapless.sync.connect(url) as bob:
        assert ann.name.startswith("ann-")
        advertisement = ann.advertise("topic = 'price'")
        subscription = bob.subscribe("topic = 'price' AND amount < 10")
        assert subscription.cuts == {ann.name: 1}
        first = ann.publish({"topic": "price", "amount": 7}, b"seven")
        assert ann.publish_many({"topic": "price", "amount": amount} for amount in range(8, 100)) == 92
        assert next(subscription) == first
        assert [event.attributes["amount"] for event in subscription.take(2, timeout_s=5)] in ([8], [8, 9])
        subscription.close()
        assert [event.attributes["amount"] for event in subscription] in ([9], [])
        assert subscription.last is not None
        assert 3 <= subscription.last[ann.name] <= 93
        advertisement.close()
        with pytest.raises(EventError):
            ann.publish({"topic": "price", "amount": 1})


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
