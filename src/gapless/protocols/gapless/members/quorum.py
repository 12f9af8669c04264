"""Where brokers wait in a cut: how many must have lost sight of a broker before the others go on without it.

More than half of its **closed neighbourhood**: the broker itself and everyone within f + 1 of it, dead or alive. So no
broker is excluded by both sides of a cut, and f failures are survived where each neighbourhood has 2 f + 1 members.
"""

from gapless.overlay import Overlay

__all__ = ["is_majority", "too_small", "warn_if_too_small"]


def is_majority(overlay: Overlay, f: int, broker: str, voices: int, forgotten: int = 0) -> bool:
    """Whether so many of those around a broker are enough to exclude it, if so many others will not return."""
    return 2 * voices > _size(overlay, f, broker) - forgotten


def too_small(overlay: Overlay, f: int) -> list[str]:
    """The brokers around which f failures would leave no majority."""
    return [name for name in overlay.brokers if _size(overlay, f, name) < 2 * f + 1]


def warn_if_too_small(overlay: Overlay, f: int) -> str | None:
    """What an operator is told who wants brokers to wait in a tree that is too small for it."""
    names = too_small(overlay, f)
    if not names:
        return None
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return (
        f'partition = "wait" survives f = {f} failures only where every broker and those within {f + 1} links of it '
        f"are at least {2 * f + 1}, and around {shown} there are fewer: if {f} of them fail, the rest waits until one "
        f'is back; choose a smaller f, more brokers, or partition = "go on"'
    )


def _size(overlay: Overlay, f: int, broker: str) -> int:
    return 1 + len(overlay.within(broker, f + 1))
