"""The client's table of effects has an entry for each kind of effect, with a matching handler."""

import inspect
from typing import get_args

from gapless.client import connect
from gapless.overlay import chain
from gapless.protocol import Effect, Expel, Keep, Send, SetTimer
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import local_network
from tests.runtime.local import Local

OF_THE_HOST = {Send, SetTimer}
OF_BROKERS = {Expel, Keep}


def test_each_effect_goes_to_what_takes_it() -> None:
    async def main() -> None:
        network = Local(local_network(chain(1), f=0))
        await network.start("b0")
        try:
            async with connect(network.at("b0"), name="ann") as ann:
                assert set(ann._connection_manager._handlers) == set(get_args(Effect)) - OF_THE_HOST - OF_BROKERS
                for kind, handler in ann._connection_manager._handlers.items():
                    (effect,) = inspect.signature(handler).parameters.values()
                    assert effect.annotation is kind, f"{handler} takes {effect.annotation}, but gets {kind}"
        finally:
            await network.stop()

    run(main())
