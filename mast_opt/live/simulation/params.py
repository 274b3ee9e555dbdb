"""Parameters of a run as text: what the command line gives."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from mast_opt.core.errors import UsageError
from mast_opt.core.wording import did_you_mean

ParamsT = TypeVar("ParamsT")


def values_of(params_type: type[ParamsT], given: Mapping[str, str], prefix: str = "") -> ParamsT:
    """The parameters of a run in their types: those of their defaults.

    Args:
        prefix: what messages put before the name of a parameter.

    Raises:
        UsageError: a name that there is not, or a value that it cannot have.
    """
    defaults = {item.name: item.default for item in fields(params_type)}  # type: ignore[arg-type]
    for name in given:
        if name not in defaults:
            hint = did_you_mean(name, defaults) or f"; there are: {', '.join(defaults)}"
            raise UsageError(f"there is no parameter {prefix}{name}{hint}")
    return params_type(**{name: number(prefix + name, text, type(defaults[name])) for name, text in given.items()})


def number(name: str, text: str, kind: type[Any]) -> Any:  # noqa: ANN401 - of that type
    """A parameter of a run as a value of a type; text as it is. Raises UsageError."""
    if kind is bool:
        if text not in ("true", "false"):
            raise UsageError(f"parameter {name} is {text!r}; expected true or false")
        return text == "true"
    try:
        return kind(text)
    except ValueError:
        noun = "a whole number" if kind is int else "a number"
        raise UsageError(f"parameter {name} is {text!r}; expected {noun}") from None
