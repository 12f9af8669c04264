"""Every message can be encoded and decoded, and runs do not depend on Python's hash seed."""

import os
import subprocess
import sys

import msgspec
import pytest

from gapless.events import Event
from gapless.protocols.parts.messages import Message
from gapless.registry import find_protocol
from gapless_papers.protocols.delta import messages

PARTITION = messages.Partition("b1", (0, 3), ("b2", "b5"))
TAGS = frozenset({PARTITION})
VECTOR = (("p", 0, 1), ("b1", 2, 7), ("b2", 0, -1))
EVENT = Event("p", 1, {"x": 1}, b"payload")
WISH = messages.ClientSubscribe("c/1.1", "TRUE")

EXAMPLES = (
    messages.Hello((0, 1), (1, 2), True, ("a",), ("b",), (PARTITION,)), messages.Use(False),
    messages.Synchronised(True), messages.SubscriptionsReceived(4), messages.Partitions((PARTITION,), 2),
    messages.PartitionOver("b1", "b2", (0, 3), 1),
    messages.AddSubscription("c/1.1", "TRUE", "b1", ("b1", "b2"), ("b2",)),
    messages.ConfirmSubscription("c/1.1", TAGS, {"b1": {"p": 3}}), messages.RemoveSubscription("c/1.1"),
    messages.Publication(EVENT, 7, VECTOR, TAGS, frozenset({"c/1.1"})),
    messages.Recovered("b1", (0, 1), "b1", "b2", 8, VECTOR), messages.ConfirmPublication(7),
    WISH, messages.Attach(3, True, (messages.Claim("c/2.1", {"p": 4}),), (WISH,)), messages.Detach(),
    messages.ClientUnsubscribe("c/1.1"), messages.ClientOffers(), messages.ClientPublish(EVENT),
    messages.Acknowledge(5), messages.Accepted(6), messages.Started("c/1.1", {"p": 3}, {"q": 2}),
    messages.Lost("c/1.1"), messages.Delivery(5, EVENT, ("c/1.1",)),
)  # fmt: skip

PROGRAM = """
import hashlib, sys
import msgspec
from gapless.simulator import generate, run_scenario

digest = hashlib.sha256()
for seed in range(4):
    result = run_scenario(generate(seed, "delta", "all"), with_messages=True)
    assert result.trace.messages
    digest.update(msgspec.msgpack.encode(result))
print(digest.hexdigest())
"""


@pytest.mark.parametrize("message", EXAMPLES, ids=lambda message: type(message).__name__)
def test_messages_travel(message: msgspec.Struct) -> None:
    encoded = msgspec.msgpack.encode(message)
    assert msgspec.msgpack.decode(encoded, type=type(message)) == message


def test_every_message_type_is_tested() -> None:
    known = {kind for kind in vars(messages).values() if isinstance(kind, type) and issubclass(kind, Message)}
    assert {type(message) for message in EXAMPLES} == known - {Message}
    assert set(find_protocol("delta").client_messages) <= known


def test_two_processes_with_different_hash_seeds_agree() -> None:
    digests = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM], env={**os.environ, "PYTHONHASHSEED": str(hash_seed)}, capture_output=True,
            text=True, check=True, timeout=120,
        ).stdout
        for hash_seed in (1, 4711)
    ]  # fmt: skip
    assert digests[0] == digests[1] != ""
