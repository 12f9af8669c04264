"""The cause of each effect in a micro-batch is in the same or an earlier batch.

A client at one end of a network publishes questions, and another one at the other end answers them while batches are
made. Batches with a separate end for each broker, like offsets of partitions, contain answers without their questions,
which the same check detects.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadMaxRows

from gapless import Event, sync
from gapless.runtime.fleet import Fleet

from .network import PATIENCE_S, history, rows_between, served, stream_reader

QUESTIONS = 60


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with served(tmp_path_factory.mktemp("talk")) as fleet:
        yield fleet


class Talk:
    def __init__(self, fleet: Fleet, topic: str) -> None:
        self.topic = topic
        self._fleet = fleet

    def ask(self, count: int) -> None:
        with self._at("b0") as asker, self._at("b2") as answerer:
            for client in (asker, answerer):
                client.advertise(f"topic = '{self.topic}'")
            received = answerer.subscribe(f"topic = '{self.topic}' AND part = 'question'")
            for number in range(count):
                asker.publish({"topic": self.topic, "part": "question", "n": number})
                question = next(received)
                answerer.publish({"topic": self.topic, "part": "answer", "n": question.attributes["n"]})

    def _at(self, broker: str) -> sync.Client:
        return sync.connect(f"gapless://{self._fleet.config.addresses[broker]}", timeout_s=PATIENCE_S)


def without_cause(batches: Iterable[Iterable[tuple[str, int]]]) -> list[tuple[int, int]]:
    asked: set[int] = set()
    found = []
    for place, batch in enumerate(map(list, batches)):
        asked |= {number for part, number in batch if part == "question"}
        found += [(place, number) for part, number in batch if part == "answer" and number not in asked]
    return found


def options(events: Iterable[Event]) -> list[tuple[str, int]]:
    return [(str(event.attributes["part"]), int(event.attributes["n"])) for event in events]


@contextmanager
def meanwhile(talk: Talk, count: int) -> Iterator[threading.Thread]:
    thread = threading.Thread(target=talk.ask, args=(count,))
    thread.start()
    yield thread
    thread.join(PATIENCE_S)


def test_batches_made_during_a_talk_hold_no_answer_without_its_question(fleet: Fleet) -> None:
    talk = Talk(fleet, "talk")
    reader = stream_reader(fleet, filter="topic = 'talk'", maxEventsPerPartition="2")
    batches: list[list[tuple[str, int]]] = []
    start: dict[str, Any] = reader.initialOffset()
    try:
        with meanwhile(talk, QUESTIONS) as talking:
            while talking.is_alive() or sum(map(len, batches)) < 2 * QUESTIONS:
                end = reader.latestOffset(start, ReadMaxRows(7))
                rows = rows_between(reader, start, end) if end != start else []
                texts = [dict(row["attributes"]) for row in rows]
                batches.append([(text["part"], int(text["n"])) for text in texts])
                start = end
    finally:
        reader.stop()
    assert len([batch for batch in batches if batch]) > 5
    assert sorted(pair for batch in batches for pair in batch) == sorted(options(history(fleet, "topic = 'talk'")))
    assert without_cause(batches) == []


def test_batches_cut_broker_by_broker_hold_answers_without_their_questions(fleet: Fleet) -> None:
    talk = Talk(fleet, "partitions")
    batches: list[list[tuple[str, int]]] = []
    with sync.connect(fleet.config.url, timeout_s=PATIENCE_S) as client:
        at = {"question": client.position(), "answer": client.position()}
        for _ in range(3):
            batch = []
            for part, since in list(at.items()):
                # b0 admits all questions, b2 all answers; each broker's part ends at a moment of its own.
                at[part] = client.position()
                mine = f"topic = 'partitions' AND part = '{part}'"
                batch += options(client.read(mine, since=since, until=at[part]))
                talk.ask(2)
            batches.append(batch)
    assert without_cause(batches), "otherwise the check would be empty"
