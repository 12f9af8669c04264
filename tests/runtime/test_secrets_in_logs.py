"""No credential appears in logs, status, metrics, traces or errors."""

import asyncio
import io
import logging
import traceback
from pathlib import Path

import msgspec
import pytest

from gapless.client import Credentials, connect
from gapless.errors import GaplessError
from gapless.overlay import chain
from gapless.runtime.access import Access
from gapless.runtime.event_loop import run
from gapless.runtime.http_endpoint import HttpEndpoint
from gapless.runtime.logs import _Json, _Lines
from gapless.runtime.probe import ask_for_report, ask_to_end
from gapless.runtime.wire import decode_hello, greeting
from tests.security.test_signed_tokens import KEY, pem, signed

from .logged import logged
from .secure import Secure, secure
from .test_tls import _get

EVERYTHING = {"publish": ["TRUE"], "subscribe": ["TRUE"], "signed_token": True}


def _keys(directory: Path) -> list[str]:
    return [file.read_text(encoding="ascii").splitlines()[1] for file in directory.rglob("*.key")]


async def _use_everything(network: Secure, said: list[str]) -> list[str]:
    wrong, forged = "ann:wrong-secret-of-ann", signed(exp=1)
    good, token = signed(), network.token("ann")
    for shown in (wrong, forged, "zoe:wrong-secret-of-zoe", token, good):
        credentials = network.with_token(shown)
        said.append(repr(credentials))
        try:
            trace = network.directory / "trace"
            trace.mkdir(exist_ok=True)
            async with connect(network.at("b0"), credentials=credentials, trace=trace) as client:
                await client.advertise("TRUE")
                subscription = await client.subscribe("TRUE")
                await client.publish({"n": 1})
                await subscription.take()
                said.append(repr(client) + repr(subscription) + repr(vars(client)))
        except GaplessError:
            said.append(traceback.format_exc())
    address = network.config.addresses["b0"]
    admin = Access(is_tls=True, credentials=network.by_token("admin"))
    said.append(repr(await ask_for_report(address, timeout_s=30, access=admin)))
    said.append(repr(await ask_to_end(address, "nobody", timeout_s=30, access=admin)))
    endpoint = HttpEndpoint(network.brokers["b0"])
    await endpoint.start()
    for path in ("/status", "/metrics", "/healthz", "/nowhere"):
        for shown in (wrong, token, network.token("admin"), good):
            header = f"Authorization: Bearer {shown}\r\n"
            said.append(await _get(network, endpoint.port, path, header=header))
    endpoint.stop()
    broker = network.brokers["b0"]
    said.append(
        repr(vars(broker))
        + repr(broker.broker_security)
        + repr(broker.broker_security and broker.broker_security.users)
    )
    said.append(repr(decode_hello(memoryview(greeting("client", "ann:x", token=token)[5:]))))
    return [shown.partition(":")[2] or shown for shown in (wrong, forged, good, token, network.token("admin"))]


def test_no_secret_appears_in_any_log_status_trace_or_error(tmp_path: Path) -> None:
    lines, said = io.StringIO(), list[str]()
    logger = logging.getLogger("gapless")
    handlers = [logging.StreamHandler(lines), logging.StreamHandler(lines)]
    for handler, style in zip(handlers, (_Lines(), _Json()), strict=True):
        handler.setFormatter(style)
        logger.addHandler(handler)
    before = logger.level
    logger.setLevel(logging.DEBUG)

    async def main() -> list[str]:
        (tmp_path / "keys.pem").write_text(pem(KEY), encoding="utf-8")
        issuer = {"keys": "keys.pem", "audience": "shop"}
        users = {"ann": EVERYTHING, "bob": EVERYTHING}
        async with secure(chain(2), tmp_path, users=users, signed_tokens=issuer, http=["b0"]) as network:
            secrets = await _use_everything(network, said)
            text = (tmp_path / "users.toml").read_text(encoding="utf-8")
            hashes = [part.split('"')[0] for part in text.split("sha256$")[1:]]
            (tmp_path / "users.toml").write_text(text + f'\ntokens = "{secrets[3]}"\n', encoding="utf-8")
            broker_security = network.brokers["b0"].broker_security
            assert broker_security is not None
            assert not await broker_security.reload("the test says so")
            network.set_users({"bob": EVERYTHING}, signed_tokens=issuer)
            await network.reload()
            return [*secrets, *hashes, *_keys(tmp_path)]

    try:
        secrets = run(main())
    finally:
        logger.setLevel(before)
        for handler in handlers:
            logger.removeHandler(handler)
    assert len(secrets) > 10
    assert min(map(len, secrets)) > 15
    traced = b"".join(file.read_bytes() for file in (tmp_path / "trace").rglob("*") if file.is_file())
    assert traced
    for secret in secrets:
        assert secret not in lines.getvalue()
        assert not any(secret in text for text in said)
        assert secret.encode() not in traced
    assert "the token is invalid" in lines.getvalue()
    assert "refused" in lines.getvalue()


def test_every_refusal_names_client_address_and_reason_and_is_counted(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(1, tmp_path, f=0, users={"ann": {"subscribe": ["n = 1"]}}) as network:
            with logged() as log:
                client = await connect(network.at("b0"), name="desk", credentials=network.certified("ann"))
                with pytest.raises(GaplessError):
                    await asyncio.wait_for(client.subscribe("TRUE"), 30)
                await client.close()
                with pytest.raises(GaplessError):
                    await connect(network.at("b0"), credentials=Credentials(authority=tmp_path / "authority.pem"))
                facts = [vars(record) for record in log.records if "code" in vars(record)]
                assert {fact["code"] for fact in facts} == {"denied"}
                assert all(fact["address"].startswith("127.0.0.1:") for fact in facts)
                assert {fact["peer"].partition("-")[0] for fact in facts} == {"ann:desk", "probe"}
                assert all(len(fact["msg"]) > 20 for fact in facts)
            counted = network.brokers["b0"].report()["refused"]
            assert counted["denied"] >= 2
            assert msgspec.json.encode(counted)

    run(main())
