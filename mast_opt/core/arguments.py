"""Checks of the arguments of public functions, made before anything is done with them.

    @checked(path=a_path, force=a_flag)
    def write(problem, path, *, force=False, seed=0): ...

Arguments that mean the same in every function, such as ``seed``, are in ``COMMON`` and are checked without being named.
Every check raises UsageError that names the argument, its value and what was expected.
"""

import inspect
import math
import os
import sys
import threading
from collections.abc import Callable, ItemsView, Iterable, Mapping
from functools import wraps
from numbers import Integral, Real
from typing import ParamSpec, TypeVar

import numpy as np

from mast_opt.core.errors import UsageError
from mast_opt.core.wording import did_you_mean

GivenT = ParamSpec("GivenT")
AnswerT = TypeVar("AnswerT")

Check = Callable[[str, object], None]
"""(name of the argument, value) → nothing. Raises UsageError."""

SHOWN = 60
"""Characters of a value that an error shows."""


def refuse(name: str, value: object, expected: str) -> UsageError:
    """The error for an argument of a public function that is not as expected."""
    text = repr(value)
    text = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    plain = isinstance(value, (str, int, float, bool, type(None)))
    found = text if plain else f"a {type(value).__name__}, {text}"
    return UsageError(f"{name} is {found}; expected {expected}", argument=name, expected=expected)


def optional(check: Check) -> Check:
    """The check of an argument that may be None, too."""

    def optionally(name: str, value: object) -> None:
        if value is not None:
            check(name, value)

    return optionally


def a_path(name: str, value: object) -> None:
    """Check that an argument is a path: text or ``os.PathLike``."""
    text = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(text, str) or "\0" in text:
        raise refuse(name, value, "a path: a str or os.PathLike without NUL characters")


def anything(name: str, value: object) -> None:
    """Accept any argument, where what it must be is checked later."""


def a_text(name: str, value: object) -> None:
    """Check that an argument is a str."""
    if not isinstance(value, str):
        raise refuse(name, value, "a str")


