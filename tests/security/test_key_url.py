"""Keys that sign tokens are fetched from a real server on loopback: rotation, bounds, and an unreachable issuer."""

import asyncio
import json
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from jwt.algorithms import OKPAlgorithm

from gapless.client import connect
from gapless.errors import ConfigError, ConnectError, DeniedError
from gapless.runtime import remote_keys
from gapless.runtime.event_loop import run
from gapless.runtime.logs import logger_of
from gapless.runtime.remote_keys import REFRESH_S, RETRY_S, STALE_S, RemoteKeys
from gapless.security import key_url
from gapless.security.certificates import Authority
from gapless.security.key_url import KeysPendingError, check_url, fetch
from gapless.security.users_file import Users, load_users
from tests.runtime.secure import secure, until

Answer = Callable[[BaseHTTPRequestHandler], None]
FIRST, SECOND = ed25519.Ed25519PrivateKey.generate(), ed25519.Ed25519PrivateKey.generate()


class Issuer:
    def __init__(self, directory: Path) -> None:
        self.requests = 0
        self.answer: Answer = self.with_keys(first=FIRST)
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.requests += 1
                issuer.answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        Authority.make("test").write(directory / "issuer.pem", directory / "issuer.key")
        authority = Authority.load(directory / "issuer.pem", directory / "issuer.key")
        authority.issue(directory / "web.pem", directory / "web.key", uri="https://x", name="x", hosts=["127.0.0.1"])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(directory / "web.pem", directory / "web.key")
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        self.url = f"https://127.0.0.1:{self._server.server_address[1]}/keys"

    @staticmethod
    def with_text(text: str, status: int = 200, **headers: str) -> Answer:
        def answer(request: BaseHTTPRequestHandler) -> None:
            request.send_response(status)
            for name, value in headers.items():
                request.send_header(name, value)
            request.end_headers()
            request.wfile.write(text.encode())

        return answer

    @classmethod
    def with_keys(cls, **keys: ed25519.Ed25519PrivateKey) -> Answer:
        found = [{**OKPAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": name} for name, key in keys.items()]
        return cls.with_text(json.dumps({"keys": found}))

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def issuer(tmp_path: Path) -> Iterator[Issuer]:
    found = Issuer(tmp_path)
    yield found
    found.close()


def _token(key: ed25519.Ed25519PrivateKey, name: str) -> str:
    claims = {"sub": "ann", "aud": "shop", "exp": time.time() + 600}
    return jwt.encode(claims, key, algorithm="EdDSA", headers={"kid": name})


class Clock:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


class Kept:
    def __init__(self, directory: Path, issuer: Issuer) -> None:
        self.clock = Clock()
        self.removed = 0
        self.keys = RemoteKeys(logger_of("b0"), self._note_removed, self.clock)
        self.file = directory / "remote-users.toml"
        self.file.write_text(
            f'[signed_tokens]\nkeys = "{issuer.url}"\nkeys_authority = "issuer.pem"\naudience = "shop"\n', "utf-8"
        )
        self.users: Users
        self.reload()

    def _note_removed(self) -> None:
        self.removed += 1

    def reload(self) -> None:
        self.users = load_users(self.file)
        self.keys.adopt(self.users)

    def look(self, after_s: float = 0.0) -> None:
        self.clock.now += after_s
        asyncio.run(self.keys.look(self.users))

    def user_of(self, key: ed25519.Ed25519PrivateKey, name: str) -> str:
        assert self.users.signed is not None
        return self.users.signed.user_of(_token(key, name))[0]


def test_a_new_key_counts_soon_after_a_token_names_it_and_an_old_one_no_more(tmp_path: Path, issuer: Issuer) -> None:
    kept = Kept(tmp_path, issuer)
    with pytest.raises(KeysPendingError):
        kept.user_of(FIRST, "first")
    kept.look()
    assert kept.user_of(FIRST, "first") == "ann"
    issuer.answer = issuer.with_keys(first=FIRST, second=SECOND)
    with pytest.raises(KeysPendingError, match="the keys are being fetched again"):
        kept.user_of(SECOND, "second")
    kept.look(RETRY_S)
    assert kept.user_of(SECOND, "second") == "ann"
    assert kept.removed == 0
    issuer.answer = issuer.with_keys(second=SECOND)
    kept.look(REFRESH_S)
    assert kept.removed == 1
    with pytest.raises(KeysPendingError):
        kept.user_of(FIRST, "first")
    kept.look(RETRY_S)
    with pytest.raises(DeniedError, match="not signed by a key that is trusted") as caught:
        kept.user_of(FIRST, "first")  # the issuer was queried meanwhile
    assert not isinstance(caught.value, KeysPendingError)
    assert issuer.requests == 4


def test_names_invented_by_clients_cause_one_request_per_interval(tmp_path: Path, issuer: Issuer) -> None:
    kept = Kept(tmp_path, issuer)
    kept.look()
    for number in range(100):
        with pytest.raises(KeysPendingError):
            kept.user_of(SECOND, f"invented-{number}")
        kept.look(RETRY_S / 64)
    assert issuer.requests == 1 + 1  # in one and a half such intervals
    with pytest.raises(DeniedError, match="not signed by a key that is trusted") as caught:
        kept.user_of(SECOND, "first")
    assert not isinstance(caught.value, KeysPendingError)


def test_keys_are_kept_for_a_limited_time_while_the_issuer_is_away(tmp_path: Path, issuer: Issuer) -> None:
    kept = Kept(tmp_path, issuer)
    kept.look()
    issuer.answer = issuer.with_text("maintenance", 503)
    kept.look(REFRESH_S)
    kept.reload()  # and the file was read again meanwhile
    assert kept.keys.failures == 1
    assert kept.user_of(FIRST, "first") == "ann"
    kept.look(STALE_S)
    assert kept.removed == 1
    with pytest.raises(KeysPendingError):
        kept.user_of(FIRST, "first")
    issuer.answer = issuer.with_keys(first=FIRST)
    kept.look(RETRY_S)
    assert kept.user_of(FIRST, "first") == "ann"


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (Issuer.with_text("x" * (key_url.BYTES_MAX + 1)), "the answer has more than 262,144 bytes"),
        (Issuer.with_text("", 302, Location="http://127.0.0.1:1/"), "status 302: a redirect, which is not followed"),
        (Issuer.with_text("no", 500), "status 500: no keys"),
        (Issuer.with_text("{}"), "there are"),
        (Issuer.with_text('{"keys": 5}'), "there are"),
        (Issuer.with_text('{"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "s"}]}'), "there are"),
        (Issuer.with_text("[" * 100_000), "there are"),
    ],
)
def test_an_answer_that_is_no_key_set_changes_nothing(
    tmp_path: Path, issuer: Issuer, answer: Answer, complaint: str, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Kept(tmp_path, issuer)
    kept.look()
    issuer.answer = answer
    kept.look(REFRESH_S)
    assert kept.keys.failures == 1
    assert complaint in caplog.text
    assert kept.user_of(FIRST, "first") == "ann"


@pytest.mark.parametrize("ends_head", [True, False], ids=["body", "head"])
def test_an_issuer_that_sends_a_byte_at_a_time_is_given_up(
    ends_head: bool, issuer: Issuer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_url, "WHOLE_S", 0.2)
    given_up = threading.Event()

    def drip(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        if ends_head:
            request.end_headers()
        else:
            request.flush_headers()
            request.wfile.write(b"X-Slow: ")
        while not given_up.wait(0.05):
            request.wfile.write(b" ")
            request.wfile.flush()

    issuer.answer = drip
    try:
        with pytest.raises(ConfigError, match="the answer took longer than"):
            fetch(issuer.url, tmp_path / "issuer.pem")
    finally:
        given_up.set()


def test_the_certificate_of_the_issuer_is_checked(issuer: Issuer, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="certificate verify failed"):
        fetch(issuer.url, None)
    assert issuer.requests == 0
    assert '"keys"' in fetch(issuer.url, tmp_path / "issuer.pem")


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("http://id.example/keys", "fetched by plain http from this host only"),
        ("ftp://127.0.0.1/keys", "is not https://"),
        ("https:///keys", "is not https://"),
        ("https://me:secret@id.example/keys", "contains a user or a password"),
        ("https://id.example:port/keys", "is not a valid URL"),
        ("https://[::1/keys", "is not a valid URL"),
    ],
)
def test_a_url_that_would_not_be_safe_is_refused_in_the_file(tmp_path: Path, url: str, complaint: str) -> None:
    (tmp_path / "users.toml").write_text(f'[signed_tokens]\nkeys = "{url}"\naudience = "shop"\n', encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_users(tmp_path / "users.toml")
    assert "users.toml: signed_tokens.keys: " in str(caught.value)
    assert complaint in str(caught.value)
    assert "secret" not in str(caught.value)
    check_url("http://127.0.0.1:8080/keys")


def test_a_broker_follows_the_rotation_of_keys_and_ends_what_an_old_key_proved(
    tmp_path: Path, issuer: Issuer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote_keys, "RETRY_S", 0.0)

    async def main() -> None:
        users: dict[str, Any] = {"ann": {"subscribe": ["TRUE"], "signed_token": True}, "bob": {"subscribe": ["TRUE"]}}
        tokens = {"keys": issuer.url, "keys_authority": "issuer.pem", "audience": "shop"}
        async with secure(1, tmp_path, f=0, users=users, signed_tokens=tokens) as network:
            bob = await connect(network.at("b0"), credentials=network.by_token("bob"))
            by_first = network.with_token(_token(FIRST, "first"))
            ann = await connect(network.at("b0"), credentials=by_first, timeout_s=30)
            subscription = await ann.subscribe("TRUE")
            issuer.answer = issuer.with_keys(second=SECOND)
            by_second = network.with_token(_token(SECOND, "second"))
            async with connect(network.at("b0"), credentials=by_second, timeout_s=30) as client:
                await client.subscribe("TRUE")  # the key was unknown when the client connected
            with pytest.raises(ConnectError):
                await asyncio.wait_for(subscription.take(), 60)
            await ann.close()
            counters = network.brokers["b0"].links.counters
            await until(lambda: counters.refused["changed"] == 1)
            await bob.subscribe("TRUE")  # authenticated by a token of the file, so it continues
            await bob.close()

    run(main())
