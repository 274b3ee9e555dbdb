"""Labels that are valid and used by nothing, and tables of one row: every solver takes them, and all agree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

import mast_opt
from mast_opt.core.errors import InstanceError, UnsupportedOption
from mast_opt.problems.registry import kind_named

SIZES: dict[tuple[str, str], dict[str, int]] = {
    ("data-placement", "features"): {"datasets": 3, "workloads": 4, "regions": 3},
    ("job-placement", "features"): {"regions": 2, "clusters": 1, "servers": 2, "jobs": 3},
    ("server-assignment", "features"): {"servers": 8, "reservations": 3, "datacenters": 2},
    ("task-reassignment", "challenge"): {"processes": 6, "machines": 3, "resources": 2},
    ("resource-allocation", "features"): {"jobs": 4, "types": 2},
}
NEW = "occurs-nowhere-else"


def documents(kind: str, family: str, seed: int, folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Changed instances, valid or not: what is changed, and the tables."""
    path = folder / "base.json"
    mast_opt.write(mast_opt.generate(kind, family, seed=seed, **SIZES[kind, family]), path, force=True)
    base = json.loads(path.read_text())
    yield "nothing", base
    for table in kind_named(kind).tables.schema.tables:
        rows = base.get(table.name) or []
        for column in table.columns:
            if column.axis is not None and rows:
                changed = deepcopy(base)
                changed[table.name].append({**rows[-1], column.name: NEW})
                yield f"{table.name}.{column.name} of a copy of the last row", changed
        for kept in (0, 1):
            if len(rows) > kept:
                yield f"{kept} rows of {table.name}", {**deepcopy(base), table.name: rows[:kept]}


def check(kind: str, document: dict[str, Any], folder: Path, exact: tuple[str, ...]) -> int:
    """Solve with every solver; returns how many took the instance, 0 where it is not valid."""
    path = folder / "changed.json"
    path.write_text(json.dumps(document))
    try:
        problem: Any = mast_opt.read(path)
    except InstanceError:
        return 0
    taken = 0
    bound: float | None = None
    heuristics = kind_named(kind).solvers.heuristics
    solvers = kind_named(kind).solvers
    for solver in (*exact, *heuristics):
        rounds = 3 if solver in heuristics and not solvers.is_constructive(solver) else None
        try:
            found = mast_opt.solve(problem, solver, threads=1, iterations=rounds, time_limit_s=60)
        except UnsupportedOption:
            continue
        taken += 1
        if solver == exact[0]:
            bound, infeasible = found.bound, found.status.is_infeasible
        if found.plan is not None:
            assert not infeasible, (solver, found)
            assert mast_opt.verify(problem, found.plan).ok
            if bound is not None and found.objective is not None and not found.stages:
                off = problem.sense.minimised(bound - found.objective)
                assert off <= 1e-5 * max(1.0, abs(bound)), (solver, found, bound)
    return taken


@pytest.mark.parametrize(("kind", "family"), SIZES)
def test_labels_that_nothing_uses_and_tables_of_one_row(kind: str, family: str, tmp_path: Path) -> None:
    taken = [check(kind, changed, tmp_path, ("highs",)) for _, changed in documents(kind, family, 0, tmp_path)]
    assert taken[0] > 0
    assert sum(one > 0 for one in taken) >= 5


def test_a_datacenter_without_servers_in_an_affinity(tmp_path: Path) -> None:
    server = {"type": "a", "rack": "k", "datacenter": "d0", "in_use": False}
    document = {
        "instance": {"format": "mast-opt/1", "kind": "server-assignment", "name": "two servers"},
        "servers": [{"server": f"s{at}", "switchboard": f"b{at}", **server} for at in range(2)],
        "reservations": [{"reservation": "q0", "rru": 1}],
        "values": [{"reservation": "q0", "type": "a", "rru": 1}],
        "affinity": [{"reservation": "q0", "datacenter": "d1", "share": 0.5, "tolerance": 0.1}],
    }
    assert check("server-assignment", document, tmp_path, ("highs",)) == 2
