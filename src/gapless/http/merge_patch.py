"""Computes the difference between two JSON documents as a merge patch (RFC 7396).

A member that is null counts as absent, as the RFC specifies.
"""

from collections.abc import Mapping
from typing import Any

__all__ = ["merge_patch"]


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the patch from the old document to the new one; empty if they are equal."""
    patch: dict[str, Any] = {key: None for key in old if key not in new}
    for key, value in new.items():
        before = old.get(key)
        if before == value and key in old:
            continue
        if isinstance(before, dict) and isinstance(value, dict):
            patch[key] = merge_patch(before, value)
        else:
            patch[key] = value
    return patch
