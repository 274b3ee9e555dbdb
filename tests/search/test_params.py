"""Parameters of solvers: every class keeps what its base promises, and every field is documented, checked and used."""

from __future__ import annotations

import ast
import sys
import tomllib
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from functools import cache
from pathlib import Path
from typing import ClassVar, get_origin, get_type_hints

import pytest

from mast_opt.core.errors import UsageError
from mast_opt.planner.analysis.purchase_question import BuyParams
from mast_opt.planner.io.writers.folder import toml_text
from mast_opt.planner.solving.auto_strategy import AutoParams
from mast_opt.problems.registry import kind_named, kind_names
from mast_opt.problems.search.params import Parameter, Params, Value, group, parameter, value_text

SOLVERS = [kind_named(name).solvers for name in kind_names()]
CLASSES = list(dict.fromkeys(cls for own in SOLVERS for cls in (*own.params.values(), own.method_params) if cls))
EVERY = [
    pytest.param(cls, one, id=f"{cls.__name__}-{name}") for cls in CLASSES for name, one in cls.parameters().items()
]


@dataclass(frozen=True)
class Inner(Params):
    gap: float = parameter(0.5, "effect", "reason", above=0, high=1)


@dataclass(frozen=True)
class Pair(Params):
    first: int = parameter(1, "effect", "reason", low=0)
    second: int = parameter(2, "effect", "reason", low=0)
    third: ClassVar[int] = 3


@dataclass(frozen=True)
class Sample(Params):
    count: int = parameter(3, "effect", "reason", low=1, high=9)
    share: float = parameter(0.25, "effect", "reason", low=0)
    fast: bool = parameter(False, "effect", "reason")
    way: str = parameter("up", "effect", "reason", choices=("up", "down"))
    inner: Inner = group(Inner(gap=0.75), "effect")
    pair: Pair = group(Pair(second=5), "effect", only=("first",))
    length: ClassVar[int] = 7


def another(one: Parameter) -> Value:
    """A value within the range that is not the default."""
    if isinstance(one.default, bool):
        return not one.default
    if isinstance(one.default, str):
        return next((choice for choice in one.choices if choice != one.default), "scip")
    if isinstance(one.default, int):
        return one.default + (1 if one.high is None or one.default < one.high else -1)
    low, high = max(one.low or 0.0, one.above or 0.0), 2 * one.default + 1 if one.high is None else one.high
    return next(value for value in (low + share * (high - low) for share in (0.5, 0.25)) if value != one.default)


@pytest.mark.parametrize(("cls", "one"), EVERY)
def test_every_parameter_is_documented_and_its_range_enforced(cls: type[Params], one: Parameter) -> None:
    for text in (one.effect, one.reason):
        assert text[0].isupper()
        assert text.endswith(".")
    default = cls()
    assert default.values()[one.name] == one.default
    for bound, beyond in ((one.low, -1), (one.above, 0), (one.high, 1)):
        if bound is not None:
            with pytest.raises(UsageError, match=rf"parameter {one.name} of {cls.__name__} is .*expected"):
                cls.of({one.name: bound + beyond})
    wrongs: tuple[object, ...] = (None, object(), [], "nothing of the sort" if not isinstance(one.default, str) else 1)
    for value in wrongs:
        with pytest.raises(UsageError, match=one.name):
            cls.of({one.name: value})


def test_there_are_at_most_150_parameters() -> None:
    """A choice that nobody needs to change is a constant."""
    classes: list[type[Params]] = [*CLASSES, AutoParams, BuyParams]
    assert sum(len(cls.parameters()) for cls in classes) <= 150


@pytest.mark.parametrize(("cls", "one"), EVERY)
def test_text_toml_and_python_say_the_same(cls: type[Params], one: Parameter) -> None:
    value = another(one)
    stated = cls.of({one.name: value})
    assert stated.differences() == {one.name: value}
    assert cls.parse([f"{one.name}={value_text(value)}"]) == stated
    assert cls.of(tomllib.loads(toml_text(stated.differences()))) == stated
    nested: object = value
    for part in reversed(one.name.split(".")):
        nested = {part: nested}
    assert isinstance(nested, dict)
    assert cls.of(tomllib.loads(toml_text(nested))) == stated


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_a_class_is_public_frozen_and_at_its_defaults(cls: type[Params]) -> None:
    import mast_opt

    assert getattr(mast_opt, cls.__name__) is cls
    assert cls().differences() == {}
    assert hash(cls()) == hash(cls.of({}))
    with pytest.raises(FrozenInstanceError):
        setattr(cls(), fields(cls)[0].name, None)


