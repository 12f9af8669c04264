"""The calls of `client.admin`, which manage the durable subscriptions and clients of a network."""

import asyncio
from functools import partial
from typing import TypeAlias

from gapless.client.arguments import check_text
from gapless.client.connection_manager import ConnectionManager
from gapless.client.durables import check_name_of, find_durable
from gapless.client.positions import Since
from gapless.client.subscribing import Subscribing
from gapless.errors import CallError, ConnectError, WireError
from gapless.names import DurableInfo, MoveDurable
from gapless.positions import Position
from gapless.runtime.access import Access
from gapless.runtime.probe import ask_to_end

__all__ = ["Admin"]

Durables: TypeAlias = list[DurableInfo]
"""The result of `Admin.list`. The alias exists because the class has a method with the name of the type."""

ASK_S = 5.0
"""How long `Admin.end` waits for the answer of each broker."""


class Admin:
    """Manages the durable subscriptions and clients of a network. `client.admin` is an instance."""

    def __init__(self, connection_manager: ConnectionManager, subscribing: Subscribing, access: Access) -> None:
        self._connection_manager = connection_manager
        self._subscribing = subscribing
        self._access = access

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of network {self._connection_manager.network}>"

    async def list(self) -> Durables:
        """Return the durable subscriptions of the network, sorted by name.

        Example: `print([each.lag_s for each in await client.admin.list()])`
        """
        check_name_of(self._connection_manager.spec, "any")
        self._connection_manager.check_open()
        return await self._connection_manager.registrations.names()

    async def move(self, name: str, to: Since) -> None:
        """Move a durable subscription to another position, from which it continues. An attached client is detached.

        Parameters:
            name: the name of the durable subscription.
            to: a position, a time, an age, "earliest" or "now".

        Example: `await client.admin.move("billing", "10m")`
        """
        check_name_of(self._connection_manager.spec, name)
        await self._move(name, await self._subscribing.position("to", to))

    async def delete(self, name: str) -> None:
        """Delete a durable subscription. An attached client is detached.

        Parameters:
            name: the name of the durable subscription.

        Example: `await client.admin.delete("billing")`
        """
        check_name_of(self._connection_manager.spec, name)
        await self._move(name, None)

    async def _move(self, name: str, position: Position | None) -> None:
        found = find_durable(name, await self.list())
        await self._connection_manager.registrations.move(
            MoveDurable(self._connection_manager.new_name("m"), name, found.filter, position)
        )

    async def end(self, client: str) -> None:
        """End the session of a client, connected or not, with its subscriptions and advertisements. In a network with
        users this needs an operator's rights.

        Parameters:
            client: the full name of the client (`client.name`), as `gapless status` shows it.

        Example: `await client.admin.end("shop-1a2b3c4d")`
        """
        name = check_text("the name of a client", client)
        self._connection_manager.check_open()
        ask = partial(ask_to_end, client=name, timeout_s=ASK_S, access=self._access)
        addresses = [*self._connection_manager.addresses.values()]
        answers = await asyncio.gather(*(ask(address) for address in addresses), return_exceptions=True)
        given = [answer for answer in answers if isinstance(answer, dict)]
        if any(answer["ended"] for answer in given):
            return
        for answer in answers:
            if isinstance(answer, BaseException) and not isinstance(answer, OSError | TimeoutError | WireError):
                raise answer
        if not given:
            raise ConnectError(f"no broker could be reached at {', '.join(addresses)}; is the network up?")
        silent = f"; {len(answers) - len(given)} brokers did not answer" if len(given) < len(answers) else ""
        raise CallError(f"no broker has a session of client {name!r}{silent}; gapless status shows the clients")
