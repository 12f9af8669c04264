"""The simulator's table of effects has an entry for each kind of effect, with a matching handler."""

import inspect
from typing import Any, get_args

from gapless.overlay import chain
from gapless.protocol import Effect
from gapless.registry import find_protocol
from gapless.simulator import Settings, Simulation
from gapless.trace import Recorder


def test_each_effect_goes_to_what_takes_it() -> None:
    spec = find_protocol("gapless")
    recorder = Recorder(run="r", protocol=spec.name, guarantee=spec.guarantee, scenario="s", seed=0, brokers=1, f=0)
    simulation = Simulation(chain(1), spec, f=0, settings=Settings(sync_us=(1, 2)), recorder=recorder)
    handlers = simulation._effect_handlers()
    assert set(handlers) == set(get_args(Effect))
    for kind, handler in handlers.items():
        taken = inspect.signature(handler).parameters["effect"].annotation
        assert taken in (kind, Any), f"{handler} takes {taken}, but gets {kind}"
