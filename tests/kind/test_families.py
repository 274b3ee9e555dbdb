"""What holds for the generated families of every kind."""

from __future__ import annotations

from typing import Any

import pytest

import mast_opt
from mast_opt.core.errors import UsageError
from mast_opt.problems.registry import kind_named, kind_names

SIZES = [
    (kind, family, size)
    for kind in kind_names()
    for family, made in kind_named(kind).generate.families.items()
    for size in made.sizes
]


@pytest.mark.parametrize(("kind", "family", "size"), SIZES)
def test_a_size_below_its_least_is_refused(kind: str, family: str, size: str) -> None:
    least = kind_named(kind).generate.families[family].least.get(size, 1)
    with pytest.raises(UsageError, match=f"{size} is {least - 1}; expected at least {least}"):
        mast_opt.generate(kind, family, **{size: least - 1})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"jobs": 2.5}, "jobs is 2.5; expected a whole number"),
        ({"jobs": "3"}, "jobs is '3'; expected a whole number"),
        ({"seed": -1}, "seed is -1; expected at least 0"),
        ({"seed": 0.5}, "seed is 0.5; expected a whole number"),
    ],
)
def test_numbers_are_whole(given: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        mast_opt.generate("job-placement", **given)


@pytest.mark.parametrize("kind", kind_names())
def test_an_unknown_family_or_size_is_named_with_those_there_are(kind: str) -> None:
    first = next(iter(kind_named(kind).generate.families))
    with pytest.raises(UsageError, match=first):
        mast_opt.generate(kind, "no-such-family")
    with pytest.raises(UsageError, match=r"no size called 'lions'"):
        mast_opt.generate(kind, lions=3)
