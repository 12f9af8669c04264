"""What an operator reads in a broker's log of who is out and who is back."""

from collections.abc import Mapping
from typing import Any

from gapless.runtime.logs import Logger

__all__ = ["News"]


class News:
    """Says what has changed since it last looked."""

    def __init__(self, logger: Logger) -> None:
        self._logger = logger
        self._life: int | None = None
        self._stand_ins: Mapping[str, str] = {}

    def tell(self, overview: Mapping[str, Any]) -> None:
        """Look at what the node says of itself; a protocol that does not say it has no news."""
        if not overview:
            return
        life, stand_ins = overview.get("life"), overview.get("stand_ins", {})
        if self._life is not None and life != self._life:
            self._logger.warning("was taken for dead, and has started over", extra={"life": life})
        for name in self._stand_ins:
            if name not in stand_ins:
                self._logger.info("back", extra={"peer": name})
        for name, chief in stand_ins.items():
            if self._stand_ins.get(name) != chief:
                self._logger.info("out", extra={"peer": name, "stand_in": chief})
        self._life, self._stand_ins = life, stand_ins
