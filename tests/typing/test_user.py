"""What a type checker says to a user: an instance leads to the plans of its kind, and to those only."""

from __future__ import annotations

import re
from pathlib import Path

from mypy import api

CONFIGURATION = Path(__file__).parents[2] / "pyproject.toml"
PROGRAM = """
import mast_opt

problem = mast_opt.generate("data-placement", datasets=4)
reveal_type(problem)  # mast_opt.problems.data_placement.problem.DataPlacement
solution = mast_opt.solve(problem, time_limit_s=1)
reveal_type(solution)  # mast_opt.planner.solving.solution.Solution[mast_opt.problems.data_placement.plan.Plan]
reveal_type(solution.plan)  # mast_opt.problems.data_placement.plan.Plan | None
reveal_type(mast_opt.read_plan(problem, "plan"))  # mast_opt.problems.data_placement.plan.Plan
reveal_type(mast_opt.start(problem).result().plan)  # mast_opt.problems.data_placement.plan.Plan | None
reveal_type(mast_opt.pareto(problem, ("storage", "peak")).points[0].plan)  # mast_opt.problems.data_placement.plan.Plan
reveal_type(mast_opt.whatif(problem, []).base.solution.plan)  # mast_opt.problems.data_placement.plan.Plan | None

jobs = mast_opt.generate("job-placement")
reveal_type(mast_opt.solve(jobs).plan)  # mast_opt.problems.job_placement.plan.Plan | None
servers = mast_opt.generate("server-assignment")
reveal_type(mast_opt.solve(servers).plan)  # mast_opt.problems.server_assignment.plan.Plan | None
tasks = mast_opt.generate("task-reassignment")
reveal_type(mast_opt.solve(tasks).plan)  # mast_opt.problems.task_reassignment.plan.Plan | None

assert solution.plan is not None
reveal_type(mast_opt.verify(problem, solution.plan))  # mast_opt.core.verdict.Verdict
mast_opt.verify(jobs, solution.plan)  # error
mast_opt.solve(jobs, start=solution.plan)  # error
mast_opt.solve("an instance")  # error
solution.plna  # error
"""
MISTAKES = """
import numpy as np

import mast_opt
from mast_opt import Fleet, Job, Server, TetrisParams

data = mast_opt.generate("data-placement", datasets=5)
jobs = mast_opt.generate("job-placement")
solution = mast_opt.solve(data, "highs", time_limit_s=5)
fleet = Fleet([Server("s", "r", "c", "k", "h100", gpus=8, cpu_mcores=1, memory_mib=1)])
bid = fleet.place(Job("j", tier=0, tasks=1, mgpu=8000))

data.dataset  # a group that there is not
data.regions.storage  # a column that there is not
data.regions.storage_mb = np.zeros(3)  # problems are frozen
mast_opt.solve(data, "highs", timelimit_s=5)  # a misspelt argument
mast_opt.solve(data, "highs", time_limit_s="5")  # text instead of a number
mast_opt.solve(data, 5)  # a number instead of a solver's name
mast_opt.verify(data, solution.plan)  # there may be no plan
solution.plan.place  # there may be no plan
round(solution.objective, 2)  # there may be no objective
solution.bound.value  # a bound is a number or None
solution.status == "OPTIMAL"  # a status is no text
mast_opt.write_plan(data, "out")  # the solution is missing
mast_opt.write_plan(jobs, solution, "out")  # a solution of another kind
mast_opt.read_plan("plan", data)  # the wrong order
mast_opt.diff(data, solution, solution)  # solutions instead of plans
mast_opt.pareto(data, "storage", "peak")  # terms are a sequence
TetrisParams(threads=4)  # a parameter that there is not
mast_opt.from_tables("data-placement", {"regions": []}, nmae="x")  # a misspelt field of the header
fleet.commit(bid)  # the job may be refused
fleet.place("j")  # a name instead of a job
for event in mast_opt.start(data, "highs").result(): ...  # a solution is no iterator
"""


def check(program: str, folder: Path) -> str:
    """What mypy finds in a program."""
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    output, failed, _ = api.run(["--config-file", str(CONFIGURATION), str(path)])
    assert not failed
    return output


def test_the_types_that_a_user_sees(tmp_path: Path) -> None:
    output = check(PROGRAM, tmp_path)
    said = [line.split("  # ")[1] if "  # " in line else "" for line in PROGRAM.splitlines()]
    found = {int(line): text for line, text in re.findall(r':(\d+): note: Revealed type is "(.*)"', output)}
    found |= {int(line): "error" for line in re.findall(r":(\d+): error: ", output)}
    assert found == {number: text for number, text in enumerate(said, start=1) if text}, output


def test_mistakes_of_a_user_are_found(tmp_path: Path) -> None:
    output = check(MISTAKES, tmp_path)
    seeded = {number for number, line in enumerate(MISTAKES.splitlines(), start=1) if "  # " in line}
    assert len(seeded) > 20
    assert {int(line) for line in re.findall(r":(\d+): error: ", output)} == seeded, output
