"""``Header`` to and from the nested mappings that ``instance.toml``, a sheet or a JSON object holds."""

import math
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import polars as pl

from mast_opt.core.wording import did_you_mean
from mast_opt.planner.io.faults import Faults, one_of, whole_letters
from mast_opt.planner.io.readers.base import Number, Untyped
from mast_opt.planner.io.validation.cells import faulty_labels
from mast_opt.problems.kind.header import MOST_WEIGHT, Header, Objective, Policy, Rule, Term, sound_weight
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.limits import MOST_LIMIT, limit_value, plain_number
from mast_opt.problems.registry import kind_names

FORMAT = "mast-opt/1"
NAME_EXPECTED = "a name without control characters"
MODES = ("weighted", "lexicographic")

_TOP = ("format", "kind", "name", "provenance", "rules", "limits", "objective")
_OBJECTIVE = ("mode", "order", "tier_weights", "peak_levels", "weights")
_POLICY = ("policy", "mechanism", "inside")


def to_fields(header: Header) -> dict[str, Any]:
    """Everything spelled out, defaults too, so that a file means the same when a default changes."""
    objective = header.objective
    fields: dict[str, Any] = {"format": FORMAT, "kind": header.kind, "name": header.name}
    if header.provenance:
        fields["provenance"] = header.provenance
    fields["rules"] = {name: _plain(value) for name, value in header.rules.items()}
    if header.limits:
        fields["limits"] = {name: _plain(value) for name, value in header.limits.items()}
    if objective.policy:
        fields["objective"] = {name: value for name in _POLICY if (value := getattr(objective, name))}
        return fields
    fields["objective"] = {"mode": MODES[objective.lexicographic]}
    if objective.lexicographic:
        fields["objective"]["order"] = list(objective.order)
    for name in ("tier_weights", "peak_levels"):
        if by_tier := getattr(objective, name):
            fields["objective"][name] = {str(tier): float(number) for tier, number in by_tier.items()}
    fields["objective"]["weights"] = {term: float(weight) for term, weight in objective.weights.items()}
    return fields


def _plain(value: str | Fraction) -> str | int | float:
    """The value of a header's field as a number where that is exact, else as text (``"1/3"``)."""
    return value if isinstance(value, str) else plain_number(value)


def kind_in(fields: Mapping[str, Any], file: str, faults: Faults) -> str | None:
    """The name of the kind that a header states; None (and a fault) if there is no such kind."""
    read = _Fields(fields, file, faults)
    read.choice("format", (FORMAT,), None)
    return read.choice("kind", kind_names(), None)


def name_in(fields: Mapping[str, Any], kind: str, file: str, faults: Faults) -> tuple[str, str]:
    """Name and provenance that the header of tables states which are no problem, such as a trace; anything else in it
    is a fault."""
    read = _Fields(fields, file, faults)
    read.choice("format", (FORMAT,), None)
    read.choice("kind", (kind,), None)
    read.refuse_unknown(_TOP[:4])
    return read.name(), read.text("provenance", "")


def from_fields(fields: Mapping[str, Any], kind: Kind[Any, Any], file: str, faults: Faults) -> Header:
    """The header, defaults filled in. Whatever is wrong becomes a fault (and a default in its place)."""
    top = _Fields(fields, file, faults)
    top.refuse_unknown(_TOP)
    rules, objective = top.inner("rules"), top.inner("objective")
    rules.refuse_unknown(rule.name for rule in kind.tables.rules)
    return Header(
        kind=kind.name,
        name=top.name(),
        objective=_policy(objective, kind.policies) if kind.policies else _terms(objective, kind.terms),
        rules={rule.name: _rule(rules, rule) for rule in kind.tables.rules},
        provenance=top.text("provenance", ""),
        limits=_limits(top, kind),
        unstated=frozenset(kind.terms) - frozenset(objective.inner("weights").fields),
    )


