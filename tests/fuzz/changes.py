"""Small random changes of bytes, texts, and trees of MessagePack or TOML values."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import msgspec

__all__ = ["INTERESTING", "change_packed", "changed_bytes", "changed_text", "changed_tree"]

INTERESTING: tuple[Any, ...] = (
    *(0, 1, -1, 2, 127, 128, 255, 256, 2**31, 2**32, 2**53, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1, -(2**63)),
    *(0.0, -0.0, 1.5, 1e300, float("inf"), float("-inf"), float("nan")),
    *(True, False, None, "", "a", "TRUE", "b0/0", "b0", "/", "ä\U0001f600", "x" * 300, b"", b"\xff" * 9),
    *([], {}, [[]], {"": 0}, {"a": 1}, ["Attach"]),
)
"""Boundary values."""

_SPECIAL_BYTES = (0x00, 0x01, 0x7F, 0x80, 0x90, 0xC1, 0xDF, 0xFF, 0x0A, 0x0D, 0x20, 0x22, 0x27)
_SPECIAL_LETTERS = (0, 39, 34, 10, 37, 95, 0x130, 0x131, 0x660, 0xD800, 0x1F600)
_words = re.compile(r"\s+|\w+|'[^']*'|\"[^\"]*\"|.", re.DOTALL).findall


def changed_bytes(data: bytes, dice: Random) -> bytes:
    """Flip, insert, remove or repeat bytes, or truncate the input."""
    changed = bytearray(data)
    for _ in range(dice.choice((1, 1, 1, 2, 4))):
        place, kind = dice.randrange(len(changed) + 1), dice.randrange(6)
        length = dice.choice((1, 1, 2, 4, 16))
        if kind == 0 and place < len(changed):
            changed[place] ^= 1 << dice.randrange(8)
        elif kind == 1:
            changed[place:place] = bytes(dice.choice(_SPECIAL_BYTES) for _ in range(length))
        elif kind == 2:
            del changed[place : place + length]
        elif kind == 3:
            changed[place:place] = changed[place : place + length] * dice.choice((1, 2, 50))
        elif kind == 4 and place < len(changed):
            changed[place] = dice.choice(_SPECIAL_BYTES)
        elif kind == 5:
            del changed[place:]
    return bytes(changed[:100_000])


def changed_text(text: str, dice: Random, known: tuple[str, ...]) -> str:
    """Swap, remove, repeat or replace words, or nest them."""
    words: list[str] = _words(text[:20_000]) or [""]
    for _ in range(dice.choice((1, 1, 2, 3))):
        place, kind = dice.randrange(len(words)), dice.randrange(7)
        if kind == 0:
            words[place] = dice.choice(known)
        elif kind == 1:
            words.insert(place, dice.choice(known))
        elif kind == 2 and len(words) > 1:
            del words[place]
        elif kind == 3:
            other = dice.randrange(len(words))
            words[place], words[other] = words[other], words[place]
        elif kind == 4:
            end = place + dice.choice((1, 3, 9))
            words[place:place] = words[place:end] * dice.choice((1, 1, 2, 40))
        elif kind == 5:
            end = min(len(words), place + dice.choice((1, 3, 9)))
            times = dice.choice((1, 1, 2, 30))
            words[place:end] = ["(" * times, *words[place:end], ")" * times]
        elif words[place]:
            spot = dice.randrange(len(words[place]))
            letter = chr(dice.choice((*_SPECIAL_LETTERS, dice.randrange(128))))
            words[place] = words[place][:spot] + letter + words[place][spot + dice.randrange(2) :]
    return "".join(words)[:70_000]


def changed_tree(tree: Any, dice: Random) -> Any:
    """Return the tree with one part replaced, removed, repeated or moved. The original stays unchanged."""
    if isinstance(tree, list) and tree and dice.random() < 0.9:
        copy = list(tree)
        place, kind = dice.randrange(len(copy)), dice.randrange(10)
        if kind < 7:
            copy[place] = changed_tree(copy[place], dice)
        elif kind == 7:
            del copy[place]
        elif kind == 8:
            copy[place:place] = [copy[place]] * dice.choice((1, 1, 2, 20))
        else:
            other = dice.randrange(len(copy))
            copy[place], copy[other] = copy[other], copy[place]
        return copy
    if isinstance(tree, dict) and tree and dice.random() < 0.9:
        changed = dict(tree)
        key, kind = dice.choice(list(changed)), dice.randrange(10)
        if kind < 7:
            changed[key] = changed_tree(changed[key], dice)
        elif kind == 7:
            del changed[key]
        else:
            changed[dice.choice(("", "x", "name", key)) if kind == 8 else f"{key}x"] = dice.choice(INTERESTING)
        return changed
    if isinstance(tree, int) and not isinstance(tree, bool) and dice.random() < 0.5:
        return min(max(tree + dice.choice((-1, 1, -2, 2, 1000)), -(2**63)), 2**64 - 1)
    if isinstance(tree, str) and tree and dice.random() < 0.5:
        return tree[: dice.randrange(len(tree))] + dice.choice(("", "/", "x", "'", "\0")) + tree[len(tree) // 2 :]
    return dice.choice(INTERESTING)


def change_packed(data: bytes, dice: Random) -> bytes:
    """Change MessagePack as a tree. Change unreadable input, and sometimes other input, as bytes."""
    if dice.random() < 0.8:
        try:
            tree = msgspec.msgpack.decode(data)
            for _ in range(dice.choice((1, 1, 2, 5))):
                tree = changed_tree(tree, dice)
            return msgspec.msgpack.encode(tree)
        except (msgspec.DecodeError, ValueError, TypeError, OverflowError, RecursionError):
            pass
    return changed_bytes(data, dice)
