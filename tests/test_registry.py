"""The names that editors complete are those that there are."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any, get_args

import pytest

from mast_opt.planner.solving.auto_strategy import AUTO
from mast_opt.problems import backends, registry

KINDS = [registry.kind_named(name) for name in registry.kind_names()]


@pytest.mark.parametrize(
    ("alias", "there"),
    [
        (registry.KindName, set(registry.kind_names())),
        (registry.TermName, {term for kind in KINDS for term in kind.terms}),
        (
            registry.SolverName,
            {AUTO, *backends.BUILT_IN, *(name for kind in KINDS for name in kind.solvers.heuristics)},
        ),
    ],
    ids=("kinds", "terms", "solvers"),
)
def test_every_name_is_completed_and_no_other(alias: Any, there: set[str]) -> None:
    literal, text = get_args(alias)
    assert text is str
    assert set(get_args(literal)) == there


def test_the_page_of_tables_is_that_of_the_schemas() -> None:
    docs = Path(__file__).parents[1] / "docs"
    found = importlib.util.spec_from_file_location("tables_page", docs / "tables_page.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    again = "python docs/tables_page.py writes it"
    assert (docs / "tables.md").read_text(encoding="utf-8") == module.page(), again
