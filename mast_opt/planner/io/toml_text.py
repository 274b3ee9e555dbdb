"""Nested mappings as TOML text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import tomli_w


def toml_text(fields: Mapping[str, Any]) -> str:
    """TOML for text, numbers, truth values, lists and mappings of these; a key whose value is None is left out.

    Raises:
        TypeError: a value of another type.
    """
    return tomli_w.dumps(_without_none(fields))


def _without_none(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _plain(inner) for key, inner in fields.items() if inner is not None}


def _plain(value: object) -> object:
    """The value with numbers of Python's own types and without keys whose value is None."""
    if isinstance(value, Mapping):
        return _without_none(value)
    if isinstance(value, (list, tuple)):
        return [_plain(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value
