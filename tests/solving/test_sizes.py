"""Programs that no memory holds are refused before anything of them is built."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import mast_opt
from mast_opt.core.errors import FormulationTooLarge
from mast_opt.problems.registry import kind_named, kind_names

FAMILIES = [(kind, family) for kind in kind_names() for family in kind_named(kind).generate.families]
SMALLER = {"datasets": 60, "workloads": 90, "processes": 120, "jobs": 40, "servers": 40}
"""Sizes that keep the programs small; the families' own where they are smaller."""


def _instance(kind: str, family: str, seed: int) -> Any:
    sizes = kind_named(kind).generate.families[family].sizes
    smaller = {name: min(SMALLER[name], size) for name, size in sizes.items() if name in SMALLER}
    return mast_opt.generate(kind, family, seed=seed, **smaller)


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("name", "family"), FAMILIES)
def test_the_size_is_known_before(name: str, family: str, seed: int) -> None:
    kind, problem = kind_named(name), _instance(name, family, seed)
    assert kind.formulation.size is not None
    size, mip = kind.formulation.size(problem), kind.formulation.formulations["base"](problem).mip
    for said, true in zip((size.rows, size.columns, size.entries), (*mip.shape, len(mip.value)), strict=True):
        assert 0.99 * true <= said <= 1.5 * true + 50


@pytest.mark.parametrize("name", kind_names())
def test_what_does_not_fit_is_never_begun(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = kind_named(name)
    problem = _instance(name, next(iter(kind.generate.families)), 0)
    assert kind.formulation.size is not None
    size = kind.formulation.size(problem)
    asked = replace(kind, formulation=replace(kind.formulation, formulations={"base": _never}))
    monkeypatch.setattr("mast_opt.problems.kind.kind.available_bytes", lambda: size.solve_bytes - 1)
    with pytest.raises(FormulationTooLarge) as refused:
        asked.formulate(problem)
    for part in (
        name,
        f"{size.columns:,} columns",
        f"{size.entries:,} coefficients",
        next(iter(kind.solvers.heuristics), ""),
    ):
        assert part in str(refused.value)
    with pytest.raises(Begun):
        asked.formulate(problem, to_solve=False)
    monkeypatch.setattr("mast_opt.problems.kind.kind.available_bytes", lambda: size.solve_bytes)
    with pytest.raises(Begun):
        asked.formulate(problem)
    with pytest.raises(FormulationTooLarge, match=f"{size.columns:,} columns.*2 of them needs"):
        asked.check_memory(problem, together=2)
    monkeypatch.setattr("mast_opt.problems.kind.kind.available_bytes", lambda: None)
    with pytest.raises(Begun):
        asked.formulate(problem)


class Begun(Exception):
    """A formulation was being built."""


def _never(problem: Any) -> Any:
    raise Begun
