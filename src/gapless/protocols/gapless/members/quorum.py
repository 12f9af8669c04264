"""Which majority excludes a broker where brokers wait in a partition, and which trees are large enough for that.

A majority is more than half of the **closed neighbourhood** of a broker: the broker itself and everyone within f + 1
links of it, dead or alive. So no broker is excluded by both sides of a cut. Of a neighbourhood of 2f + 1 members, f
failures leave a majority; a network with a smaller neighbourhood does not start.
"""

from gapless.overlay import Overlay

__all__ = ["is_majority", "too_small", "why_too_small"]


def is_majority(overlay: Overlay, f: int, broker: str, voices: int, forgotten: int = 0) -> bool:
    """Whether so many of those around a broker are enough to exclude it, if so many others will not return."""
    return 2 * voices > _size(overlay, f, broker) - forgotten


def too_small(overlay: Overlay, f: int) -> list[str]:
    """The brokers around which f failures would leave no majority. A lone broker has nobody who could fail."""
    failures = min(f, len(overlay.brokers) - 1)
    return [name for name in overlay.brokers if _size(overlay, f, name) < 2 * failures + 1]


def why_too_small(overlay: Overlay, f: int) -> str | None:
    """Why f failures would stop a network that waits in a partition, and the ways out; None if they would not."""
    names = too_small(overlay, f)
    if not names:
        return None
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    fitting = next(smaller for smaller in range(f - 1, -1, -1) if not too_small(overlay, smaller))
    return (
        f"f = {f} needs at least {2 * f} other brokers within {f + 1} links of each broker, so that a majority is left "
        f"when {f} of them fail, and {shown} {'has' if len(names) == 1 else 'have'} fewer; choose f = {fitting}, add "
        'brokers, or set partition = "go on" under [protocol.options], with which a partition of the network can lose '
        "confirmed events"
    )


def _size(overlay: Overlay, f: int, broker: str) -> int:
    return 1 + len(overlay.within(broker, f + 1))
