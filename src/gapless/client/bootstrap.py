"""Makes the first contact with a network: finds a broker that answers and gets the network's description from it."""

import asyncio
import time

from gapless.errors import ConnectError, DeniedError, WireError
from gapless.runtime.access import CLEAR, Access
from gapless.runtime.address import parse_url
from gapless.runtime.probe import probe
from gapless.runtime.wire import Welcome

__all__ = ["find_network"]

PAUSE_S = 0.1
SILENT = "no answer"


async def find_network(url: str, timeout_s: float, access: Access = CLEAR) -> tuple[str, Welcome]:
    """Return the first of the URL's addresses with a running broker, and the welcome message of that broker.

    Brokers that are missing, starting, or too busy are asked again until the timeout. An address that answers with
    another protocol is not asked again; if no other address is left, the search ends at once.
    """
    addresses = parse_url(url)
    deadline = time.monotonic() + timeout_s
    said: dict[str, str] = {}
    while True:
        reasons, hopeless = {}, list[ConnectError]()
        for address in addresses:
            left = deadline - time.monotonic()
            try:
                answer = await _ask(address, max(0.1, min(left, timeout_s / len(addresses))), access)
            except ConnectError as error:
                hopeless.append(error)
                continue
            if isinstance(answer, Welcome):
                return address, answer
            if answer != SILENT:
                said[address] = answer  # the last attempt may begin too late to get an answer
            reasons[address] = said.get(address, answer)
        if not reasons:
            raise hopeless[0]
        if time.monotonic() + PAUSE_S > deadline:
            details = "; ".join([*(f"{address}: {reason}" for address, reason in reasons.items()), *map(str, hopeless)])
            raise ConnectError(f"no broker could be reached ({details}); is the network up?")
        await asyncio.sleep(PAUSE_S)


async def _ask(address: str, timeout_s: float, access: Access) -> Welcome | str:
    try:
        welcome = await probe(address, timeout_s=timeout_s, access=access)
    except DeniedError as error:
        raise DeniedError(_placed(address, error)) from None
    except WireError as error:
        if error.code == "limit":
            return str(error)
        raise ConnectError(_placed(address, error)) from None
    except TimeoutError:
        return SILENT
    except ConnectionRefusedError:
        return "connection refused"
    except OSError as error:
        return error.strerror.lower() if error.strerror else str(error)
    return welcome if welcome.is_ready else "the broker is still starting"


def _placed(address: str, error: Exception) -> str:
    return str(error) if address in str(error) else f"{address}: {error}"
