"""Points of Gavel's curves against Gavel's own code."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.gavel_curves import main, read, run
from mast_opt.core.errors import UsageError

OF_GAVEL = {
    ("fifo", 4.0, 200, 300): 14.127722696,
    ("fifo with speeds", 4.0, 200, 300): 12.048564195,
    ("max-min", 0.8, 0, 10): 27.754841782,
    ("max-min with speeds", 0.8, 0, 10): 17.540295236,
}
"""Policy, jobs an hour, first job and the one after the last → mean hours with seed 0 (commit c4fa400, ECOS)."""


@pytest.mark.parametrize(("policy", "rate", "first", "last"), OF_GAVEL)
def test_points_are_those_of_gavels_own_code(policy: str, rate: float, first: int, last: int) -> None:
    found = run(policy, rate, 0, range(first, last), jobs=1500)
    assert found.mean_h == pytest.approx(OF_GAVEL[policy, rate, first, last], abs=1e-4)


def test_jobs_have_to_come_until_the_last_one_measured_has_ended() -> None:
    with pytest.raises(UsageError, match="the trace ends before"):
        run("fifo with speeds", 4.0, 0, range(200, 300), jobs=320)


def test_a_run_that_is_in_the_file_is_not_run_again(tmp_path: Path) -> None:
    out = tmp_path / "runs.jsonl"
    asked = ["--policies", "fifo", "--rates", "4", "--first", "0", "--last", "5", "--jobs", "900", "--out", str(out)]
    main(asked)
    once = out.read_text()
    main(asked)
    assert out.read_text() == once
    main([*asked, "--seeds", "0", "1"])
    assert [made.key for made in read(out)] == [("fifo", 4.0, seed, 0, 5) for seed in (0, 1)]
