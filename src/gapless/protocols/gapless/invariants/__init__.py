"""The invariants of the protocol as assertions that are checked after every step of a simulated run.

They observe brokers from outside and keep their own records, so that an error in a broker's bookkeeping is found, too.
`docs/protocols/gapless.md` explains each invariant.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gapless.overlay import Overlay
from gapless.protocol import Effect, Input, Node, Persisted, Received
from gapless.protocols.gapless.broker import GaplessBroker
from gapless.protocols.gapless.client_messages import ClientGot, ClientPublish
from gapless.protocols.gapless.invariants.journals import JournalInvariants
from gapless.protocols.gapless.invariants.promises import PromiseInvariants
from gapless.protocols.gapless.invariants.tables import TableInvariants
from gapless.protocols.gapless.journal_messages import Held, Hold, Page, ReadPage
from gapless.protocols.gapless.link_messages import Echo, LinkMessage, Publication, Wave
from gapless.protocols.gapless.messages import Ack, Frame, Resume
from gapless.protocols.gapless.options import GaplessOptions
from gapless.protocols.gapless.state import BrokerState
from gapless.protocols.gapless.topology import Topology

__all__ = ["GaplessInvariants"]

EVENT_PATH = (Publication, Wave, Echo, Hold, Held, ReadPage, Page, ClientPublish, ClientGot, Resume, Ack)
"""Messages that do not change a broker's tables, statuses or promises. These are checked only after other messages,
such as `Final`."""


class GaplessInvariants:
    def __init__(self, overlay: Overlay, f: int, _options: GaplessOptions) -> None:
        topology = Topology(overlay, f)
        self._promises = PromiseInvariants()
        self._journals = JournalInvariants(topology)
        self._tables = TableInvariants(self._journals)

    def begin(self, name: str, node: Node) -> None:
        """Register a new broker node."""
        if isinstance(node, GaplessBroker):
            self._promises.begin(name, node.state)

    def after_step(
        self, name: str, node: Node, item: Input, effects: Sequence[Effect], live: Callable[[], Mapping[str, Node]]
    ) -> None:  # fmt: skip
        """Check everything that the step may have changed."""
        if not isinstance(node, GaplessBroker):
            self._journals.after_client(name, effects)
            return

        def states() -> dict[str, BrokerState]:
            return {other: each.state for other, each in live().items() if isinstance(each, GaplessBroker)}

        message = _body(item)
        is_event_path = isinstance(message, EVENT_PATH) or isinstance(item, Persisted)
        s = node.state
        self._promises.after_step(s, item, effects)
        self._journals.after_step(s, effects, self._promises, message if is_event_path else None)
        self._tables.after_step(s, states)
        if not is_event_path:
            self._promises.note_promises(s)
            self._tables.check_tables(s, states)


def _body(item: Input) -> Any:
    message = item.message if isinstance(item, Received) else None
    while isinstance(message, Frame | LinkMessage):
        message = message.body
    return message
