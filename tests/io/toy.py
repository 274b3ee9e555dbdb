"""A kind of problem that uses every type of column, and nothing else: the problem is its own tables."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import pytest

from mast_opt.core.errors import Fault, InstanceError
from mast_opt.core.verdict import Conflict
from mast_opt.problems.kind.header import Header, Rule, Term
from mast_opt.problems.kind.interfaces import (
    AnalysisInterface,
    FormulationInterface,
    GenerateInterface,
    PresentationInterface,
    SolverInterface,
    TableInterface,
    VerificationInterface,
)
from mast_opt.problems.kind.kind import Kind
from mast_opt.problems.kind.problem import Problem
from mast_opt.problems.kind.schema import Axis, Schema, Table, Tables, boolean, choice, integer, label, need, supply

TB, GB, SHARE = 1_000_000, 1024, 1000

SCHEMA = Schema(
    axes=(Axis("site", "sites"), Axis("item", "items"), Axis("colour")),
    tables=(
        Table(
            "sites",
            (
                label("site", "site"),
                supply("storage_tb", TB, help="disk, TB"),
                supply("ingress_tb", TB, required=False),
                need("headroom", SHARE, maximum=SHARE, default=0, required=False, help="share kept free"),
            ),
            key=("site",),
            rows_required=True,
            help="a place",
        ),
        Table(
            "items",
            (
                label("item", "item"),
                need("size_tb", TB, help="size, TB"),
                need("memory_gb", GB),
                integer("tier"),
                integer("copies_min", default=1, required=False),
                integer("copies_max", required=False),
                boolean("frozen", default=False, required=False),
                label("colour", "colour", required=False),
            ),
            key=("item",),
            rows_required=True,
        ),
        Table(
            "holds",
            (
                label("item", "item"),
                label("site", "site"),
                label("colour", "colour", required=False),
                need("share", SHARE, maximum=SHARE, default=SHARE, required=False),
            ),
            key=("item", "site", "colour"),
        ),
        Table(
            "rules",
            (label("item", "item"), label("site", "site"), choice("rule", "pinned", "forbidden")),
            key=("item", "site"),
            required=False,
        ),
    ),
)

PLAN_SCHEMA = Schema(
    axes=SCHEMA.axes,
    tables=(
        Table(
            "picks",
            (label("item", "item"), label("site", "site"), need("share", SHARE, maximum=SHARE)),
            key=("item", "site"),
        ),
        Table("paints", (label("item", "item"), label("colour", "colour", required=False)), key=("item",)),
    ),
)


@dataclass(frozen=True, eq=False)
class Toy(Problem[Tables]):
    kind: ClassVar[str] = "toy"
    header: Header
    tables: Tables


def _build(header: Header, tables: Tables) -> Toy:
    """Refuses what only the problem can see: an item called ``cursed``."""
    faults = [
        Fault("items", "an item that is not cursed", row + 1, "item", name)
        for row, name in enumerate(tables.axes["item"])
        if name == "cursed"
    ]
    if faults:
        raise InstanceError(faults)
    return Toy(header, tables)


def _conflicts(toy: Toy) -> tuple[Conflict, ...]:
    return tuple(
        Conflict("name", (name,), f"{name} fits nowhere") for name in toy.tables.axes["item"] if name == "huge"
    )


def _unused(*_: Any) -> Any:
    pytest.fail("reading and writing must neither verify a plan nor report on it")


KIND: Kind[Toy, Any] = Kind(
    name="toy",
    title="Toy",
    problem_type=Toy,
    plan_type=Tables,
    tables=TableInterface(
        schema=SCHEMA,
        plan_schema=PLAN_SCHEMA,
        rules=(
            Rule("remote_reads", "price", ("price", "forbid"), "may it read elsewhere?"),
            Rule("days", Fraction(1), (), "days that copies may take"),
        ),
        problem_from_tables=_build,
        problem_to_tables=lambda toy: (toy.header, toy.tables),
        plan_from_tables=lambda toy, tables: tables,
        plan_to_tables=lambda toy, plan: plan,
    ),
    terms={"peak": Term(1.0, "ratio"), "overload": Term(10.0, "share"), "idle": Term(0.0, "share")},
    analysis=AnalysisInterface(conflicts=_conflicts),
    verification=VerificationInterface(verify=_unused),
    formulation=FormulationInterface(formulations={}),
    solvers=SolverInterface(heuristics={}),
    generate=GenerateInterface(families={}),
    presentation=PresentationInterface(sections=_unused),
)

HEADER = """\
format = "mast-opt/1"
kind = "toy"
name = "a toy"
"""

GOOD = {
    "sites": "site,storage_tb,ingress_tb,headroom\neu,10,0.5,0.1\nus,20.5,,\n",
    "items": (
        "item,size_tb,memory_gb,tier,copies_min,copies_max,frozen,colour\n"
        "a,1.5,0.5,0,,3,true,red\n"
        '"b, the second",0.000001,2,1,2,,,\n'
    ),
    "holds": 'item,site,colour,share\na,eu,blue,0.25\na,eu,,\n"b, the second",us,red,1\n',
    "rules": "item,site,rule\na,eu,pinned\na,us,forbidden\n",
}
"""CSV text of a valid instance."""
