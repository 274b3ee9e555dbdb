"""``mast-opt export``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Run
from mast_opt.cli.options import Force, Instance, Json, TheRun
from mast_opt.core.errors import UsageError
from mast_opt.io import read, read_plan_of, write
from mast_opt.io.atomic import check_free, new_file
from mast_opt.kind.kind import Kind
from mast_opt.mip import Mip
from mast_opt.mip.export import write_lp, write_mps
from mast_opt.registry import kind_of

if TYPE_CHECKING:
    from rich.console import Console

_PROGRAMS: dict[str, Callable[[Mip, Path], None]] = {".lp": write_lp, ".mps": write_mps}
_TABLES = (".xlsx", ".json", "")


def command(
    path: Instance,
    out: Annotated[Path, Parameter(help="The file to write; its ending chooses the format.")],
    /,
    *,
    formulation: Annotated[str | None, Parameter(help="How the problem is stated, for .lp and .mps.")] = None,
    plan: Annotated[Path | None, Parameter(help="Write this plan of the instance instead of the instance.")] = None,
    force: Force = False,
    json: Json = False,
    run: TheRun,
) -> Answer:
    """Write an instance, or a plan of it, for other tools.

    .lp and .mps hold the mixed-integer program with readable names, .dat the data section for the kind's .mod (GNU
    MathProg); .xlsx, .json and a path without an ending hold the instance itself in another format. For task
    reassignment .txt is the format of the ROADEF challenge: the model file, or with --plan the new assignment.

        mast-opt export my-instance my-instance.lp
        mast-opt export my-instance my-instance.dat && glpsol -m models/data_placement.mod -d my-instance.dat
        mast-opt export my-instance my-instance.xlsx
        mast-opt export my-tasks new-assignment.txt --plan my-plan
    """
    suffix = out.suffix.lower()
    with run.phase("read", f"reading {path}"):
        problem = read(path)
    kind = kind_of(problem)
    run.record.update(kind=kind.name, name=problem.name)
    if plan is not None:
        return _write_plan(kind, problem, plan, out, formulation, force=force, run=run)
    known = (*_PROGRAMS, *kind.exporters, *_TABLES[:-1])
    if suffix not in (*known, ""):
        raise UsageError(
            f"{out}: expected a name that ends in one of {', '.join(known)}, or none for a folder of tables"
        )
    if formulation is not None and suffix not in _PROGRAMS:
        raise UsageError(f"--formulation is for {' and '.join(_PROGRAMS)}; {out} holds no program")
    words = ""
    if suffix in _TABLES:
        write(problem, out, force=force)
    else:
        with _fresh(out, force) as partial:
            if suffix in _PROGRAMS:
                with run.phase("formulate", f"writing {out}"):
                    mip, words = _program(kind, problem, formulation or "base")
                _PROGRAMS[suffix](mip, partial)
            else:
                kind.exporters[suffix](problem, partial)
    return _written(run, out, f"{problem.name} is in {out}.{words}")


def _write_plan(
    kind: Kind[Any, Any],
    problem: Any,
    plan: Path,
    out: Path,
    formulation: str | None,
    *,
    force: bool,
    run: Run,
) -> Answer:
    """Write a plan in a format of another tool."""
    if formulation is not None:
        raise UsageError("--formulation says how an instance is stated; it has no meaning with --plan")
    if not kind.plan_exporters:
        raise UsageError(f"there is no format of another tool for plans of {kind.name}; leave out --plan")
    writer = kind.plan_exporters.get(out.suffix.lower())
    if writer is None:
        raise UsageError(f"{out}: expected a name that ends in {' or '.join(kind.plan_exporters)}, for a plan")
    with run.phase("read", f"reading {plan}"):
        reading = read_plan_of(problem, plan)
    with _fresh(out, force) as partial:
        writer(problem, reading.plan, partial)
    return _written(run, out, f"The plan in {plan} is in {out}.")


def _fresh(out: Path, force: bool) -> AbstractContextManager[Path]:
    """A file to fill that then becomes ``out``. Raises InputError if that exists and may not be overwritten."""
    check_free(out, force=force)
    return new_file(out.absolute())


def _written(run: Run, out: Path, words: str) -> Answer:
    run.record["out"] = str(out)

    def show(console: Console) -> None:
        console.print(words, soft_wrap=True)

    return Answer(Exit.OK, show)


def _program(kind: Kind[Any, Any], problem: Any, formulation: str) -> tuple[Mip, str]:
    """The program, and what to know about it."""
    if formulation not in kind.formulations:
        known = ", ".join(kind.formulations)
        raise UsageError(f"{kind.name} has no formulation called {formulation!r}; expected one of: {known}")
    mip = kind.formulate(problem, formulation, to_solve=False).mip
    rows, columns = mip.shape
    words = f" It has {rows:,} rows and {columns:,} columns."
    order = problem.objective.order
    if order:
        mip = mip.minimise({order[0]: 1.0})
        words += f" Its objective is {order[0]}, the first of the terms that are minimised one after another."
    return mip, words