def a_flag(name: str, value: object) -> None:
    """Check that an argument is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise refuse(name, value, "True or False")


def a_whole(least: int, most: int | None = None, note: str = "") -> Check:
    """Check that an argument is a whole number within these limits."""

    def check(name: str, value: object) -> None:
        limits = f"a whole number of at least {least}" if most is None else f"a whole number from {least} to {most}"
        if not isinstance(value, Integral) or isinstance(value, bool):
            raise refuse(name, value, limits + note)
        if int(value) < least or (most is not None and int(value) > most):
            raise refuse(name, value, (f"at least {least}" if most is None else limits) + note)

    return check


def a_number(name: str, value: object) -> None:
    """Check that an argument is a finite number of at least 0."""
    if not _is_number(value) or not 0 <= float(value) < math.inf:  # type: ignore[arg-type]
        raise refuse(name, value, "a finite number of at least 0")


def a_finite(name: str, value: object) -> None:
    """Check that an argument is a finite number."""
    if not _is_number(value) or not math.isfinite(float(value)):  # type: ignore[arg-type]
        raise refuse(name, value, "a finite number")


def a_time_limit(name: str, value: object) -> None:
    """Check that an argument is a finite number of seconds above 0, or None for no limit."""
    if value is not None and (not _is_number(value) or not 0 < float(value) < math.inf):  # type: ignore[arg-type]
        raise refuse(name, value, "a number of seconds above 0, or None for no limit")


def texts(name: str, value: object) -> None:
    """Check that an argument is a collection of texts, not a single one."""
    if isinstance(value, str):
        raise UsageError(f"{name}: {value!r} is one string; expected a collection of names, as in [{value!r}]")
    if isinstance(value, (bytes, Mapping)) or not isinstance(value, Iterable):
        raise refuse(name, value, "a collection of str")
    if iter(value) is value:
        raise refuse(name, value, "a list or tuple of str, not an iterator")
    for at, one in enumerate(value):
        if not isinstance(one, str):
            raise refuse(f"{name}[{at}]", one, "a str")


def each(check: Check) -> Check:
    """Check that an argument is a list or tuple whose elements pass a check."""

    def of_each(name: str, value: object) -> None:
        if not isinstance(value, (list, tuple)):
            raise refuse(name, value, "a list or tuple")
        for at, one in enumerate(value):
            check(f"{name}[{at}]", one)

    return of_each


def mapping_of(check: Check) -> Check:
    """Check that an argument is a mapping from texts to values that pass a check."""

    def of_mapping(name: str, value: object) -> None:
        if not isinstance(value, Mapping):
            raise refuse(name, value, "a mapping with str as keys")
        for key, one in value.items():
            a_text(f"a key of {name}", key)
            check(f"{name}[{key!r}]", one)

    return of_mapping


def a_price(name: str, value: object) -> None:
    """Check that an argument is a number of at least 0; infinity is one."""
    if not _is_number(value) or not float(value) >= 0:  # type: ignore[arg-type]
        raise refuse(name, value, "a number of at least 0, or infinity")


def prices(name: str, value: object) -> None:
    """Prices by name, checked like ``mapping_of(a_price)`` but in less time for many of ``float``."""
    if isinstance(value, Mapping) and set(map(type, value)) <= {str} and set(map(type, value.values())) == {float}:
        numbers = value.values()
        if min(numbers) >= 0 and sum(numbers) >= 0:  # no sum of anything that is no number is at least 0
            return
    mapping_of(a_price)(name, value)


def option_values(name: str, value: object) -> None:
    """A mapping from names to texts, numbers and truth values, or pairs of these."""
    pairs = value.items() if isinstance(value, Mapping) else value
    if not isinstance(pairs, (list, tuple, ItemsView)) or not all(
        isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[0], str) for pair in pairs
    ):
        raise refuse(name, value, 'a mapping with str as keys, as in {"presolve": "off"}')
    for key, one in pairs:
        if not isinstance(one, (str, int, float, bool)):
            raise refuse(f"{name}[{key!r}]", one, "a str, a number, True or False")


def a_function(name: str, value: object) -> None:
    """Check that an argument can be called."""
    if not callable(value):
        raise refuse(name, value, "a function")


def an_event(name: str, value: object) -> None:
    """Check that an argument is a ``threading.Event``, or works like one."""
    if not isinstance(value, threading.Event) and not all(
        callable(getattr(value, method, None)) for method in ("is_set", "set", "wait")
    ):
        raise refuse(name, value, "a threading.Event")


def a(kind: type) -> Check:
    """Check that an argument is an object of a type."""

    def check(name: str, value: object) -> None:
        if not isinstance(value, kind):
            raise refuse(name, value, f"a {kind.__name__}")

    return check


def _is_number(value: object) -> bool:
    """Whether an argument is a number that fits into a float; True and False are none."""
    if type(value) is float:  # the usual case, which abstract classes make slow
        return True
    if not isinstance(value, Real) or isinstance(value, (bool, np.bool_)):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


COMMON: Mapping[str, Check] = {
    "solver": a_text,
    "formulation": a_text,
    "time_limit_s": a_time_limit,
    "gap": a_number,
    "seed": a_whole(0, 2**31 - 1),
    "threads": optional(a_whole(1, note=", or None to leave it to the solver")),
    "iterations": optional(a_whole(1, note=", or None for no limit")),
    "jobs": a_whole(1),
    "cancel": optional(an_event),
    "on_event": optional(a_function),
}
"""Name of an argument → its check, for arguments that mean the same in every function that has them."""


def checked(
    keywords: Mapping[str, object] | None = None, /, **checks: Check
) -> Callable[[Callable[GivenT, AnswerT]], Callable[GivenT, AnswerT]]:
    """The function, with its arguments checked before each call; those left to their defaults pass.

    Args:
        keywords: name → default of the arguments that a function takes as ``**limits: Unpack[SolveLimits]``. It is
            given every one of them, and its signature lists them.
        checks: name of an argument → its check. Arguments that are not named here have theirs from ``COMMON``, if any.
    """

    def decorate(function: Callable[GivenT, AnswerT]) -> Callable[GivenT, AnswerT]:
        signature = inspect.signature(function) if keywords is None else _listing(function, keywords)
        known = signature.parameters
        unknown = set(checks) - set(known)
        assert not unknown, f"{function.__name__} has no parameters {unknown}"
        active = {**{name: check for name, check in COMMON.items() if name in known}, **checks}
        several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        assert not any(known[name].kind in several for name in active)
        by_name = {name for name, item in known.items() if item.kind is inspect.Parameter.KEYWORD_ONLY}
        places = [
            (sys.maxsize if name in by_name else at, name, active[name])
            for at, name in enumerate(known)
            if name in active
        ]

        @wraps(function)
        def call(*args: GivenT.args, **kwargs: GivenT.kwargs) -> AnswerT:
            if keywords is not None and not kwargs.keys() <= known.keys():
                wrong = next(name for name in kwargs if name not in known)
                hint = did_you_mean(wrong, known)
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {wrong!r}{hint}")
            for at, name, check in places:
                if at < len(args):
                    check(name, args[at])
                elif name in kwargs:
                    check(name, kwargs[name])
            return function(*args, **(kwargs if keywords is None else {**keywords, **kwargs}))  # type: ignore[arg-type]

        if keywords is not None:
            call.__signature__ = signature  # type: ignore[attr-defined]
        return call

    return decorate


def _listing(function: Callable[..., object], keywords: Mapping[str, object]) -> inspect.Signature:
    """The signature of a public function with the keywords in place of ``**limits``."""
    signature = inspect.signature(function)
    own = [item for item in signature.parameters.values() if item.kind is not inspect.Parameter.VAR_KEYWORD]
    kind = inspect.Parameter.KEYWORD_ONLY
    more = [inspect.Parameter(name, kind, default=default) for name, default in keywords.items()]
    return signature.replace(parameters=[*own, *more])
