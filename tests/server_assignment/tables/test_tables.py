"""Problems and plans survive the way into tables and files and back, and what is wrong with files is named."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mast_opt
from mast_opt.core.errors import InstanceError
from mast_opt.planner.io import FORMATS, checksum, read, read_plan, write, write_plan
from mast_opt.problems.kind.header import Objective
from mast_opt.problems.server_assignment import Plan, ServerAssignment
from mast_opt.problems.server_assignment.plan import today
from mast_opt.problems.server_assignment.problem import BUFFERS, TERMS
from mast_opt.problems.server_assignment.tables.problem_tables import (
    plan_from_tables,
    plan_to_tables,
    problem_from_tables,
    problem_to_tables,
)
from mast_opt.problems.server_assignment.verification.verifier import verify
from tests.examples import examples
from tests.server_assignment.strategies import plans, problems


def parts_of(problem: ServerAssignment) -> dict[str, Any]:
    """Everything in labels, so that nothing depends on the order of an axis."""
    p = problem
    claims, boards = (*p.reservations.labels, None), p.server_switchboard.tolist()
    servers = [
        (
            p.servers.labels[s],
            p.types[p.servers.type[s]],
            p.racks.labels[p.servers.rack[s]],
            p.switchboards.labels[boards[s]],
            p.datacenters[p.switchboards.datacenter[boards[s]]],
            claims[p.servers.owner[s]],
            bool(p.servers.in_use[s]),
        )
        for s in range(len(p.servers))
    ]
    return {
        "servers": servers,
        "claims": [
            (
                name,
                int(p.reservations.asked_mrru[q]),
                BUFFERS[p.reservations.buffer[q]],
                int(p.reservations.spread_limit_milli[q]) if p.reservations.spread_limited[q] else None,
                {
                    p.types[t]: int(p.reservations.value_mrru[q, t])
                    for t in np.flatnonzero(p.reservations.value_mrru[q]).tolist()
                },
            )
            for q, name in enumerate(p.reservations.labels)
        ],
        "affinity": [
            (p.reservations.labels[q], p.datacenters[d], share, tolerance)
            for q, d, share, tolerance in zip(
                p.affinities.reservation.tolist(),
                p.affinities.datacenter.tolist(),
                p.affinities.share_milli.tolist(),
                p.affinities.tolerance_milli.tolist(),
                strict=True,
            )
        ],
        "objective": p.objective,
    }


@examples(100)
@given(problem=problems())
def test_a_problem_is_what_its_tables_say(problem: ServerAssignment) -> None:
    assert parts_of(problem_from_tables(*problem_to_tables(problem))) == parts_of(problem)


@examples(60)
@given(data=st.data(), problem=problems())
def test_a_plan_is_what_its_table_says(data: st.DataObject, problem: ServerAssignment) -> None:
    plan: Plan = data.draw(plans(problem))
    assert plan_from_tables(problem, plan_to_tables(problem, plan)).reservation.tolist() == plan.reservation.tolist()


@pytest.mark.parametrize("format", FORMATS)
def test_instance_and_plan_survive_every_format(format: str, tmp_path: Path) -> None:
    problem = mast_opt.generate("server-assignment", "features", servers=40, reservations=6, datacenters=2, seed=4)
    path = tmp_path / (f"a.{format}" if format in ("xlsx", "json") else format)
    write(problem, path, format)
    again = read(path)
    assert parts_of(again) == parts_of(problem)
    assert checksum(again) == checksum(problem)
    plan = today(again)
    write_plan(again, plan, {"status": "FEASIBLE"}, tmp_path / "plan")
    assert read_plan(again, tmp_path / "plan").reservation.tolist() == plan.reservation.tolist()
    assert verify(again, plan).terms == pytest.approx(dict(verify(problem, today(problem)).terms))


HEADS = ["server", "type", "rack", "switchboard", "datacenter", "reservation", "in_use"]


def content(**changes: Any) -> dict[str, Any]:
    """A small instance as JSON."""
    servers: list[list[Any]] = [
        ["s1", "old", "r1", "sb1", "east", "ads", True],
        ["s2", "old", "r1", "sb2", "west", None, False],
    ]
    tables = {
        "servers": [dict(zip(HEADS, row, strict=True)) for row in servers],
        "reservations": [{"reservation": "ads", "rru": 1.0005}, {"reservation": "feed", "rru": 2}],
        "values": [
            {"reservation": "ads", "type": "old", "rru": 1.0005},
            {"reservation": "feed", "type": "old", "rru": 2},
        ],
    }
    header = {"format": "mast-opt/1", "kind": "server-assignment", "name": "small"}
    return {"instance": header, **tables, **changes}


def stated(tmp_path: Path, **changes: Any) -> ServerAssignment:
    (tmp_path / "a.json").write_text(json.dumps(content(**changes)))
    problem = read(tmp_path / "a.json")
    assert isinstance(problem, ServerAssignment)
    return problem


def test_defaults_and_rounding_against_the_plan(tmp_path: Path) -> None:
    """What is asked is rounded up, what a server is worth down; a buffer is embedded unless stated; the same label
    of a rack at two switchboards means two racks."""
    problem = stated(tmp_path)
    assert problem.reservations.asked_mrru.tolist() == [1001, 2000]
    assert problem.reservations.value_mrru.tolist() == [[1000], [2000]]
    assert problem.reservations.buffer.tolist() == [0, 0]
    assert not problem.reservations.spread_limited.any()
    assert problem.racks.labels == ("r1", "r1")
    assert problem.servers.owner.tolist() == [0, 2]


def test_those_that_share_a_buffer_get_a_pool(tmp_path: Path) -> None:
    claims = [{"reservation": name, "rru": 1, "buffer": "shared"} for name in ("ads", "feed", "shared-buffer")]
    problem = stated(tmp_path, reservations=claims)
    assert problem.reservations.labels[3:] == ("shared-buffer-2",)
    assert problem.pool == 3
    assert problem.reservations.value_mrru[3].tolist() == [0], "worth nothing to the third, so nothing in the pool"
    assert problem.servers.owner.tolist() == [0, 4]
    write(problem, tmp_path / "again.json")
    assert parts_of(read(tmp_path / "again.json")) == parts_of(problem)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"reservations": [{"reservation": name, "rru": 1, "buffer": "pool"} for name in ("ads", "feed")]}, "one pool"),
        ({"reservations": [{"reservation": name, "rru": 9e12} for name in ("ads", "feed")]}, "2^53"),
        (
            {
                "servers": [
                    dict(zip(HEADS, [place, "old", "r", "sb1", place, None, False])) for place in ("east", "west")
                ]
            },
            "row 2, column datacenter: found 'west'; expected east",
        ),
        ({"reservations": [{"reservation": "ads", "rru": 1, "buffer": "big"}]}, "embedded"),
        (
            {
                "reservations": [
                    {"reservation": "feed", "rru": 2, "spread_limit": 1.2},
                    {"reservation": "ads", "rru": 1, "spread_limit": 1e13},
                ]
            },
            "row 2, column spread_limit: found '1e+13'; expected a spread limit whose product with rru is smaller",
        ),
        (
            {"affinity": [{"reservation": "ads", "datacenter": "east", "share": 0.5, "tolerance": 1.5}]},
            "column tolerance: found '1.5'; expected a number (how far from that share it may be, 0–1) of at most 1",
        ),
    ],
)
def test_what_is_wrong_is_named(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(InstanceError) as caught:
        stated(tmp_path, **changes)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("objective", "words"),
    [
        ({"weights": {"moves_in_use": 0.5}}, "found 'moves_in_use = 0.5'; expected moves_in_use before moves_idle"),
        ({"mode": "lexicographic", "order": ["moves_idle", "moves_in_use"]}, "idle servers always move first"),
    ],
)
def test_idle_servers_do_not_outweigh_those_in_use(objective: dict[str, Any], words: str, tmp_path: Path) -> None:
    header = {**content()["instance"], "objective": objective}
    with pytest.raises(InstanceError) as caught:
        stated(tmp_path, instance=header)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    "objective",
    [Objective({**TERMS, "moves_in_use": 0.5}), Objective(dict(TERMS), order=("moves_idle", "moves_in_use"))],
)
def test_nor_do_they_where_a_problem_is_built_in_python(objective: Objective) -> None:
    problem = mast_opt.generate("server-assignment", "standard", servers=30, reservations=2, datacenters=1)
    with pytest.raises(InstanceError, match=f"{problem.name}.*idle servers always move first"):
        replace(problem, objective=objective)
