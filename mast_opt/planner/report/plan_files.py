"""Plans into files: a folder of tables, or a workbook."""

from os import PathLike
from pathlib import Path

from mast_opt.core.arguments import a_path
from mast_opt.planner.report.workbook.results import write_workbook
from mast_opt.planner.solving import Solution
from mast_opt.planner.solving.solution import plan_fields, solved_plan, write_plan_folder
from mast_opt.problems.kind.problem import PlanT, Problem


def write_plan(problem: Problem[PlanT], solution: Solution[PlanT], path: str | PathLike[str]) -> None:
    """Write a solution's plan: a path that ends in ``.xlsx`` as a workbook of results, any other as a folder.

    A folder has the tables of the plan, ``plan.toml``, the events of the solve, and the certificate of the bound where
    the solver gave one. A workbook has a summary, charts as coloured cells, the steps to the plan, and the plan and the
    instance as they are read again; it holds no certificate. An earlier plan at the path is replaced.

    Raises:
        UsageError: the solution has no plan, or a table does not fit in a sheet.
        PlanError: the solution is for another instance: its plan does not fit, labels differ, or it is worth
            something else here.
        InputError: the files cannot be written; nothing is then left half-written.
    """
    a_path("path", path)
    if Path(path).suffix.lower() != ".xlsx":
        write_plan_folder(problem, solution, path)
        return
    plan = solved_plan(problem, solution)
    fields, events = plan_fields(solution), solution.events
    write_workbook(problem, plan, path, fields=fields, events=events, overrides=solution.overrides)
