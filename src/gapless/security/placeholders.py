"""Replaces `${user}` in the filters of a users' file with the name of the user.

It is allowed in strings only. In a LIKE pattern, a `_` of the name is escaped: otherwise the filter
`topic LIKE 'users/${user}/%'` of user `a_b` would match topics of `axb`.
"""

from gapless.errors import FilterError
from gapless.filters.lexer import Token, tokens_of

__all__ = ["USER", "filled"]

USER = "${user}"
ESCAPES = "!^~|#\\"
"""The candidates for an escape character, if a pattern has none."""


def filled(text: str, user: str) -> str:
    """Return the filter with the user's name inserted. Raise a `FilterError` if the placeholder is not inside
    a string.
    """
    if USER not in text:
        return text
    tokens = tokens_of(text)
    parts: list[str] = []
    done = 0
    for number, token in enumerate(tokens):
        if token.kind == "name" and USER in str(token.value):
            raise FilterError(f"{USER} is allowed only inside strings", text, token.position)
        if token.kind != "string" or USER not in str(token.value):
            continue
        end = token.position + len(_quoted(str(token.value)))
        parts += [text[done : token.position], _filled(tokens, number, text, user)]
        done = end
    return "".join([*parts, text[done:]])


def _filled(tokens: list[Token], number: int, text: str, user: str) -> str:
    """Return a string with the user's name inserted, and the escape character that it needs."""
    value = str(tokens[number].value)
    if number == 0 or tokens[number - 1].kind != "LIKE":
        return _quoted(value.replace(USER, user))
    if tokens[number + 1].kind == "ESCAPE":
        return _quoted(value.replace(USER, _escaped(user, str(tokens[number + 2].value))))
    if "_" not in user:
        return _quoted(value.replace(USER, user))
    escape = next((each for each in ESCAPES if each not in value), None)
    if escape is None:
        raise FilterError("this pattern needs an escape character: add ESCAPE", text, tokens[number].position)
    return f"{_quoted(value.replace(USER, _escaped(user, escape)))} ESCAPE {_quoted(escape)}"


def _escaped(user: str, escape: str) -> str:
    """Return the user's name as a pattern that matches only this name."""
    return "".join(escape + each if each in ("_", escape) else each for each in user)


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
