"""What ``instance.toml`` says beside the tables: the name, the rules and the objective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True)
class Objective:
    """What is minimised: a weighted sum of terms, or the terms of ``order`` one after another."""

    weights: Mapping[str, float]
    """A weight for every term of the problem, defaults filled in."""
    tier_weights: Mapping[int, float] = field(default_factory=dict)
    """Weight of a tier; tiers that are not listed take the problem's default."""
    order: tuple[str, ...] = ()
    """Non-empty means lexicographic: the first term is minimised first, and so on."""

    @property
    def lexicographic(self) -> bool:
        return bool(self.order)


@dataclass(frozen=True)
class Rule:
    """A setting of ``[rules]`` in ``instance.toml``: one of the choices, or a positive number."""

    name: str
    default: str | Fraction
    choices: tuple[str, ...] = ()
    """Empty for a positive number."""
    help: str = ""


@dataclass(frozen=True)
class Header:
    """The content of ``instance.toml``, validated."""

    kind: str
    name: str
    objective: Objective
    rules: Mapping[str, str | Fraction]
    """A value for every rule of the problem, defaults filled in."""
    provenance: str = ""
