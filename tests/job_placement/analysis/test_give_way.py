"""What explain tries for a job of a plan: less important jobs of the same plan may give way."""

from __future__ import annotations

from pathlib import Path

import mast_opt
from tests.job_placement.tables.test_tables import BASE, loaded
from tests.narrowing import some


def test_less_important_placed_jobs_may_give_way(tmp_path: Path) -> None:
    job = BASE["jobs"][0]
    queue = [{**job, "job": name, "tier": tier, "gpus": 4} for name, tier in (("less", 1), ("more", 0))]
    problem = loaded(tmp_path, jobs=queue, running=[], allocations=[])
    alone = loaded(tmp_path, jobs=queue[:1], running=[], allocations=[])
    plan = some(mast_opt.solve(alone, "exhaustive").plan).made_for(problem)
    options = mast_opt.explain(problem, plan, ["more"]).reasons[0].options
    assert [(one.words, one.forbidden) for one in options] == [("in cluster c, leaving less waiting", ())]
    options = mast_opt.explain(problem, mast_opt.solve(problem, "exhaustive").plan, ["less"]).reasons[0].options
    assert len(options) == 1
    assert options[0].forbidden[0].endswith("leaving less important jobs of the plan waiting")
