"""Parameters of solvers: frozen classes whose fields carry their effect, their range and the reason of their default.

    @dataclass(frozen=True)
    class RasParams(Params):
        price_steps: int = parameter(40, "Price steps in a round.", "…", low=1)
        sub_mip: SubMipParams = group(SubMipParams(gap=1e-3), "Exact solves of a few reservations.")

People set ``price_steps`` and ``sub_mip.gap``: as text (``--param sub_mip.gap=0.01``), in a TOML table, where
``sub_mip.gap = 0.01`` and ``[sub_mip]`` say the same, and in Python, as a mapping or by the class. A value is checked
and brought to the type of its default wherever it comes from. What nobody needs to set is a ``ClassVar`` of the same
class: a constant, which the solver reads in the same way.
"""

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cache
from numbers import Integral, Real
from operator import attrgetter
from typing import Any, Self, TypeVar, cast

import numpy as np

from mast_opt.core.arguments import refuse
from mast_opt.core.errors import UsageError
from mast_opt.core.wording import did_you_mean

Scalar = bool | int | float | str
Value = Scalar | tuple[Scalar, ...]
ValueT = TypeVar("ValueT", bound=Scalar)
GroupT = TypeVar("GroupT", bound="Params")

_STATED = "parameter"
_ONLY = "only"


@dataclass(frozen=True)
class Parameter:
    """One parameter of a solver: what people may set, and to what."""

    name: str
    """Name with those of the groups around it: ``sub_mip.gap``."""
    default: Scalar
    effect: str
    """Effect of the parameter: what it decides, and what a larger value does."""
    reason: str
    """Reason for the default."""
    low: float | None = None
    high: float | None = None
    above: float | None = None
    """The value is greater than this; ``low`` and ``high`` may be reached."""
    choices: tuple[str, ...] = ()
    """Texts that are allowed; any text if empty."""

    @property
    def expected(self) -> str:
        """Type and range of a solver's parameter in words: ``a whole number of at least 1``."""
        if isinstance(self.default, bool):
            return "true or false"
        if isinstance(self.default, str):
            return f"one of: {', '.join(self.choices)}" if self.choices else "a text"
        noun = "a whole number" if isinstance(self.default, int) else "a number"
        low = f"above {self.above:,.12g}" if self.above is not None else ""
        low = f"of at least {self.low:,.12g}" if self.low is not None else low
        if self.high is None:
            return f"{noun} {low}".rstrip()
        return f"{noun} {low} and at most {self.high:,.12g}" if low else f"{noun} of at most {self.high:,.12g}"

    def checked(self, value: object, owner: str) -> Value:
        """The value of a solver's parameter in the type of the default.

        Raises:
            UsageError: it has another type, or is out of range; names the parameter, its owner and what was expected.
        """
        found = self._fitting(value)
        if found is not None:
            return found
        raise refuse(
            f"parameter {self.name} of {owner}", value, f"{self.expected}, {value_text(self.default)} by default"
        )

    def parsed(self, text: str) -> object:
        """The value of a solver's parameter that a text states; the text itself where it states none, for ``checked``
        to refuse.
        """
        if isinstance(self.default, bool):
            return {"true": True, "false": False}.get(text.lower(), text)
        if isinstance(self.default, str):
            return text
        for number in (int, float):
            with suppress(ValueError):
                return number(text)
        return text

    def _fitting(self, value: object) -> Scalar | None:
        """The value of a solver's parameter in the type of the default; None where it has another type or is out of
        range.
        """
        like = self.default
        if isinstance(like, bool):
            return bool(value) if isinstance(value, (bool, np.bool_)) else None
        if isinstance(like, str):
            return value if isinstance(value, str) and (not self.choices or value in self.choices) else None
        if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)):
            return None
        try:
            finite, whole = math.isfinite(float(value)), isinstance(value, Integral) or float(value).is_integer()
        except OverflowError:
            return None
        if not finite or (isinstance(like, int) and not whole):
            return None
        number = int(cast(int, value)) if isinstance(like, int) else float(value)
        low = self.low is None or number >= self.low
        high = self.high is None or number <= self.high
        return number if low and high and (self.above is None or number > self.above) else None


def parameter(
    default: ValueT,
    effect: str,
    reason: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    choices: tuple[str, ...] = (),
) -> ValueT:
    """A field of a ``Params`` class; see ``Parameter`` for the arguments."""
    stated = Parameter("", default, effect, reason, low, high, above, choices)
    return field(default=default, metadata={_STATED: stated})


def group(default: GroupT, effect: str, *, only: tuple[str, ...] | None = None) -> GroupT:
    """A field that holds further parameters; their defaults are those of ``default``, and ``effect`` says why.

    Args:
        only: the names that people may set, the others keep the values of ``default``; all of them if None.
    """
    return field(default=default, metadata={_STATED: effect, _ONLY: only})


