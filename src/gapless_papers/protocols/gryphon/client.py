"""A client of the `gryphon` protocol, permanently attached to one broker.

The link to its broker is made reliable like any other (`link_stream`), so that the broker's messages arrive in order.
While the broker does not accept the client's messages, `buffer` calls are kept and further ones refused.
"""

from collections.abc import Mapping
from typing import Any, assert_never

from gapless.protocol import (
    Advertise,
    ClientPlace,
    Connected,
    Input,
    Publish,
    Received,
    Send,
    SetTimer,
    Subscribe,
    TimerFired,
)  # fmt: skip
from gapless.protocols.parts.messages import ClientWord
from gapless_papers.protocols.gryphon.link_stream import LinkStream
from gapless_papers.protocols.gryphon.messages import (
    Acknowledgement,
    Delivery,
    Missing,
    Offered,
    Packet,
    Started,
    ToClient,
)
from gapless_papers.protocols.gryphon.options import GryphonOptions
from gapless_papers.protocols.parts.numbered_client import NumberedClient

__all__ = ["GryphonClient"]


class GryphonClient(NumberedClient):
    """A client node."""

    def __init__(self, place: ClientPlace, options: GryphonOptions) -> None:
        super().__init__(place)
        self._stream = LinkStream(
            options,
            lambda message: self._effects.append(Send(place.broker, message)),
            lambda what, delay_us: self._effects.append(SetTimer(what, delay_us)),
        )

    def state_size(self) -> Mapping[str, int]:
        """Return the sizes of the client's tables."""
        return {**super().state_size(), "unacknowledged": self._stream.kept}

    # ---- the link -----------------------------------------------------------------------------------------

    def _send(self, message: ClientWord) -> None:
        self._stream.send(message)

    def _receive(self, item: Received) -> None:
        message: Packet | Acknowledgement | Missing = item.message
        if isinstance(message, Missing):
            self._stream.missed(message)
            return
        self._stream.acknowledged(message.received)
        if isinstance(message, Packet):
            for body in self._stream.receive(message):
                news: Any = body
                self._on_message(news)

    def _on_message(self, message: ToClient) -> None:
        match message:
            case Delivery():
                self._deliver(message.event, message.numbers, self._subscriptions)
            case Started():
                self._on_started(message)
            case Offered():
                self._stabilise(message.number)
            case _:
                assert_never(message)

    def _on_other_input(self, item: Input) -> None:
        match item:
            case Connected() if item.peer == self._broker:
                self._stream.reconnect()
            case TimerFired():
                self._stream.timer_fired(item.key)
            case _:
                pass

    def _objection(self, call: Advertise | Subscribe | Publish) -> str:
        if self._stream.is_full:
            return f"broker {self._broker!r} has not accepted the last {self._stream.kept} calls; try later"
        return ""
