"""The targets, one per file. To add one, write a class in a new file and list it here."""

from pathlib import Path

from tests.fuzz.target import Target
from tests.fuzz.targets.connections import Connections
from tests.fuzz.targets.disk_files import DiskFiles
from tests.fuzz.targets.filters import Filters
from tests.fuzz.targets.frames import Frames
from tests.fuzz.targets.greetings import Greetings
from tests.fuzz.targets.http_requests import HttpRequests
from tests.fuzz.targets.messages import BrokerMessages, ClientMessages
from tests.fuzz.targets.network_files import NetworkFiles
from tests.fuzz.targets.sessions import Sessions
from tests.fuzz.targets.users_files import UsersFiles

__all__ = ["TARGETS", "name_of"]

TARGETS: dict[str, type[Target]] = {
    kind.name: kind
    for kind in (
        Frames, Greetings, ClientMessages, BrokerMessages, Filters, NetworkFiles, UsersFiles, HttpRequests, DiskFiles,
        Connections, Sessions,
    )
}  # fmt: skip
"""The targets by name."""


def name_of(path: Path) -> str | None:
    """Return the target of a saved input, whose file name begins with it."""
    return next((name for name in sorted(TARGETS, key=len, reverse=True) if path.name.startswith(f"{name}-")), None)
