"""Programs of a problem, and instances and plans in files of other tools."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

from mast_opt.core.arguments import a, a_flag, a_path, a_text, checked, optional
from mast_opt.core.errors import UsageError
from mast_opt.planner.io import write
from mast_opt.planner.io.atomic import check_free, new_file
from mast_opt.planner.solving.request import check_formulation
from mast_opt.problems.kind.formulation import Formulation
from mast_opt.problems.kind.problem import PlanT, Problem
from mast_opt.problems.mip import Mip
from mast_opt.problems.mip.export import write_lp, write_mps
from mast_opt.problems.registry import check_plan, kind_of

PROGRAM_WRITERS: Mapping[str, Callable[[Mip, Path], None]] = {".lp": write_lp, ".mps": write_mps}
"""Ending of a file → what writes a program in that format."""
_TABLES = (".xlsx", ".json", "")


@checked(formulation=a_text)
def formulate(problem: Problem[Any], formulation: str = "base") -> Mip:
    """The mixed-integer program of a problem.

    Its columns and rows have names, as ``place[logs,eu-west]``. A lexicographic objective is the first of its terms;
    ``Mip.minimise`` gives the program of another one.

    Raises:
        UsageError: the problem's kind has no such formulation.
        FormulationTooLarge: the program would need more memory than there is.
    """
    return formulated(problem, formulation).mip


def formulated(problem: Problem[PlanT], formulation: str = "base") -> Formulation[PlanT]:
    """The program of ``formulate``, with the ways between its columns and a plan. Raises as ``formulate``."""
    kind = kind_of(problem)
    check_formulation(kind, formulation)
    found: Formulation[PlanT] = kind.formulate(problem, formulation, to_solve=False)
    order = problem.objective.order
    return replace(found, mip=found.mip.minimise({order[0]: 1.0})) if order else found


@checked(path=a_path, formulation=optional(a_text), force=a_flag)
def export(
    problem: Problem[PlanT],
    path: str | PathLike[str],
    *,
    plan: PlanT | None = None,
    formulation: str | None = None,
    force: bool = False,
) -> None:
    """Write an instance, or a plan of it, for other tools.

    Args:
        problem: an instance of any kind.
        path: its ending chooses the format: ``.lp`` and ``.mps`` for the program, ``.dat`` for the data section of the
            kind's .mod (GNU MathProg), ``.xlsx``, ``.json`` and none for the instance in tables; for task reassignment
            ``.txt`` for the model file of the ROADEF challenge, or with a plan for its assignment.
        plan: write this plan instead.
        formulation: of the program; ``base`` unless given.
        force: replace what is there.

    Raises:
        UsageError: the kind has no such format or formulation.
        InputError: the file exists, or cannot be written; nothing is then left half-written.
        PlanError: the plan is for another instance.
    """
    kind, out = kind_of(problem), Path(path)
    check_format(problem, out, formulation, of_plan=plan is not None)
    suffix = out.suffix.lower()
    if plan is not None:
        check_plan(kind, problem, plan)
        with _fresh_file(out, force) as partial:
            kind.tables.plan_exporters[suffix](problem, plan, partial)
    elif suffix in _TABLES:
        write(problem, out, force=force)
    elif suffix in PROGRAM_WRITERS:
        write_program(formulate(problem, formulation or "base"), out, force=force)
    else:
        with _fresh_file(out, force) as partial:
            kind.tables.exporters[suffix](problem, partial)


def check_format(problem: Problem[Any], out: Path, formulation: str | None = None, *, of_plan: bool = False) -> None:
    """Raises UsageError where ``export`` has no such format for the problem, or for a plan of it."""
    kind, suffix = kind_of(problem), out.suffix.lower()
    if of_plan:
        if formulation is not None:
            raise UsageError("a formulation is how an instance is stated; it has no meaning with a plan")
        if not kind.tables.plan_exporters:
            raise UsageError(f"there is no format of another tool for plans of {kind.name}; leave out the plan")
        if suffix not in kind.tables.plan_exporters:
            raise UsageError(
                f"{out}: expected a name that ends in {' or '.join(kind.tables.plan_exporters)}, for a plan"
            )
        return
    known = (*PROGRAM_WRITERS, *kind.tables.exporters, *_TABLES[:-1])
    if suffix not in (*known, ""):
        raise UsageError(
            f"{out}: expected a name that ends in one of {', '.join(known)}, or none for a folder of tables"
        )
    if formulation is not None and suffix not in PROGRAM_WRITERS:
        raise UsageError(f"a formulation is for {' and '.join(PROGRAM_WRITERS)}; {out} holds no program")


@checked(mip=a(Mip), path=a_path, force=a_flag)
def write_program(mip: Mip, path: str | PathLike[str], *, force: bool = False) -> None:
    """Write a program as ``.lp`` or ``.mps``, with names that these formats can carry.

    Raises:
        UsageError: the path has another ending.
        InputError: the file exists, or cannot be written; nothing is then left half-written.
    """
    out = Path(path)
    writer = PROGRAM_WRITERS.get(out.suffix.lower())
    if writer is None:
        raise UsageError(f"{out}: expected a name that ends in {' or '.join(PROGRAM_WRITERS)}, for a program")
    with _fresh_file(out, force) as partial:
        writer(mip, partial)


def _fresh_file(out: Path, force: bool) -> AbstractContextManager[Path]:
    """An export's file to fill that then becomes ``out``. Raises InputError if that exists and may not be
    overwritten.
    """
    check_free(out, force=force)
    return new_file(out.absolute())
