"""Sends the data that open consoles watch to all of them as it changes.

A *feed* repeats one query as long as there are watchers, and encodes each answer once: all watchers get the same bytes.
The first line for a watcher contains the whole document, each later one the changes. If nothing has changed, nothing is
sent. Watchers are served one after the other, `SPREAD_S` apart, so that many of them do not fill a turn of the event
loop.

A watcher queues at most one line of each feed. If its console has not taken the last one, the next line is the whole
current document.
"""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

import msgspec

from gapless.errors import GaplessError
from gapless.http.merge_patch import merge_patch
from gapless.http.problems import ProblemError, problem_of
from gapless.http.step_meter import StepMeter

__all__ = ["Feed", "Feeds", "Watcher", "changed_members"]

SPREAD_S = 0.005

Difference = Callable[[Any, Any], dict[str, Any] | None]


def changed_members(old: Any, new: Any) -> dict[str, Any] | None:
    """Return a merge patch from one object to the next, or None if they are equal."""
    patch = merge_patch(old, new)
    return {"change": patch} if patch else None


class Watcher:
    """One console, with the feeds that it watches."""

    def __init__(self) -> None:
        self._lines: dict[Feed, bytes | None] = {}
        """The next line of each feed; None stands for the whole document."""
        self._news = asyncio.Event()

    def put(self, feed: "Feed", line: bytes | None) -> None:
        """Queue a line of a feed for this console."""
        self._lines[feed] = None if feed in self._lines else line
        self._news.set()

    async def take(self) -> bytes:
        """Return the next line to send, waiting for one."""
        await self._news.wait()
        self._news.clear()
        lines, self._lines = self._lines, {}
        return b"".join(feed.whole if line is None else line for feed, line in lines.items())


class Feed:
    """The repeated answers to one query, sent to all its watchers."""

    def __init__(
        self,
        topic: str,
        ask: Callable[[], Awaitable[Any]],
        difference: Difference,
        *,
        every_s: float,
        steps: StepMeter,
    ) -> None:
        self._topic = topic
        self._ask = ask
        self._every_s = every_s
        self._steps = steps
        self._difference = difference
        self._watchers: dict[Watcher, None] = {}
        self._task: asyncio.Task[None] | None = None
        self._document: Any = None
        self._whole = b""

    def __len__(self) -> int:
        return len(self._watchers)

    @property
    def whole(self) -> bytes:
        """Return a line with the whole document, or with the problem if there is no answer."""
        if not self._whole:
            self._whole = self._line({"whole": self._document})
        return self._whole

    def add(self, watcher: Watcher) -> None:
        """Add a watcher."""
        self._watchers[watcher] = None
        if self._task is None:
            self._task = self._steps.start(self._run(), self._topic)
        elif self._whole or self._document is not None:
            watcher.put(self, None)

    def remove(self, watcher: Watcher) -> None:
        """Remove a watcher. Without watchers, the query is not repeated."""
        self._watchers.pop(watcher, None)
        if not self._watchers and self._task is not None:
            self._task.cancel()
            self._task, self._document, self._whole = None, None, b""

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            begun = loop.time()
            line = await self._next()
            if line:
                for number, watcher in enumerate(self._watchers):
                    loop.call_later(number * SPREAD_S, watcher.put, self, line)
            await asyncio.sleep(max(0.0, begun + self._every_s - loop.time()))

    async def _next(self) -> bytes:
        """Repeat the query. Return a line with the changes, or an empty one if nothing changed."""
        old = self._document
        try:
            new = await self._ask()
        except (GaplessError, ProblemError, TimeoutError) as error:
            before, self._document = self._whole, None
            self._whole = self._line({"problem": problem_of(error).document()})
            return b"" if self._whole == before else self._whole
        if old is None:
            self._document, self._whole = new, b""
            return self.whole
        await asyncio.sleep(0)
        change = self._difference(old, new)
        self._document, self._whole = new, b""
        return b"" if change is None else self._line(change)

    def _line(self, content: dict[str, Any]) -> bytes:
        return msgspec.json.encode({"topic": self._topic, **content}) + b"\n"


class Feeds:
    """The feeds of one broker that consoles watch."""

    def __init__(self) -> None:
        self._feeds: dict[Hashable, Feed] = {}

    def watch(self, watcher: Watcher, key: Hashable, make: Callable[[], Feed]) -> None:
        """Add the watcher to a feed, which is created if it does not exist yet."""
        if key not in self._feeds:
            self._feeds[key] = make()
        self._feeds[key].add(watcher)

    def leave(self, watcher: Watcher) -> None:
        """Remove a closed console from all feeds."""
        for key, feed in list(self._feeds.items()):
            feed.remove(watcher)
            if not feed:
                del self._feeds[key]
