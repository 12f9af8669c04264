"""The runtime's table of effects has an entry for each kind of effect, with a matching handler."""

import inspect
from pathlib import Path

import pytest

from gapless.overlay import chain
from gapless.protocol import Expel, Keep, SetTimer
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import local_network
from tests.runtime.local import Local


@pytest.mark.parametrize("has_disk", [False, True])
def test_each_effect_goes_to_what_takes_it(tmp_path: Path, *, has_disk: bool) -> None:
    async def main() -> None:
        network = Local(local_network(chain(1), f=0, data=tmp_path if has_disk else None))
        broker = await network.start("b0")
        try:
            handlers = broker.links.host._handlers
            assert set(handlers) == {SetTimer, Expel} | ({Keep} if has_disk else set())
            for kind, handler in handlers.items():
                (effect,) = inspect.signature(handler).parameters.values()
                assert effect.annotation is kind, f"{handler} takes {effect.annotation}, but gets {kind}"
        finally:
            await network.stop()

    run(main())
