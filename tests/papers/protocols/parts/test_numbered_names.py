"""Names of the form `client/number`."""

from gapless_papers.protocols.parts.numbered_names import client_in, name_of, number_in


def test_a_numbered_name_has_its_owner_and_its_number() -> None:
    name = name_of("ann/phone", 7)
    assert (client_in(name), number_in(name)) == ("ann/phone", 7)
    assert client_in(name_of("ann", "7.2")) == "ann"
