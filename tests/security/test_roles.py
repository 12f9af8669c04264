"""Roles that users share, rules that deny, the user's name in a filter, and tokens that expire."""

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gapless.errors import ConfigError, FilterError
from gapless.filters import parse
from gapless.security.permissions import Within
from gapless.security.placeholders import filled
from gapless.security.tokens import hash_token
from gapless.security.users_file import User, load_users


def _user(tmp_path: Path, text: str, name: str = "ann") -> User:
    file = tmp_path / "users.toml"
    file.write_text(text, encoding="utf-8")
    return load_users(file).by_name[name]


ROLES = """
[[roles]]
name = "reader"
subscribe = ["topic LIKE 'shop/%'"]
history = true

[[roles]]
name = "clerk"
publish = ["topic = 'orders/${user}'"]
deny_subscribe = ["topic LIKE 'shop/internal/%'"]
named = ["${user}-%"]

[[users]]
name = "ann"
roles = ["reader", "clerk"]
subscribe = ["topic = 'news'"]

[[users]]
name = "bob"
roles = ["reader"]
"""


def test_a_user_may_what_its_roles_and_its_own_entry_allow_together(tmp_path: Path) -> None:
    ann, bob = (_user(tmp_path, ROLES, name) for name in ("ann", "bob"))
    assert ann.may_subscribe.covers("topic = 'shop/shoes'")
    assert ann.may_subscribe.covers("topic = 'news'")
    assert not bob.may_subscribe.covers("topic = 'news'")
    assert ann.history
    assert ann.may_publish.test({"topic": "orders/ann"})
    assert not ann.may_publish.test({"topic": "orders/bob"})
    assert bob.may_publish.is_nothing
    assert ann.may_hold.has("ann-desk")
    assert not ann.may_hold.has("bob-desk")
    assert not bob.may_hold.has("bob-desk")