@dataclass(frozen=True)
class Params:
    """Base of the parameters of a solver; every field is made by ``parameter`` or ``group``.

    Raises:
        UsageError: a value has the wrong type, or is out of range.
    """

    def __post_init__(self) -> None:
        for one in fields(self):
            value, stated = getattr(self, one.name), one.metadata[_STATED]
            if isinstance(stated, Parameter):
                right: object = _named(stated, one.name).checked(value, type(self).__name__)
            elif isinstance(value, type(one.default)):
                right = value
                self._check_fixed(one.name, cast(Params, value), cast(Params, one.default))
            else:
                raise refuse(f"group {one.name} of {type(self).__name__}", value, f"a {type(one.default).__name__}")
            object.__setattr__(self, one.name, right)

    @classmethod
    def parameters(cls) -> Mapping[str, Parameter]:
        """Every parameter of a solver, those of groups too, by the name that people set it by, in the order of the
        fields.
        """
        return _parameters(cast(Hashable, cls))

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Self:
        """A solver's parameters with some values set: by name, or in nested mappings, as TOML has them.

        Raises:
            UsageError: a name that there is not, or a value that does not fit.
        """
        known, flat = cls.parameters(), {}
        for name, value in _flattened(values, ""):
            if name not in known:
                raise cls._unknown(name)
            if name in flat:
                raise UsageError(f"parameter {name} of {cls.__name__} is given twice")
            flat[name] = known[name].checked(value, cls.__name__)
        return cls()._with(flat)

    @classmethod
    def parse(cls, texts: Iterable[str], values: Mapping[str, object] | None = None) -> Self:
        """A solver's parameters with values from texts ``name=value``, which win over those of a mapping.

        Raises:
            UsageError: a text of another form, a name that there is not or comes twice, or a value that does not fit.
        """
        known, stated = cls.parameters(), dict(_flattened(values or {}, ""))
        seen: set[str] = set()
        for text in texts:
            name, equals, value = (part.strip() for part in text.partition("="))
            if not name or not equals:
                raise UsageError(f"parameter {text!r}: expected NAME=VALUE, as in {next(iter(known))}=…")
            if name not in known:
                raise cls._unknown(name)
            if name in seen:
                raise UsageError(f"parameter {name} of {cls.__name__} is given twice")
            seen.add(name)
            stated[name] = known[name].parsed(value)
        return cls.of(stated)

    def values(self) -> dict[str, Scalar]:
        """Name → value of all parameters of a solver."""
        return {name: cast(Scalar, attrgetter(name)(self)) for name in self.parameters()}

    def differences(self) -> dict[str, Value]:
        """Name → value of a solver's parameters that are not at their default; ``of`` brings the parameters back from
        it.
        """
        known = self.parameters()
        return {name: value for name, value in self.values().items() if value != known[name].default}

    def groups(self) -> "tuple[Params, ...]":
        """The groups of a solver's parameters, those inside others too."""
        inner = [value for one in fields(self) if isinstance(value := getattr(self, one.name), Params)]
        return tuple(found for value in inner for found in (value, *value.groups()))

    def _check_fixed(self, name: str, given: "Params", default: "Params") -> None:
        """Raise UsageError where a group has other values than its default in what is no parameter."""
        known = self.parameters()
        for inner, value in given.values().items():
            if f"{name}.{inner}" not in known and value != attrgetter(inner)(default):
                raise self._unknown(f"{name}.{inner}")

    @classmethod
    def _unknown(cls, name: str) -> UsageError:
        """The error for a name that is no parameter of the solver: a constant, or a misspelling."""
        *groups, last = name.split(".")
        held: object = cls()
        for one in groups:
            held = getattr(held, one, None)
        value = getattr(held, last) if isinstance(held, Params) and last in type(held).__annotations__ else None
        if isinstance(value, (int, float, str, tuple)):
            return UsageError(f"{name} of {cls.__name__} is fixed at {value_text(value)}; it is not a parameter")
        known = did_you_mean(name, cls.parameters()) or f"; there are: {', '.join(cls.parameters())}"
        return UsageError(f"{cls.__name__} has no parameter {name!r}{known}")

    def _with(self, flat: Mapping[str, Value]) -> Self:
        """A solver's parameters with other values, by full name."""
        changes: dict[str, object] = {}
        for one in fields(self):
            own = getattr(self, one.name)
            if isinstance(own, Params):
                inside = f"{one.name}."
                changes[one.name] = own._with(
                    {name.removeprefix(inside): value for name, value in flat.items() if name.startswith(inside)}
                )
            else:
                changes[one.name] = flat.get(one.name, own)
        return type(self)(**cast(dict[str, Any], changes))


def value_text(value: Value) -> str:
    """A value of a solver's parameter as ``parse`` reads it, or constants with commas."""
    if isinstance(value, tuple):
        return ",".join(map(value_text, value))
    return str(value).lower() if isinstance(value, bool) else f"{value}"


@cache
def _parameters(cls: Any) -> dict[str, Parameter]:  # noqa: ANN401 - any dataclass
    """Name → parameter of a class, those in its groups by their full names."""
    found: dict[str, Parameter] = {}
    for one in fields(cls):
        stated = one.metadata[_STATED]
        if isinstance(stated, Parameter):
            found[one.name] = _named(stated, one.name)
            continue
        inside, only = cast(Params, one.default), one.metadata[_ONLY]
        values = inside.values()
        for name, inner in inside.parameters().items():
            if only is None or name in only:
                full = f"{one.name}.{name}"
                found[full] = _named(inner, full, values[name])
    return found


def _named(stated: Parameter, name: str, default: Scalar | None = None) -> Parameter:
    """A solver's parameter under its full name, perhaps with the default of the group that holds it."""
    given = stated.default if default is None else default
    return Parameter(name, given, stated.effect, stated.reason, stated.low, stated.high, stated.above, stated.choices)


def _flattened(values: Mapping[str, object], before: str) -> Iterator[tuple[str, object]]:
    """(full name, value) of parameters in nested mappings."""
    for name, value in values.items():
        if not isinstance(name, str):
            raise refuse("a name among the parameters", name, "a str")
        if isinstance(value, Params):
            value = value.values()
        if isinstance(value, Mapping):
            yield from _flattened(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
