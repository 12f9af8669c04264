"""Parsing: precedence, errors and their positions, bounds; parsing rendered text gives the same filter."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gapless.errors import GaplessError
from gapless.filters import Filter, FilterError, parse
from gapless.filters.lexer import TEXT_LENGTH_MAX, lone_surrogate
from gapless.filters.like import Pattern
from gapless.filters.names import KEYWORDS, render_name
from gapless.filters.parser import DEPTH_MAX, TERMS_MAX, parse_condition
from gapless.filters.syntax import (
    And,
    Arithmetic,
    Attribute,
    Comparison,
    Constant,
    Like,
    Literal,
    Negate,
    Not,
    Or,
    Truth,
    Value,
    render,
)
from tests.filters import generated

A, B, C = (Truth(Attribute(name)) for name in "abc")


def test_precedence_of_conditions() -> None:
    assert parse_condition("NOT a AND b OR c") == Or((And((Not(A), B)), C))
    assert parse_condition("NOT (a AND (b OR c))") == Not(And((A, Or((B, C)))))
    assert parse_condition("a OR b AND c") == Or((A, And((B, C))))


def test_precedence_of_arithmetic() -> None:
    x, one = Attribute("x"), Literal(1)
    assert parse_condition("x - 1 - x * -x = 1") == Comparison(
        "=", Arithmetic("-", Arithmetic("-", x, one), Arithmetic("*", x, Negate(x))), one
    )


def test_between_is_two_comparisons() -> None:
    assert parse_condition("x BETWEEN 1 AND 2") == parse_condition("x >= 1 AND x <= 2")


@pytest.mark.parametrize("name", ["_x", "$x", "x1", "x$y", "a.b.c", "a.1", "order.in", "été", "andy", "a._"])
def test_names(name: str) -> None:
    assert parse_condition(name) == Truth(Attribute(name))


@pytest.mark.parametrize("name", [*generated.QUOTED, *sorted(KEYWORDS), "x1", "a.b", "ın", "iſ", "\n", "'"])
def test_any_name_in_double_quotes(name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    assert parse_condition(quoted) == Truth(Attribute(name))
    assert parse_condition(f"{quoted} LIKE 'x%' AND {quoted}={quoted}") == And(
        (Like(Attribute(name), Pattern.parse("x%")), Comparison("=", Attribute(name), Attribute(name)))
    )


@given(st.text(max_size=6).filter(lambda name: lone_surrogate(name) is None))
@settings(max_examples=250)
def test_every_name_can_be_written(name: str) -> None:
    assert parse_condition(render_name(name)) == Truth(Attribute(name))


def test_keywords_are_ascii() -> None:
    assert parse_condition("ın = 1") == Comparison("=", Attribute("ın"), Literal(1))
    assert parse_condition("IN_ = 1 and not TRUe") == And(
        (Comparison("=", Attribute("IN_"), Literal(1)), Not(Constant(True)))
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-1", -1),
        ("+1", 1),
        ("--1", 1),
        ("1.", 1.0),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1.5E-1", 0.15),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("-9223372036854775808.0", -(2.0**63)),
        ("'it''s'", "it's"),
        ("''''", "'"),
        ("''", ""),
        ("'a\nb'", "a\nb"),
    ],
)
def test_constants(text: str, value: Value) -> None:
    condition = parse_condition(f"x = {text}")
    assert isinstance(condition, Comparison)
    assert isinstance(condition.right, Literal)
    assert condition.right == Literal(value)
    assert type(condition.right.value) is type(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("^", "the filter is empty"),
        ("   ^", "the filter is empty"),
        ("price >^", "expected a name, a constant or a parenthesis, found the end"),
        ("price ^10", "expected the end, AND or OR, found 10"),
        ("(a = 1^", "expected ), found the end"),
        ("a = 1^)", "expected the end, AND or OR, found )"),
        ("a = ^'x", "no closing quote"),
        ("a = 1 ^; b", "; means nothing"),
        ("a = ^#", "# means nothing"),
        ("a =^= 1", "single ="),
        ("a < ^TRUE", "a boolean can be compared only by = and <>"),
        ("3 >= ^'x'", "a number cannot be compared with a string"),
        ("a BETWEEN 'x' AND ^3", "a string cannot be compared with a number"),
        ("^TRUE < 3", "a boolean can be compared only by = and <>"),
        ("^'a' + 1 = 2", "+ takes numbers, not a string"),
        ("a * ^TRUE = 2", "* takes numbers, not a boolean"),
        ("-^'a' = 2", "- takes a number, not a string"),
        ("'a' = ^1", "a string cannot be compared with a number"),
        ("TRUE <> ^1", "a boolean cannot be compared with a number"),
        ("a + 1 = ^'x'", "a number cannot be compared with a string"),
        ("a BETWEEN ^TRUE AND 'y'", "BETWEEN takes numbers or strings, not a boolean"),
        ("a BETWEEN 1 ^OR 2", "expected AND, found OR"),
        ("a IN ^1", "expected (, found 1"),
        ("a IN (^)", "expected a name, a constant or a parenthesis, found )"),
        ("a IN (1, ^'x')", "IN expects a number here, not a string"),
        ("a IN (^TRUE)", "IN takes a list of strings or of numbers"),
        ("a IN (1, ^b)", "IN takes a list of strings or of numbers"),
        ("a + 1 IN (^'x')", "IN expects a number here"),
        ("a LIKE ^1", "LIKE takes a pattern"),
        ("^'x' LIKE 'x'", "LIKE takes the name of an attribute"),
        ("a LIKE 'x' ESCAPE ^'ab'", "exactly one character"),
        ("a LIKE 'x^!y' ESCAPE '!'", "must stand before"),
        ("a LIKE '''^!' ESCAPE '!'", "must stand before"),
        ("^1 IS NULL", "IS NULL takes the name of an attribute"),
        ("a IS ^1", "expected NULL, found 1"),
        ("a = ^NULL", "IS NULL"),
        ("a NOT ^= 1", "expected BETWEEN, IN or LIKE, found ="),
        ("a < b ^< c", "cannot be chained"),
        ("a = 1 ^IS NULL", "cannot be chained"),
        ("^(a > 1) = TRUE", "a condition cannot be compared"),
        ("^1", "not a number alone"),
        ("a AND ^'x'", "not a string alone"),
        ("NOT ^(a + 1)", "not a number alone"),
        ("a = ^9223372036854775808", "does not fit in 64 bits"),
        ("a = ^99999999999999999999999", "does not fit in 64 bits"),
        ("a = ^1e999", "too large for a float"),
        ("a = 1^x", "followed by a space"),
        ("a = 1^L", "followed by a space"),
        ("a^..b = 1", "a dot is allowed only"),
        ("a = ^'it''", "no closing quote"),
        ("a = ^'it''s AND b", "no closing quote"),
        ("a = ^١", "means nothing"),
        ("a ^iſ null", "expected the end"),
        ('a = ^"x', "this name has no closing quote"),
        ('a LIKE ^"x"', "double quotes are for names"),
        ('a IN (^"x")', "double quotes are for names"),
        ("a = '^\udce9'", "\\udce9 is half of a surrogate pair"),
        ('"^\ud83d" = 1', "\\ud83d is half of a surrogate pair"),
        ("a AND ^AND b", "expected a name, a constant or a parenthesis, found AND"),
    ],
)
def test_errors_point_at_the_place(text: str, message: str) -> None:
    position = text.index("^")
    text = text.replace("^", "", 1)
    with pytest.raises(FilterError) as caught:
        parse(text)
    error = caught.value
    assert message in error.message
    assert (error.text, error.position) == (text, position)
    lines = str(error).split("\n")
    assert lines[0] == error.message
    assert lines[2] == "  " + " " * position + "^"
    assert str(error).encode()
    assert isinstance(error, GaplessError)


def test_error_in_a_long_filter_shows_the_surroundings() -> None:
    text = " OR ".join(f"a = {i}" for i in range(100)) + " OR b < TRUE OR " + " OR ".join(["a"] * 100)
    with pytest.raises(FilterError) as caught:
        parse(text)
    shown, caret = str(caught.value).split("\n")[1:]
    assert shown[caret.index("^")] == "T"
    assert len(shown) < 120


def test_bounds() -> None:
    assert parse("(" * (DEPTH_MAX - 1) + "a" + ")" * (DEPTH_MAX - 1)).matches({"a": True})
    assert parse("a IN (" + ", ".join(["1"] * (TERMS_MAX - 1)) + ")").matches({"a": 1})
    for text, message in [
        ("(" * 60 + "a" + ")" * 60, "is nested deeper"),
        ("NOT " * 60 + "a", "is nested deeper"),
        ("-" * 60 + "a = 1", "is nested deeper"),
        ("+".join(["a"] * 60) + " = 1", "is nested deeper"),
        ("(" * 40 + "a" + " + 1)" * 20 + " + 1 + 1)" * 20 + "= 1", "is nested deeper"),
        ("(" * 100_000, "characters"),
        ("a = '" + "x" * TEXT_LENGTH_MAX + "'", "characters"),
        ("a IN (" + ", ".join(["1"] * TERMS_MAX) + ")", "names and constants"),
        (" OR ".join(["a"] * (TERMS_MAX + 1)), "names and constants"),
        (" OR ".join(f"a LIKE '%word{i}%'" for i in range(300)), "cost too much"),
        ("a LIKE '%" + "x_" * 200 + "y%'", "cost too much"),
    ]:
        with pytest.raises(FilterError, match=message):
            parse(text)


def test_the_largest_filters_go_through_every_stage() -> None:
    for text in [
        " OR ".join(f"(a{i} = 1 AND b{i} = 2)" for i in range(1000)),
        " AND ".join(f"(a{i} = 1 OR b{i} = 2)" for i in range(1000)),
        " AND ".join(f"a LIKE '%{i}%'" for i in range(200)),
        " OR ".join(f"a NOT LIKE '%{i}_%x%'" for i in range(200)),
        " OR ".join(f"a LIKE '{i}/_%'" for i in range(2000)),
        " OR ".join(f"a = {i}" for i in range(2000)),
        " AND ".join(f"a <> {i}" for i in range(2000)),
        " OR ".join(f"a LIKE '%x{i}%y_%' AND a LIKE '%_y{i}%'" for i in range(60)),
        "(" * 22 + "a = 1" + " AND b = 2 OR c = 3)" * 22,
        "1" + " + a" * 47 + " > 3",
    ]:
        filter_ = parse(text)
        filter_.matches({"a": 1})
        assert filter_.covers(parse(text + " "))
        filter_.overlaps(filter_)


@given(generated.filters)
@settings(max_examples=300)
def test_rendered_trees_read_back(filter_: Filter) -> None:
    assert render(parse_condition(render(filter_.condition))) == render(filter_.condition)


@given(st.text(st.sampled_from("ab1 .'\"()=<>+-*/%_,!ANDORTNIL\n\udce9"), max_size=30))
@settings(max_examples=400)
def test_any_text_is_read_or_refused(text: str) -> None:
    refused: FilterError | None = None
    try:
        parse(text)
    except FilterError as error:
        refused = error
    if refused is not None:
        assert 0 <= refused.position <= len(text)
        assert refused.message in str(refused)