@cache
def _read_in(package: str) -> set[str]:
    """Attributes that the modules of a package read."""
    folder = Path(str(sys.modules[package].__file__)).parent
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in folder.rglob("*.py")]
    return {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


@pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)
def test_every_field_and_constant_is_read_in_the_solver(cls: type[Params]) -> None:
    own = _read_in(cls.__module__.rpartition(".")[0])
    shared = _read_in("mast_opt.problems.search")
    for held in (cls(), *cls().groups()):
        read = own | shared if type(held).__module__.startswith("mast_opt.problems.search.") else own
        constants = {name for name, hint in get_type_hints(type(held)).items() if get_origin(hint) is ClassVar}
        assert not {*constants, *(one.name for one in fields(held))} - read


def test_values_come_in_the_type_of_the_default() -> None:
    sample = Sample.of({"count": 4.0, "share": 1})
    assert (sample.count, sample.share) == (4, 1.0)
    assert [type(value) for value in (sample.count, sample.share)] == [int, float]
    assert Sample.parse(["count=1e0", "fast=true", "inner.gap=1"]).values() == {
        "count": 1, "share": 0.25, "fast": True, "way": "up", "inner.gap": 1.0, "pair.first": 1,
    }  # fmt: skip
    assert Sample(inner=Inner(gap=0.75)).differences() == {}
    assert replace(Sample(), count=5).differences() == {"count": 5}


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["cuont=1"], "Sample has no parameter 'cuont'; did you mean 'count'"),
        (["inner.gpa=1"], "Sample has no parameter 'inner.gpa'; did you mean 'inner.gap'"),
        (["nonsense=1"], "there are: count, share, fast, way, inner.gap, pair.first"),
        (["inner=1"], "Sample has no parameter 'inner'"),
        (["length=1"], "length of Sample is fixed at 7; it is not a parameter"),
        (["pair.third=1"], "pair.third of Sample is fixed at 3; it is not a parameter"),
        (["pair.second=1"], "pair.second of Sample is fixed at 5; it is not a parameter"),
        (["count"], "parameter 'count': expected NAME=VALUE"),
        (["=1"], "expected NAME=VALUE"),
        (["count=1", "count=2"], "parameter count of Sample is given twice"),
        (["count=0"], "count of Sample is 0; expected a whole number of at least 1 and at most 9, 3 by default"),
        (["count=2.5"], "count of Sample is 2.5; expected a whole number"),
        (["count=many"], "count of Sample is 'many'; expected a whole number"),
        (["count=" + "9" * 400], "count of Sample is 9"),
        (["share=inf"], "share of Sample is inf; expected a number of at least 0, 0.25 by default"),
        (["share=-1"], "share of Sample is -1; expected a number of at least 0"),
        (["fast=1"], "fast of Sample is '1'; expected true or false, false by default"),
        (["way=left"], "way of Sample is 'left'; expected one of: up, down, up by default"),
        (["inner.gap=0"], "inner.gap of Sample is 0; expected a number above 0 and at most 1, 0.75 by default"),
    ],
)
def test_what_is_wrong_is_told_with_name_value_and_range(texts: list[str], words: str) -> None:
    with pytest.raises(UsageError) as raised:
        Sample.parse(texts)
    assert words in str(raised.value)


def test_what_is_wrong_in_python_is_told_too() -> None:
    with pytest.raises(UsageError, match="gap of Inner is 2; expected a number above 0"):
        Inner(gap=2)
    with pytest.raises(UsageError, match="group inner of Sample is 3; expected a Inner"):
        Sample(inner=3)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"pair\.second of Sample is fixed at 5"):
        Sample(pair=Pair())
    assert Sample(pair=Pair(first=4, second=5)).differences() == {"pair.first": 4}
    with pytest.raises(UsageError, match="count of Sample is True"):
        Sample(count=True)
    with pytest.raises(UsageError, match=r"inner\.gap of Sample is given twice"):
        Sample.of({"inner": {"gap": 1}, "inner.gap": 1})
    with pytest.raises(UsageError, match="a name among the parameters is 1"):
        Sample.of({1: 2})  # type: ignore[dict-item]


def test_texts_win_over_a_table() -> None:
    assert Sample.parse(["count=5"], {"count": 4, "inner": {"gap": 1.0}}).differences() == {
        "count": 5,
        "inner.gap": 1.0,
    }
