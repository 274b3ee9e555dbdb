"""What else could be done with a workload that pins and bans hold where it is."""

from __future__ import annotations

import pytest

import mast_opt
from tests.instance_rows import DataRows


@pytest.mark.parametrize("linked", [False, True])
def test_pinned_work_elsewhere_costs_what_it_reads_and_is_forbidden_by_its_pin_alone(linked: bool) -> None:
    builder = DataRows("pinned")
    for name in ("east", "west"):
        builder.add_region(name, storage_tb=10, cpu_cores=100, gpus={"a100": 10})
    if linked:
        builder.add_link("east", "west", tb_per_day=10)
    builder.add_dataset("logs", size_tb=1, replicas=["east"])
    builder.add_workload("rank", tier=0, cpu_cores=1, gpus={"a100": 4}, reads={"logs": 1}, pinned=["east"])
    problem = builder.build()
    plan = mast_opt.solve(problem, "highs", threads=1).plan
    options = {one.words: one for one in mast_opt.explain(problem, plan, ["rank"]).reasons[0].options}
    far = options["in west on a100, reading logs remotely"]
    assert far.forbidden == ("workload rank is pinned to east",)
    assert far.terms["remote"] == pytest.approx(1)
    assert far.parts["remote"] == pytest.approx(2000)
