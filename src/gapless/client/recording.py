"""Records a client's effects in its part of the trace before carrying them out.

Two times cannot be taken from effects, so the client reports them. A publication counts from when the call *began*: it
may have to wait before it is sent. A subscription is active from when the call *returns*: nothing was guaranteed
before.

Records reach the disk within `FLUSH_S`, and a publication's record before the publication reaches a broker.
"""

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never, get_args

import msgspec

from gapless.names import Acknowledged, Attached, DeadLettered, EachAcknowledged, JoinedGroup, Revoked
from gapless.protocol import (
    Confirmed,
    CutFixed,
    CutsVoided,
    Deliver,
    DeliverMany,
    Ended,
    ProtocolSpec,
    Published,
    PublishedMany,
    Ready,
    Rejected,
    Skipped,
)
from gapless.protocol import Subscribe as SubscribeCall
from gapless.runtime.wire import Welcome

if TYPE_CHECKING:
    from gapless.trace import PartRecorder

__all__ = ["Recording", "now_us", "start_recording"]

Noted: TypeAlias = (
    Deliver | DeliverMany | Published | PublishedMany | Confirmed | Acknowledged | EachAcknowledged | DeadLettered
    | CutFixed | CutsVoided | Ended | Rejected | Skipped | Attached | JoinedGroup | Revoked
)  # fmt: skip
"""The effects that are recorded in the trace."""

FLUSH_S = 0.2
"""The maximum delay of records on their way to the file."""


def now_us() -> int:
    """Return the wall-clock time in microseconds."""
    return time.time_ns() // 1000


class Recording:
    """Records the actions of one client as they happen."""

    def __init__(self, recorder: "PartRecorder") -> None:
        self._recorder = recorder
        self._began_us: int | None = None
        self._flushing: asyncio.TimerHandle | None = None

    def wrap(self, handlers: Mapping[type, Callable[[Any], None]]) -> dict[type, Callable[[Any], None]]:
        """Return handlers that record each effect before they handle it."""
        noted = get_args(Noted)
        return {kind: self._noting(handler) if kind in noted else handler for kind, handler in handlers.items()}

    def _note(self, effect: Noted) -> None:
        recorder = self._recorder
        match effect:
            case Deliver():
                recorder.deliver(effect.event, effect.subscription, now_us(), redelivered=effect.redelivered)
            case DeliverMany():
                for event in effect.events:
                    recorder.deliver(event, effect.subscription, now_us())
            case Published():
                recorder.publish(effect.event, now_us(), began_us=self._began_us)
            case PublishedMany():
                for event in effect.events:
                    recorder.publish(event, now_us(), began_us=self._began_us)
            case Confirmed():
                recorder.confirm(effect.seq)
            case Acknowledged():
                recorder.acknowledged(effect.subscription, effect.count, now_us(), is_stored=effect.is_stored)
            case EachAcknowledged():
                recorder.acknowledged_each(effect.subscription, effect.counts, now_us(), is_stored=effect.is_stored)
            case DeadLettered():
                recorder.dead_letter(effect.subscription, effect.publisher, effect.seq, effect.letter)
            case CutFixed():
                recorder.fix_cut(effect.subscription, effect.publisher, effect.from_seq)
            case CutsVoided():
                recorder.void_cuts(effect.subscription)
            case Ended():
                recorder.end(effect.subscription, effect.last_seq, now_us())
            case Rejected():
                if isinstance(effect.call, SubscribeCall):
                    recorder.refuse(effect.call.subscription)
            case Skipped():
                recorder.skip(effect.subscription, effect.lost, effect.gap)
            case Attached():
                recorder.open_name(
                    effect.subscription, effect.name, effect.generation, effect.position, effect.got, now_us()
                )
            case JoinedGroup():
                recorder.join_group(effect.subscription, effect.name, effect.position, now_us())
            case Revoked():
                recorder.revoke(effect.subscription, effect.counts)
            case _:
                assert_never(effect)

    def subscribes(self, name: str, text: str, ready: Ready = "first") -> None:
        """Record that the client is about to subscribe. The subscription counts as active at the time that `ready`
        defines.
        """
        self._recorder.subscribe(name, text, now_us(), ready=ready)
        self._flush_soon()

    def returns(self, name: str) -> None:
        """Record that `subscribe()` is about to return to its caller, so that the subscription is active."""
        self._recorder.activate(name, now_us())
        self._flush_soon()

    def publishes(self, began_us: int) -> None:
        """Record that a call which began at this time requested the publications that follow in this turn of
        the loop.
        """
        self._began_us = began_us

    def close(self) -> None:
        """Write the remaining records to disk, and mark the end of the trace."""
        if self._flushing is not None:
            self._flushing.cancel()
        self._recorder.close()

    def _noting(self, handler: Callable[[Any], None]) -> Callable[[Any], None]:
        def noted(effect: Any) -> None:
            self._note(effect)
            if self._flushing is None:
                self._flush_soon()
            handler(effect)

        return noted

    def _flush_soon(self) -> None:
        if self._flushing is None:
            self._flushing = asyncio.get_running_loop().call_later(FLUSH_S, self._flush)

    def _flush(self) -> None:
        self._flushing = None
        self._recorder.flush()


def start_recording(
    directory: str, welcome: Welcome, spec: ProtocolSpec, options: msgspec.Struct, client: str
) -> Recording:
    """Start recording the client's part of the trace in this directory. The recorder is imported only here."""
    from gapless.trace import PartRecorder
    from gapless.trace.rows import RunRow

    run = RunRow(
        run=welcome.network_name, protocol=spec.name, guarantee=spec.guarantee, scenario=welcome.network_name, seed=0,
        brokers=welcome.brokers, f=welcome.f, quiesced=False, options=msgspec.json.encode(options).decode(),
    )  # fmt: skip
    return Recording(PartRecorder(directory, run, client))
