"""Fetches the keys that sign tokens, if `[signed_tokens]` names a URL.

A thread fetches them, one request at a time: at the start of the broker, every `REFRESH_S`, and
when a token names an unknown key, but not more often than every `RETRY_S`. So a new key of the
issuer is accepted within seconds, and invented key names cause at most one request in that time. If
the issuer cannot be reached, the last keys are valid for another `STALE_S`, and then none.
"""

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec

from gapless.errors import ConfigError
from gapless.runtime.logs import Logger
from gapless.security.key_url import fetch
from gapless.security.users_file import Users

__all__ = ["RemoteKeys"]

REFRESH_S = 300.0
RETRY_S = 10.0
STALE_S = 86_400.0


class RemoteKeys:
    """The signing keys of one broker that come from a URL."""

    def __init__(
        self, logger: Logger, removed: Callable[[], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`removed` is called when a key is no longer trusted."""
        self.failures = 0
        self.fetches = 0
        self._logger = logger
        self._removed = removed
        self._clock = clock
        self._url = ""
        self._text = ""
        self._tried = self._fetched = clock() - STALE_S

    def adopt(self, users: Users | None) -> None:
        """Use a new users' file. The keys stay valid, unless it names another URL."""
        signed = None if users is None else users.signed
        if signed is None or signed.url != self._url:
            self._text = ""
            self._tried = self._fetched = self._clock() - STALE_S
        self._url = "" if signed is None else signed.url
        if signed is not None and self._text:
            signed.set_keys(self._text)

    async def look(self, users: Users | None) -> None:
        """Start to fetch the keys if that is due."""
        signed = None if users is None else users.signed
        if users is None or signed is None or not signed.url:
            return
        now = self._clock()
        wants = signed.is_refresh_wanted or not self._text or now - self._fetched >= REFRESH_S
        if not wants or now - self._tried < RETRY_S:
            return
        self._tried = now
        url = signed.url
        try:
            text = await asyncio.to_thread(fetch, url, users.keys_authority)
            if url != self._url:
                return  # the file now names another URL
            signed.set_keys(text)
        except ConfigError as error:
            self._fail(users, str(error) if str(error).startswith(url) else f"{url}: {error}")
            return
        self.fetches += 1
        before, self._text, self._fetched = self._text, text, now
        signed.is_refresh_wanted = False
        if before != text:
            self._logger.info("loaded the keys that sign tokens", extra={"event": "keys.loaded", "url": url})
            if _keys_in(before) - _keys_in(text):
                self._removed()

    def _fail(self, users: Users, reason: str) -> None:
        assert users.signed is not None
        self.failures += 1
        age = self._clock() - self._fetched
        if self._text and age >= STALE_S:
            self._text = ""
            users.signed.forget_keys()
            self._logger.error(f"signed tokens are no longer trusted: {reason}", extra={"event": "keys.expired"})
            self._removed()
        else:
            self._logger.warning(
                f"cannot load the keys that sign tokens: {reason}", extra={"event": "keys.unreachable"}
            )


def _keys_in(text: str) -> set[bytes]:
    """Return each key of an accepted set in a canonical form."""
    if not text.lstrip().startswith("{"):
        return {text.encode()} if text else set()
    found: dict[str, Any] = msgspec.json.decode(text)
    return {msgspec.json.encode(key, order="deterministic") for key in found["keys"]}
