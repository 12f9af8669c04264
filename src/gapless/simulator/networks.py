"""Creates the overlay of brokers and the engine's settings from the `[network]` table of a scenario."""

from collections.abc import Callable

from gapless import overlay as shapes
from gapless.errors import OverlayError
from gapless.overlay import Overlay
from gapless.simulator.latency import Latency
from gapless.simulator.scenario import Delay, LatencySpec, Network, NodeModelSpec, Run
from gapless.simulator.settings import NodeModel, Settings

__all__ = ["microseconds", "overlay_of", "settings_of"]

_DEFAULT_LATENCY_MS = 10.0

_NEEDED: dict[str, tuple[str, ...]] = {
    "binary": ("depth",),
    "kary": ("fanout", "depth"),
    "chain": ("brokers",),
    "star": ("brokers",),
    "random": ("brokers",),
    "edges": ("edges",),
    "ring": ("brokers",),
    "grid": ("rows", "columns"),
    "regular": ("brokers", "degree"),
}
_ALLOWED: dict[str, tuple[str, ...]] = {"random": ("tree_seed", "max_degree"), "regular": ("tree_seed",)}
_KEYS = ("brokers", "depth", "fanout", "edges", "tree_seed", "max_degree", "rows", "columns", "degree")

_BUILD: dict[str, Callable[[Network], Overlay]] = {
    "binary": lambda network: shapes.binary(network.depth or 0),
    "kary": lambda network: shapes.kary(network.fanout or 0, network.depth or 0),
    "chain": lambda network: shapes.chain(network.brokers or 0),
    "star": lambda network: shapes.star(network.brokers or 0),
    "random": lambda network: shapes.random_tree(network.brokers or 0, network.tree_seed or 0, network.max_degree),
    "edges": lambda network: shapes.from_edges(network.edges or ()),
    "ring": lambda network: shapes.ring(network.brokers or 0),
    "grid": lambda network: shapes.grid(network.rows or 0, network.columns or 0),
    "regular": lambda network: shapes.random_regular(network.brokers or 0, network.degree or 0, network.tree_seed or 0),
}


def microseconds(ms: float) -> int:
    """Return a time in milliseconds as the nearest whole number of microseconds."""
    return round(ms * 1000)


def overlay_of(network: Network) -> Overlay:
    """Return the tree or graph that the table describes."""
    needed = _NEEDED[network.shape]
    for key in _KEYS:
        given = getattr(network, key) is not None
        if key in needed and not given:
            raise OverlayError(f"shape {network.shape!r} needs {key!r}")
        if given and key not in needed and key not in _ALLOWED.get(network.shape, ()):
            raise OverlayError(f"shape {network.shape!r} has no {key!r}; it takes {', '.join(needed)}")
    overlay = _BUILD[network.shape](network)
    return shapes.with_bypasses(overlay, network.bypass) if network.bypass else overlay


def settings_of(network: Network, run: Run) -> Settings:
    """Return the engine's settings for a scenario's tables."""
    model, disks = network.node_model, network.disks
    return Settings(
        latency=_latency_of(network.latency),
        detect_least_us=microseconds(network.detection.min_ms),
        detect_most_us=microseconds(network.detection.max_ms),
        reconnect_least_us=microseconds(network.reconnect.min_ms),
        reconnect_most_us=microseconds(network.reconnect.max_ms),
        loss=network.loss,
        duplication=network.duplication,
        node_model=None if model is None else _node_model_of(model),
        sync_us=None if disks is None else (microseconds(disks.min_ms), microseconds(disks.max_ms)),
        sample_us=microseconds(run.sample_ms),
        schedule=run.schedule,
        max_steps=run.max_steps,
    )


def _node_model_of(spec: NodeModelSpec) -> NodeModel:
    return NodeModel(microseconds(spec.processing_ms), microseconds(spec.transmission_ms), frozenset(spec.free))


def _latency_of(spec: LatencySpec) -> Latency:
    if spec.model == "constant":
        bounds = Delay(*[_DEFAULT_LATENCY_MS if spec.ms is None else spec.ms] * 2)
    else:
        bounds = Delay(spec.min_ms or 0.0, spec.max_ms or 0.0)
    table = {}
    for link, ms in spec.links.items():
        a, _, b = link.partition("-")
        table[a, b] = microseconds(ms)
    return Latency(
        least_us=microseconds(bounds.min_ms),
        most_us=microseconds(bounds.max_ms),
        per_link=spec.model == "per-link",
        table=table,
        client_us=microseconds(spec.client_ms),
        direct=spec.direct,
    )
