"""Renamings that turn the order of all labels around, for tests that the spelling of labels decides nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping


def reversing(labels: Collection[str]) -> dict[str, str]:
    """Other labels in the opposite order: the first in the alphabet becomes the last."""
    ranked = sorted(labels)
    return {old: f"w{len(ranked) - at:04d}w" for at, old in enumerate(ranked)}


def renamed(text: str, names: Mapping[str, str]) -> str:
    """A text with all labels replaced that stand there as words."""
    words = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
    return re.sub(rf"(?<![\w-])(?:{words})(?![\w-])", lambda found: names[found[0]], text)
