"""Python's own parser reads the writer's output."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from gapless.simulator.scenario import Client, Network, ProtocolChoice, PublishAction, Scenario

values = st.one_of(
    st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(st.characters(codec="utf-8"))
)
tables = st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), values, max_size=4)


@given(tables, st.text(st.characters(codec="utf-8"), min_size=1), tables)
def test_written_data_can_be_read(
    attributes: dict[str, bool | int | float | str], name: str, options: dict[str, object]
) -> None:
    scenario = Scenario(
        Network(shape="edges", edges=(("a", "b"),)),
        ProtocolChoice("p", options),
        clients=(Client(name, "a"),),
        actions=(PublishAction(1.5, name, attributes),),
    )
    document = tomllib.loads(scenario.to_toml())
    assert document["protocol"].get("options", {}) == options
    assert document["clients"] == [{"name": name, "broker": "a"}]
    assert document["actions"] == [{"do": "publish", "at_ms": 1.5, "client": name, "attributes": attributes}]
    assert document["network"] == {"shape": "edges", "edges": [["a", "b"]]}