def _limits(top: "_Fields", kind: Kind[Any, Any]) -> dict[str, Fraction]:
    """The limits on a whole plan that a header states."""
    if "limits" in top.fields and not kind.limits:
        top.fault("limits", "no such table: limits on a whole plan are for data-placement", top.fields["limits"])
        return {}
    read, limits = top.inner("limits"), {}
    read.refuse_unknown(kind.limits)
    for name in kind.limits:
        if name in read.fields:
            value = limit_value(read.fields[name])
            if value is None:
                unit = f" ({kind.limits[name].unit})" if kind.limits[name].unit else ""
                read.fault(name, f"a number from 0 to {MOST_LIMIT:g}{unit}", read.fields[name])
            limits[name] = value or Fraction(0)
    return limits


def _terms(read: "_Fields", terms: Mapping[str, Term]) -> Objective:
    """An objective of weighted terms, as a header states it."""
    read.refuse_unknown(key for key in _OBJECTIVE if key != "peak_levels" or "peak" in terms)
    mode = read.choice("mode", MODES, MODES[0]) or MODES[0]
    return Objective(
        weights=_weights(read.inner("weights"), terms),
        tier_weights=_by_tier(read.inner("tier_weights"), "weight"),
        peak_levels=_by_tier(read.inner("peak_levels"), "level"),
        order=_order(read, mode, tuple(terms)),
    )


def _policy(read: "_Fields", policies: Mapping[str, Policy]) -> Objective:
    """An objective of the header that is a policy, with its settings."""
    read.refuse_unknown(_POLICY)
    name = read.choice("policy", tuple(policies), None)
    policy = policies[name or next(iter(policies))]
    mechanism = inside = ""
    if name is not None and "mechanism" in read.fields:
        mechanism = _setting(read, "mechanism", policy.mechanisms, name)
    if name is not None and (policy.inside or "inside" in read.fields):
        inside = _setting(read, "inside", policy.inside, name)
    return Objective({}, policy=name or "", mechanism=mechanism, inside=inside)


def _setting(read: "_Fields", key: str, choices: tuple[str, ...], policy: str) -> str:
    """Setting of the header's policy; a fault where the policy has none of this name."""
    if choices:
        return read.choice(key, choices, choices[0]) or choices[0]
    read.fault(key, f"no such key: {policy} has no {key}", read.fields[key])
    return ""


def _weights(read: "_Fields", terms: Mapping[str, Term]) -> dict[str, float]:
    """Weights of the terms in the header's objective; a fault for an unknown term."""
    read.refuse_unknown(terms)
    return {name: read.weight(name, term.weight) for name, term in terms.items()}


def _by_tier(read: "_Fields", what: str) -> dict[int, float]:
    """Tier → weight in the header's objective; faults for what is no tier."""
    numbers = {}
    for key in read.fields:
        if key.isascii() and key.isdigit() and len(key) < 10:
            if int(key) in numbers:
                read.fault(key, f"one {what} for tier {int(key)}", key)
            numbers[int(key)] = read.weight(key, 1.0)
        else:
            read.fault(key, "a tier, a whole number from 0, as the key", key)
    return numbers


def _order(read: "_Fields", mode: str, terms: tuple[str, ...]) -> tuple[str, ...]:
    """Terms of a lexicographic objective in the header's order; faults for what is none."""
    given = read.fields.get("order")
    if given is None:
        if mode == MODES[1]:
            read.fault("order", f"the terms in the order of their importance, from: {one_of(terms)}")
        return ()
    if isinstance(given, Untyped):
        given = [name.strip() for name in given.split(",")]
    if not isinstance(given, list) or not given or not all(isinstance(name, str) for name in given):
        read.fault("order", f"a list of terms, from: {one_of(terms)}", given)
        return ()
    if mode != MODES[1]:
        read.fault("order", 'no order, or mode = "lexicographic"', ", ".join(given))
        return ()
    for place, name in enumerate(given):
        if name not in terms:
            read.fault("order", f"terms from: {one_of(terms)}{did_you_mean(name, terms)}", name)
        elif name in given[:place]:
            read.fault("order", "each term once", name)
    return tuple(dict.fromkeys(given))


