"""``mast-opt export``."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mast_opt.cli.exit_codes import Exit
from mast_opt.cli.invocation import Answer, Console
from mast_opt.cli.options import Force, Instance, Json, TheRun
from mast_opt.planner.io import read
from mast_opt.planner.solving.export_files import PROGRAM_WRITERS, check_format, export, formulate, write_program
from mast_opt.problems.mip import Mip
from mast_opt.problems.registry import kind_of


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
    with run.phase("read", f"reading {path}"):
        problem = read(path)
    run.record.update(kind=kind_of(problem).name, name=problem.name)
    check_format(problem, out, formulation, of_plan=plan is not None)
    words = f"{problem.name} is in {out}."
    if plan is not None:
        with run.phase("read", f"reading {plan}"):
            chosen = run.plan_of(problem, plan).plan
        export(problem, out, plan=chosen, formulation=formulation, force=force)
        words = f"The plan in {plan} is in {out}."
    elif out.suffix.lower() in PROGRAM_WRITERS:
        with run.phase("formulate", f"writing {out}"):
            mip = formulate(problem, formulation or "base")
        write_program(mip, out, force=force)
        words += _size(mip, problem.objective.order)
    else:
        export(problem, out, formulation=formulation, force=force)
    run.record["out"] = str(out)

    def show(console: Console) -> None:
        console.print(words, soft_wrap=True)

    return Answer(Exit.OK, show)


def _size(mip: Mip, order: tuple[str, ...]) -> str:
    """Words on the size of an exported program, and which term it minimises."""
    rows, columns = mip.shape
    words = f" It has {rows:,} rows and {columns:,} columns."
    if order:
        words += f" Its objective is {order[0]}, the first of the terms that are minimised one after another."
    return words
