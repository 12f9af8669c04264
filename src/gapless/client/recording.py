"""From a client's effects to its part of the trace: each is written down, and then carried out."""

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from gapless.protocol import Activated, CutFixed, CutsVoided, Deliver, Ended, ProtocolSpec, Published
from gapless.runtime.wire import Welcome

if TYPE_CHECKING:
    from gapless.trace import PartRecorder

__all__ = ["Recording", "start_recording"]


def _wall_us() -> int:
    return time.time_ns() // 1000


class Recording:
    """What a client does, as it happens."""

    def __init__(self, recorder: "PartRecorder") -> None:
        self._recorder = recorder

    def wrap(self, handlers: Mapping[type, Callable[[Any], None]]) -> dict[type, Callable[[Any], None]]:
        """The handlers, each behind the note of what it handles."""
        notes: dict[type, Callable[[Any], None]] = {
            Published: lambda effect: self._recorder.publish(effect.event, _wall_us()),
            Deliver: lambda effect: self._recorder.deliver(effect.event, effect.subscription, _wall_us()),
            CutFixed: lambda effect: self._recorder.fix_cut(effect.subscription, effect.publisher, effect.from_seq),
            CutsVoided: lambda effect: self._recorder.void_cuts(effect.subscription),
            Activated: lambda effect: self._recorder.activate(effect.subscription, _wall_us()),
            Ended: lambda effect: self._recorder.end(effect.subscription, effect.last_seq, _wall_us()),
        }
        return {kind: _both(notes[kind], handler) if kind in notes else handler for kind, handler in handlers.items()}

    def subscribes(self, name: str, text: str) -> None:
        """The client is about to ask for a subscription."""
        self._recorder.subscribe(name, text, _wall_us())

    def close(self) -> None:
        """Write the rest to disk."""
        self._recorder.close()


def _both(note: Callable[[Any], None], handler: Callable[[Any], None]) -> Callable[[Any], None]:
    def noted(effect: Any) -> None:
        note(effect)
        handler(effect)

    return noted


def start_recording(
    directory: str, welcome: Welcome, spec: ProtocolSpec, options: msgspec.Struct, client: str
) -> Recording:
    """Write the client's part of the trace into this directory. (Only now is Parquet loaded.)"""
    from gapless.trace import PartRecorder
    from gapless.trace.rows import RunRow

    run = RunRow(
        run=welcome.network_name, protocol=spec.name, guarantee=spec.guarantee, scenario=welcome.network_name, seed=0,
        brokers=welcome.brokers, f=welcome.f, quiesced=False, options=msgspec.json.encode(options).decode(),
    )  # fmt: skip
    return Recording(PartRecorder(directory, run, client))
