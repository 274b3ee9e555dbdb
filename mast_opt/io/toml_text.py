"""Nested mappings as TOML text."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def toml_text(fields: Mapping[str, Any]) -> str:
    """TOML for text, numbers, truth values, lists and mappings of these; a key whose value is None is left out."""
    lines: list[str] = []
    _table(fields, (), lines)
    return "\n".join(lines).lstrip("\n") + "\n"


def _table(fields: Mapping[str, Any], path: tuple[str, ...], lines: list[str]) -> None:
    flat = {key: value for key, value in fields.items() if not isinstance(value, Mapping) and value is not None}
    if path and (flat or not fields):
        lines.append(f"\n[{'.'.join(map(_key, path))}]")
    lines.extend(f"{_key(key)} = {_value(value)}" for key, value in flat.items())
    for key, value in fields.items():
        if isinstance(value, Mapping):
            _table(value, (*path, key), lines)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value) if math.isfinite(value) else f"{value:+}".replace("+nan", "nan")
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        inner = (f"{_key(key)} = {_value(item)}" for key, item in value.items() if item is not None)
        return f"{{ {', '.join(inner)} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_value(item) for item in value)}]"
    raise TypeError(f"TOML has no {type(value).__name__}: {value!r}")
