"""Runs a publisher or a subscriber in a separate process: `python -m benchmarks.peers ROLE SYSTEM PORT COUNT RATE`.

It writes JSON documents to standard output, one per line: when it is ready, and its measurements. Times are of the
monotonic clock that all processes of a machine share.
"""

import asyncio
import json
import os
import struct
import sys
import time
from collections.abc import AsyncIterator, Iterator

import uvloop
from benchmarks.peers.gapless_system import Gapless, GaplessDistinct, GaplessOnDisk
from benchmarks.peers.mosquitto_system import Mosquitto, MosquittoOnce, MosquittoOnceOrMore
from benchmarks.peers.nats_system import JetStream, JetStreamOnFile, JetStreamSynced, NatsCore, NatsDocuments
from benchmarks.peers.redis_system import RedisStreams, RedisSynced
from benchmarks.peers.relay_system import Relay
from benchmarks.peers.secure_system import SecureGapless
from benchmarks.peers.system import System

IN_MEMORY: tuple[type[System], ...] = (
    GaplessDistinct, Gapless, SecureGapless, NatsDocuments, NatsCore, JetStream, RedisStreams, Mosquitto,
    MosquittoOnceOrMore, MosquittoOnce, Relay,
)  # fmt: skip
ON_DISK: tuple[type[System], ...] = (GaplessOnDisk, JetStreamOnFile, JetStreamSynced, RedisSynced)
SYSTEMS = {system.name: system for system in (*IN_MEMORY, *ON_DISK)}
STAMP = struct.Struct(">QQ")
PAYLOAD = int(os.environ.get("BENCH_PAYLOAD", "100"))


def say(**facts: object) -> None:
    """Report to the parent process."""
    print(json.dumps(facts), flush=True)


def payloads(count: int, begun: list[float]) -> Iterator[bytes]:
    """Yield numbered payloads; record the wall-clock and processor time of the first."""
    rest = bytes(PAYLOAD - STAMP.size)
    pack = STAMP.pack
    begun += (time.monotonic(), time.process_time())
    for number in range(count):
        yield pack(number, 0) + rest


async def paced(count: int, rate: float, begun: list[float]) -> AsyncIterator[bytes]:
    """Yield payloads at a constant rate, each with its time."""
    rest = bytes(PAYLOAD - STAMP.size)
    start = time.monotonic()
    begun += (start, time.process_time())
    for number in range(count):
        delay = start + number / rate - time.monotonic()
        if delay > 0:
            await asyncio.sleep(delay)
        yield STAMP.pack(number, time.monotonic_ns()) + rest


async def publish(system: System, port: int, count: int, rate: float) -> None:
    """Publish, at full speed or at a rate."""
    begun: list[float] = []
    if rate:
        await system.pace(port, paced(count, rate, begun))
    else:
        await system.flood(port, payloads(count, begun))
    say(start=begun[0], confirmed=time.monotonic(), processor_s=time.process_time() - begun[1])


async def subscribe(system: System, port: int, count: int, rate: float) -> None:
    """Count payloads, check their order, record their latency and report the end; then wait to be killed."""
    latencies: list[int] = []
    expected = 0
    wrong = 0

    busy = 0.0

    def take(payload: bytes) -> bool:
        nonlocal expected, wrong, busy
        busy = busy or time.process_time()
        number, stamp = STAMP.unpack_from(payload)
        if rate:
            latencies.append(time.monotonic_ns() - stamp)
        wrong += number != expected
        expected += 1
        if expected == count:
            end = time.monotonic()
            latencies.sort()
            spread = [latencies[int(len(latencies) * share)] / 1e6 for share in (0.5, 0.99)] if latencies else []
            say(end=end, wrong=wrong, latency_ms=spread, processor_s=time.process_time() - busy)
        return True  # stay subscribed: leaving while others still read would slow them down

    await system.subscribe(port, lambda: say(ready=True), take)


def main(role: str, name: str, port: str, count: str, rate: str) -> None:
    """Run one role."""
    task = publish if role == "publish" else subscribe
    uvloop.run(task(SYSTEMS[name](), int(port), int(count), float(rate)))


if __name__ == "__main__":
    main(*sys.argv[1:])