def test_a_denial_of_one_role_overrides_other_roles(tmp_path: Path) -> None:
    ann, bob = (_user(tmp_path, ROLES, name) for name in ("ann", "bob"))
    inside = "topic = 'shop/internal/prices'"
    assert bob.may_subscribe.covers(inside)
    assert not ann.may_subscribe.covers(inside)
    assert not ann.may_subscribe.covers("topic LIKE 'shop/%'")  # some of the filter is denied
    assert ann.may_subscribe.covers("topic LIKE 'shop/%' AND NOT topic LIKE 'shop/internal/%'")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[[users]]\nname = 'ann'\nroles = ['x']\n[[roles]]\nname = 'reader'", "users[0].roles[0]: there is no role"),
        ("[[roles]]\nname = 'r'\n[[roles]]\nname = 'r'", "roles[1].name: 'r' is already the name of roles[0]"),
        ("[[roles]]\nname = 'r'\npublsh = []", "roles[0].publsh: there is no such key; did you mean 'publish'"),
        ("[[roles]]\nname = 'r'\ndeny_publish = ['a = ']", "roles[0].deny_publish[0]: "),
        ("[[users]]\nname = 'ann'\nsubscribe = ['${user} = 1']", "users[0].subscribe[0]: "),
        ("[[users]]\nname = 'ann'\nsubscribe = ['\"${user}\" = 1']", "${user} is allowed only inside strings"),
        (f"[[users]]\nname = 'ann'\ntokens = [{{hash = '{hash_token('ann:x')}', expires = 2027-01-31T00:00:00}}]",
         "users[0].tokens[0].expires: add the time zone"),
        (f"[[users]]\nname = 'ann'\ntokens = [{{hash = '{hash_token('ann:x')}', expires = 2027-01-31}}]",
         "users[0].tokens[0].expires: "),
        ("[[users]]\nname = 'ann'\ntokens = [{hash = 'scrypt$1', expires = 2027-01-31T00:00:00Z}]",
         "users[0].tokens[0]: this is a scrypt hash"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _user(tmp_path, text)
    assert complaint in str(caught.value)


# ---- deny ---------------------------------------------------------------------------------------------------


def test_a_denied_event_is_outside_and_one_that_lacks_the_attribute_is_not() -> None:
    within = Within(["TRUE"], ["level > 3"])
    assert within.test({"level": 3})
    assert not within.test({"level": 4})
    assert within.test({"topic": "news"})


def test_a_narrowed_subscription_matches_no_denied_event_and_may_be_repeated() -> None:
    within = Within(["topic LIKE 'shop/%'", "topic = 'news'"], ["topic = 'shop/secret'", "level > 3"])
    narrowed = within.narrow("price > 1")
    assert narrowed is not None
    assert within.covers(narrowed)
    matches = parse(narrowed).test
    assert matches({"topic": "shop/a", "price": 2, "level": 1})
    assert not matches({"topic": "shop/secret", "price": 2, "level": 1})
    assert not matches({"topic": "shop/a", "price": 2, "level": 4})


FILTERS = ("a = 1", "a > 0", "NOT a = 1", "b = 'x'", "b LIKE 'x%'", "a = 1 OR b = 'x'", "a = 1 AND b = 'x'", "TRUE")
EVENTS = [
    {key: value for key, value in (("a", a), ("b", b)) if value is not None}
    for a in (None, 0, 1, 2)
    for b in (None, "x", "xy", "z")
]
SOME = st.lists(st.sampled_from(FILTERS), max_size=2)


@given(SOME, SOME, st.sampled_from(FILTERS))
def test_a_filter_within_the_rights_never_matches_a_denied_event(
    allowed: list[str], denied: list[str], asked: str
) -> None:
    """The oracle is the definition: an event is allowed if some filter allows it and none denies it."""
    within = Within(allowed, denied)
    candidates = [asked, within.narrow(asked), f"{asked} AND a = 5"]
    for event in EVENTS:
        may = any(parse(text).matches(event) for text in allowed) and not any(
            parse(text).matches(event) for text in denied
        )
        assert within.test(event) is may
        for text in candidates:
            if text is not None and within.covers(text) and parse(text).matches(event):
                assert may, (text, event)
    narrowed = within.narrow(asked)
    assert narrowed is None or within.covers(narrowed)


# ---- ${user} ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "user", "written"),
    [
        ("topic = 'users/${user}'", "a_b", "topic = 'users/a_b'"),
        ("topic LIKE 'users/${user}/%'", "ann", "topic LIKE 'users/ann/%'"),
        ("topic LIKE 'users/${user}/%'", "a_b", "topic LIKE 'users/a!_b/%' ESCAPE '!'"),
        ("topic LIKE 'wow!/${user}/%' OR a = 1", "a_b", "topic LIKE 'wow!/a^_b/%' ESCAPE '^' OR a = 1"),
        ("topic LIKE '10a%${user}' ESCAPE 'a'", "ann_", "topic LIKE '10a%aanna_' ESCAPE 'a'"),
        ("who IN ('it''s', '${user}', '${user}!')", "ann", "who IN ('it''s', 'ann', 'ann!')"),
        ("topic = 'plain'", "ann", "topic = 'plain'"),
    ],
)
def test_the_users_name_represents_itself(text: str, user: str, written: str) -> None:
    assert filled(text, user) == written
    parse(written)


def test_an_underscore_in_a_users_name_matches_no_other_user() -> None:
    test = parse(filled("topic LIKE 'users/${user}/%'", "a_b")).test
    assert test({"topic": "users/a_b/inbox"})
    assert not test({"topic": "users/axb/inbox"})


def test_a_pattern_that_uses_every_escape_character_asks_for_one() -> None:
    with pytest.raises(FilterError, match="add ESCAPE"):
        filled("topic LIKE '!^~|#\\${user}'", "a_b")


# ---- tokens that expire -------------------------------------------------------------------------------------


def test_a_token_of_the_file_may_expire(tmp_path: Path) -> None:
    kept = hash_token("ann:x")
    text = f"[[users]]\nname = 'ann'\ntokens = ['{kept}', {{hash = '{kept}', expires = 2027-01-31T02:00:00+02:00}}]"
    first, second = _user(tmp_path, text).tokens
    assert first == kept
    assert not isinstance(second, str)
    assert second.expires_s == datetime(2027, 1, 31, tzinfo=UTC).timestamp()


def test_the_command_prints_an_entry_for_the_users_file(tmp_path: Path, cli: Any) -> None:
    message = cli("security", "token", "ann", "--days", "90").out
    entry = message.splitlines()[1].partition("in tokens:")[2].strip()
    [token] = _user(tmp_path, f"[[users]]\nname = 'ann'\ntokens = [{entry}]").tokens
    assert not isinstance(token, str)
    assert 89 * 86_400 < token.expires_s - time.time() < 91 * 86_400
    assert cli("security", "token", "ann", "--days", "-1").code == 64
