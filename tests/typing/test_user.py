"""What a type checker tells a user: an instance leads to the plans of its kind, and to those only."""

from __future__ import annotations

import re
from pathlib import Path

from mypy import api

CONFIGURATION = Path(__file__).parents[2] / "pyproject.toml"
PROGRAM = """
import mast_opt

problem = mast_opt.generate("data-placement", datasets=4)
reveal_type(problem)  # mast_opt.data_placement.problem.DataPlacement
solution = mast_opt.solve(problem, time_limit_s=1)
reveal_type(solution)  # mast_opt.solving.solution.Solution[mast_opt.data_placement.plan.Plan]
reveal_type(solution.plan)  # mast_opt.data_placement.plan.Plan | None
reveal_type(mast_opt.read_plan(problem, "plan"))  # mast_opt.data_placement.plan.Plan
reveal_type(mast_opt.start(problem).result().plan)  # mast_opt.data_placement.plan.Plan | None
reveal_type(mast_opt.pareto(problem, ("storage", "peak")).points[0].plan)  # mast_opt.data_placement.plan.Plan
reveal_type(mast_opt.whatif(problem, []).base.solution.plan)  # mast_opt.data_placement.plan.Plan | None

jobs = mast_opt.generate("job-placement")
reveal_type(mast_opt.solve(jobs).plan)  # mast_opt.job_placement.plan.Plan | None
servers = mast_opt.generate("server-assignment")
reveal_type(mast_opt.solve(servers).plan)  # mast_opt.server_assignment.plan.Plan | None
tasks = mast_opt.generate("task-reassignment")
reveal_type(mast_opt.solve(tasks).plan)  # mast_opt.task_reassignment.plan.Plan | None

assert solution.plan is not None
reveal_type(mast_opt.verify(problem, solution.plan))  # mast_opt.core.verdict.Verdict
mast_opt.verify(jobs, solution.plan)  # error
mast_opt.solve(jobs, start=solution.plan)  # error
mast_opt.solve("an instance")  # error
solution.plna  # error
"""


def test_the_types_that_a_user_sees(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    output, failed, _ = api.run(["--config-file", str(CONFIGURATION), str(program)])
    said = [line.split("  # ")[1] if "  # " in line else "" for line in PROGRAM.splitlines()]
    found = {int(line): text for line, text in re.findall(r':(\d+): note: Revealed type is "(.*)"', output)}
    found |= {int(line): "error" for line in re.findall(r":(\d+): error: ", output)}
    assert found == {number: text for number, text in enumerate(said, start=1) if text}, output + failed
