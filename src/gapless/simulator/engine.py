"""The engine: drives the nodes of one protocol over one tree in virtual time.

Each node is given one input at a time by `step(input, now)`, and its effects are carried out, in order, before
anything else happens. Time stands still during a step. A run is a function of the tree, the protocol, the settings,
the script and the seed: whatever is random is drawn from a generator named after the seed and its purpose, and
nothing depends on the order of a set.

Brokers start first, in the order of the tree, then clients in the order in which they were added, all at time 0
before anything else. What the script adds (`call`, `crash`, `cut`…) happens at its time in the order of adding.

The loop in `_advance` is the hot path: a message on a link on which nothing can go wrong costs one step of its
receiver, one `Received`, one tuple and one append.
"""

import gc
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from heapq import heappop, heappush
from typing import Any

import msgspec

from gapless.errors import ProtocolError, ScenarioError
from gapless.overlay import Overlay
from gapless.protocol import (
    Advertise, Advertised, BrokerPlace, ClientPlace, Confirmed, Effect, Input, ProtocolSpec, Publish, Received,
    Rejected, Send, SetTimer, Start, Subscribe, Unadvertise, Unsubscribe, find_protocol,
)  # fmt: skip
from gapless.simulator.agenda import Agenda
from gapless.simulator.connections import Connections
from gapless.simulator.failures import NodeFailure, RunawayRun, SimulationFailure
from gapless.simulator.faults import Faults
from gapless.simulator.latency import LinkTimes
from gapless.simulator.nodes import CAREFUL, Link, Slot, Timer
from gapless.simulator.options import convert_options
from gapless.simulator.queueing import BrokerQueues
from gapless.simulator.recording import Recording
from gapless.simulator.replies import Replies, ReplyRule
from gapless.simulator.result import Result, StateSizes
from gapless.simulator.settings import Settings

__all__ = ["Simulation"]