def _rule(read: "_Fields", rule: Rule) -> str | Fraction:
    """Value of a rule in the header, by default where it is not stated or a fault."""
    if rule.choices:
        return read.choice(rule.name, rule.choices, str(rule.default)) or str(rule.default)
    value = read.fields.get(rule.name)
    if value is None:
        return rule.default
    number = _fraction(value)
    if number is None or number <= 0:
        read.fault(rule.name, f"a positive number ({rule.help})", value)
        return rule.default
    return number


def _fraction(value: object) -> Fraction | None:
    """The number that a header's field holds, exactly; text is taken too, for ``"1/3"``."""
    if isinstance(value, bool) or not isinstance(value, (int, Decimal, float, str)):
        return None
    if len(str(value)) > 100:
        return None
    try:
        number = Decimal(value) if isinstance(value, (Decimal, str)) and "/" not in str(value) else None
        if number is not None and (not number.is_finite() or abs(number.adjusted()) > 100):
            return None
        return Fraction(number if number is not None else value)
    except (ValueError, ArithmeticError):
        return None


class _Fields:
    """Reads one mapping of the header and reports what is wrong with it."""

    def __init__(self, fields: Mapping[str, Any], file: str, faults: Faults, path: str = "") -> None:
        self.fields, self.file, self.faults, self.path = fields, file, faults, path

    def fault(self, key: str, expected: str, value: object = None) -> None:
        """Note a fault of a key in the header."""
        self.faults.add(f"{self.file}: {self.path}{key}", expected, value=value)

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Note faults for the header's keys that are not known."""
        known = list(known)
        for key in self.fields:
            if key not in known:
                self.fault(key, f"one of the keys {one_of(known)}{did_you_mean(key, known)}", key)

    def inner(self, key: str) -> "_Fields":
        """Fields of a table inside the header."""
        value = self.fields.get(key, {})
        if not isinstance(value, Mapping):
            self.fault(key, f"a table, [{self.path}{key}]", value)
            value = {}
        return _Fields(value, self.file, self.faults, f"{self.path}{key}.")

    def text(self, key: str, default: str | None) -> str:
        """Text of a key in the header."""
        value = self.fields.get(key, default)
        if isinstance(value, str) and value != whole_letters(value):
            self.fault(key, "text without halves of surrogate pairs", whole_letters(value))
            return ""
        if isinstance(value, str) and not isinstance(value, Number) and (value.strip() or key == "provenance"):
            return value.strip()
        self.fault(key, f"{key} = some text in quotation marks", value)
        return ""

    def name(self) -> str:
        """The instance's name, by the rule of labels; blanks around it are dropped."""
        value = self.fields.get("name")
        if (
            isinstance(value, str)
            and value.strip(" ")
            and faulty_labels(pl.Series([whole_letters(value.strip(" "))]))[0]
        ):
            self.fault("name", NAME_EXPECTED, whole_letters(value))
            return ""
        return self.text("name", None)

    def choice(self, key: str, choices: tuple[str, ...], default: str | None) -> str | None:
        """Word of a key in the header, of those that are allowed."""
        value = self.fields.get(key, default)
        if isinstance(value, str) and value in choices:
            return str(value)
        hint = did_you_mean(value, choices) if isinstance(value, str) else ""
        self.fault(key, f"{key} = {' or '.join(repr(choice) for choice in choices)}{hint}", value)
        return None

    def weight(self, key: str, default: float) -> float:
        """Weight of a key in the header, at least 0."""
        value = self.fields.get(key, default)
        typed = isinstance(value, (int, float, Decimal, Untyped)) and not isinstance(value, bool)
        try:
            weight = float(value) if typed else math.nan
        except (ValueError, OverflowError):
            weight = math.nan
        if sound_weight(weight):
            return weight
        self.fault(key, f"a number from 0 to {MOST_WEIGHT:g}", value)
        return default
