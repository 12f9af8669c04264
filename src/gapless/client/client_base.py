"""The base class of the client's calls, which creates its connection manager and its publishing and
subscribing sides.
"""

from collections.abc import Sequence

from gapless.client.codecs import Codec
from gapless.client.connection_manager import ConnectionManager
from gapless.client.identity import Identity
from gapless.client.middleware import Middleware, Middlewares
from gapless.client.publishing import Publishing
from gapless.runtime.access import CLEAR, Access
from gapless.runtime.wire import Welcome

__all__ = ["ClientBase"]


class ClientBase:
    """Creates the parts of one client that publishing and subscribing calls use."""

    def __init__(
        self, welcome: Welcome, name: str, *,
        address: str, trace: str = "", access: Access = CLEAR, identity: Identity | None = None,
        patience_s: float = 0.0, codec: Codec | None = None, middleware: Sequence[Middleware] = (),
    ) -> None:  # fmt: skip
        self.name: str = name
        """The name of the client, unique in the network. Its events name it as their publisher."""
        self.network: str = welcome.network_name
        """The name of the network."""
        self.protocol: str = welcome.protocol
        """The name of the protocol that the brokers run."""
        self._connection_manager = ConnectionManager(
            welcome, name, address=address, trace=trace, access=access, identity=identity, patience_s=patience_s
        )
        self._publishing: Publishing = self._connection_manager.publishing
        self._publishing.codec = codec
        self._publishing.middleware = Middlewares(middleware)
        self._access = access
