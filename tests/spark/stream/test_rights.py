"""The Spark source has only the rights of its user, even if a task is manipulated."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.types import StringType, StructField, StructType

from gapless.client import connect
from gapless.errors import GaplessError
from gapless.overlay import chain
from gapless.positions import Position
from gapless.runtime.event_loop import run
from gapless_spark.stream.options import Options
from gapless_spark.stream.reading import Range, read
from gapless_spark.stream.source import GaplessSource
from tests.runtime.secure import Secure, secure

SCHEMA = StructType([StructField("topic", StringType())])
NEWS = {"publish": [], "subscribe": ["topic = 'news'"]}
USERS: dict[str, dict[str, Any]] = {
    "ann": {**NEWS, "history": True},
    "ben": NEWS,
    "cid": {**NEWS, "history": True, "outside": "narrow"},
}


def _options(network: Secure, user: str, text: str) -> dict[str, str]:
    shown = network.certified(user)
    file = network.directory / f"{user}.toml"
    lines = (f'authority = "{shown.authority}"', f'certificate = "{shown.certificate}"', f'key = "{shown.key}"')
    file.write_text("\n".join(lines), encoding="utf-8")
    return {"url": network.at("b0"), "filter": text, "credentials": str(file), "startingPosition": "earliest"}


def _topics(options: dict[str, str]) -> list[str]:
    reader: Any = GaplessSource(options).reader(SCHEMA)
    batches = [batch for part in reader.partitions() for batch in reader.read(part)]
    return [topic for batch in batches for topic in batch.column("topic").to_pylist()]


def test_a_query_reads_what_its_user_may_and_no_more(tmp_path: Path) -> None:
    async def main() -> None:
        async with secure(chain(2), tmp_path, users=USERS) as network:
            admin = await connect(network.at("b1"), name="c", credentials=network.certified("admin"))
            await admin.advertise("TRUE")
            await admin.publish_many({"topic": topic} for topic in ("bank", "news") * 50)

            async def read_as(user: str, text: str) -> list[str]:
                return await asyncio.wait_for(asyncio.to_thread(_topics, _options(network, user, text)), 60)

            assert await read_as("ann", "topic = 'news'") == ["news"] * 50
            assert await read_as("cid", "TRUE") == ["news"] * 50
            for user, text, why in (
                ("ann", "TRUE", "user 'ann' may not subscribe to 'TRUE'"),
                ("ann", "topic = 'bank'", "may not subscribe to"),
                ("ben", "topic = 'news'", "user 'ben' may not read history"),
            ):
                with pytest.raises(Exception, match=why):
                    await read_as(user, text)

            def forged() -> list[Any]:
                options = Options.of(_options(network, "ann", "topic = 'news'"))
                part = Range(Position.at(1), Position.at(2), network.at("b1"))
                return list(read(options, SCHEMA, "topic = 'bank'", part))

            with pytest.raises(GaplessError, match="may not subscribe to"):
                await asyncio.wait_for(asyncio.to_thread(forged), 60)
            await admin.close()

    run(main())
