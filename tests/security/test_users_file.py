"""The users file is valid only as a whole; errors name the place and repeat no secret."""

from pathlib import Path

import pytest

from gapless.errors import ConfigError
from gapless.security.credentials import Credentials
from gapless.security.identity import certificate_uri, is_user_name, named_in, user_of
from gapless.security.permissions import Within
from gapless.security.tokens import hash_token, is_hash, make_token, matches, split_token
from gapless.security.users_file import Users, load_users

KEPT = hash_token("ann:secret")


def _load(tmp_path: Path, text: str) -> object:
    file = tmp_path / "users.toml"
    file.write_text(text, encoding="utf-8")
    return load_users(file)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[users]]\nname = 'ann'\npublish = 'TRUE'", "users[0].publish: Expected `array`, got `str`"),
        ("[[users]]\nname = 'ann'\npublish = ['a = ']", "users[0].publish[0]: "),
        ("[[users]]\nname = 'a:b'", "users[0].name: 'a:b' is not a valid name"),
        ("[[users]]\nname = 'ann'\n[[users]]\nname = 'ann'", "users[1].name: 'ann' is already the name of users[0]"),
        ("[[users]]\nname = 'ann'\nsuscribe = []", "users[0].suscribe: there is no such key; did you mean 'subscribe'"),
        ("[[users]]\nname = 'ann'\noutside = 'drop'", "users[0].outside: Invalid enum value 'drop'"),
        ("[[users]]\nname = 'ann'\nsigned_token = true", "users[0].signed_token: configure the issuer"),
        ("[[users]]\nname = 'ann'\n[users.limits]\nconections = 1", "users[0].limits.conections: there is no such key"),
        ("[limits]\nconnections = -1", "limits: connections is -1, but a limit must be a positive number"),
        ("[broker_limits]\nnames = 5", "broker_limits.names: names are those of a user, at all brokers"),
        ("[[users]]\npublish = []", "users[0]: needs a value for 'name'"),
        ("[users]\nname = 'ann'", "users: write each one as a table that starts with [[users]]"),
        ("users = ", "this is not TOML"),
        ("[signed_tokens]\nkeys = 'none.pem'\naudience = 'x'", "none.pem: cannot be read"),
        ("revoked = ['0A3F', 'all of ann']", "revoked[1]: 'all of ann' is not a serial number; write it in"),
        ("revoked = [' : ']", "revoked[0]: ' : ' is not a serial number"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    message = str(caught.value).replace("`", "'")
    assert complaint.replace("`", "'") in message


def test_a_token_in_clear_text_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"users\[0\].tokens\[0\]: this is not the hash of a token") as caught:
        _load(tmp_path, "[[users]]\nname = 'ann'\ntokens = ['ann:my-secret']")
    assert "my-secret" not in str(caught.value)


def test_credentials_that_cannot_be_read_are_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "ann.toml"
    file.write_text("tokn = 'ann:my-secret'\n", encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        Credentials.load(file)
    assert "my-secret" not in str(caught.value)
    assert "my-secret" not in repr(Credentials(token="ann:my-secret"))


def test_a_scrypt_hash_is_refused_with_the_command_that_replaces_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"tokens\[0\]: this is a scrypt hash.* gapless security token ann, put"):
        _load(tmp_path, "[[users]]\nname = 'ann'\ntokens = ['scrypt$14$8$1$AAAAAAAAAAAAAAAAAAAAAA==$AAAA']")


def test_a_hash_has_one_form() -> None:
    assert is_hash(KEPT)
    for text in (KEPT.upper(), KEPT + "0", KEPT[:-1], KEPT.removeprefix("sha256$"), KEPT + "\n", "ann:secret"):
        assert not is_hash(text)


def test_a_token_matches_its_own_hash_and_no_other() -> None:
    token = make_token("ann")
    user, secret = split_token(token)
    assert user == "ann"
    assert len(secret) >= 43  # 256 bits
    assert matches(token, hash_token(token))
    assert not matches(token[:-1], hash_token(token))
    assert not matches(f"bob:{secret}", hash_token(token))  # the hash covers the user's name
    assert split_token("no-colon") == ("", "")
    assert split_token("ann:") == ("", "")


def test_names_of_users() -> None:
    assert all(map(is_user_name, ("ann", "a.b@c-d_e", "7", "a" * 64)))
    assert not any(map(is_user_name, ("", "a:b", "a/b", "ä", "-a", "a" * 65, "a\n")))


def test_a_certificate_names_a_broker_or_a_user_of_one_network() -> None:
    assert named_in([certificate_uri("shop", "broker", "b0")], "shop") == ("broker", "b0")
    assert named_in(["spiffe://x", certificate_uri("a/b c", "user", "ann")], "a/b c") == ("user", "ann")
    assert named_in([certificate_uri("shop", "broker", "b0")], "other") is None
    assert named_in(["gapless://shop/broker/"], "shop") is None
    assert named_in(["gapless://shop/broker/b0/x"], "shop") is None
    assert user_of("ann:dashboard-1") == "ann"
    assert user_of("dashboard-1") == ""


def test_narrowing_beyond_the_size_of_a_filter_is_refused() -> None:
    within = Within(["topic = 'news'"])
    assert within.narrow("n = 1") == "(n = 1) AND ((topic = 'news'))"
    assert within.narrow("(" * 50 + "n = 1" + ")" * 50) is None
    assert Within([]).narrow("n = 1") is None


@pytest.mark.parametrize(
    ("allowed", "asked"),
    [
        ("level = 1", "level = TRUE"),
        ("level = 0", "level = FALSE"),
        ("level = TRUE", "level = 1"),
        ("level = 1 AND a = b", "level = TRUE AND a = b"),
        ("a + b > 1 OR level = 1", "a + b > 1 OR level = TRUE"),
        ("NOT (a = b OR level = 1)", "NOT (a = b OR level = TRUE)"),
    ],
)
def test_a_number_and_a_boolean_are_not_the_same(allowed: str, asked: str) -> None:
    within = Within([allowed])
    for text in (asked, f"({asked}) AND 1 = 1", f"({asked}) AND topic LIKE '%'"):
        assert not within.covers(text), text
    assert within.covers(f"({allowed}) AND 1 = 1")


@pytest.mark.parametrize("written", ["0A3F01", "a3f01", "0a:3f:01", "0x0A3F01", " 0A 3F 01 ", "000A3F01"])
def test_a_serial_number_may_be_written_as_programs_print_it(tmp_path: Path, written: str) -> None:
    users = _load(tmp_path, f"revoked = ['{written}']")
    assert isinstance(users, Users)
    assert users.is_revoked({"serialNumber": "0A3F01"})
    assert not users.is_revoked({"serialNumber": "0A3F02"})
    assert not users.is_revoked({})
