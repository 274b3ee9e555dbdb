"""Sweeps: every run once, kept when it is complete; and the table of their figures."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest

from mast_opt.core.errors import UsageError
from mast_opt.live.simulation.sweep import Cell, CellResult, Window, cells_of, csv_text, run_sweep, table_of
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace
from mast_opt.live.simulation.variants import variant

SMALL = Path(__file__).parents[2] / "instances" / "traces" / "philly-small"


@pytest.fixture(scope="module")
def trace() -> JobTrace:
    return read_trace(SMALL)


def swept(
    trace: JobTrace, cells: tuple[Cell, ...], folder: Path | None, processes: int = 0, most: int | None = None
) -> tuple[list[CellResult], list[str]]:
    """The results, and the labels of runs that were made now; ``most``: cancelled after so many."""
    cancel, made, lock = threading.Event(), list[str](), threading.Lock()

    def done(result: CellResult, there: bool) -> None:
        with lock:
            if not there:
                made.append(result.cell.label)
            if most is not None and len(made) >= most:
                cancel.set()

    return run_sweep(trace, cells, folder, processes=processes, cancel=cancel, on_done=done), made


def test_every_policy_at_every_load_with_every_seed(trace: JobTrace, tmp_path: Path) -> None:
    cells = cells_of(("fifo", "sjf"), (1.0, 4.0), (0, 1), {}, (), Window())
    results, made = swept(trace, cells, tmp_path)
    assert [result.cell for result in results] == list(cells)
    assert sorted(made) == sorted(cell.label for cell in cells)
    assert len(set(made)) == 8
    assert results[0].metrics["sum_queue_s"] == 226_773
    again, made = swept(trace, cells, tmp_path)
    assert made == []
    assert json.dumps([one.metrics for one in again]) == json.dumps([one.metrics for one in results])
    more = cells_of(("fifo", "sjf"), (1.0, 4.0), (0, 1, 2), {}, (), Window())
    assert sorted(swept(trace, more, tmp_path)[1]) == sorted(cell.label for cell in more if cell.seed == 2)


def test_another_trace_or_window_is_run_again(trace: JobTrace, tmp_path: Path) -> None:
    cells = cells_of(("fifo",), (1.0,), (0,), {}, (), Window())
    swept(trace, cells, tmp_path)
    assert swept(variant(trace, 2.0), cells, tmp_path)[1] == ["fifo-load1-seed0"]
    late = cells_of(("fifo",), (1.0,), (0,), {}, (), Window(warm_up_s=500_000.0))
    results, made = swept(trace, late, tmp_path)
    assert made == ["fifo-load1-seed0"]
    assert 0 < results[0].metrics["jobs"] < 500
    (tmp_path / "runs" / "fifo-load1-seed0.json").write_text("{")
    assert swept(trace, late, tmp_path)[1] == made


def test_an_interrupted_sweep_goes_on(trace: JobTrace, tmp_path: Path) -> None:
    cells = cells_of(("fifo",), (1.0,), tuple(range(8)), {}, (), Window())
    results, made = swept(trace, cells, tmp_path, most=2)
    assert 2 <= len(results) == len(made) < 8
    files = {path.stem for path in (tmp_path / "runs").iterdir()}
    assert files == set(made)
    rest, later = swept(trace, cells, tmp_path)
    assert len(rest) == 8
    assert set(later) == {cell.label for cell in cells} - files


@pytest.mark.second_tier
def test_processes_give_the_same(trace: JobTrace) -> None:
    cells = cells_of(("fifo", "las"), (2.0,), (1,), {}, (), Window())
    here, there = (swept(trace, cells, None, processes)[0] for processes in (0, 2))
    assert [one.metrics for one in here] == [one.metrics for one in there]


def test_parameters_of_all_and_of_one_policy() -> None:
    given = {"placement": "best-fit", "federated.rule": "share", "slow.data.every_s": "60"}
    mast, federated = cells_of(("mast", "federated"), (1.0,), (7,), given, ("data",), Window())
    shared = {"placement": "best-fit", "slow.data.every_s": "60"}
    assert dict(mast.params) == shared
    assert dict(federated.params) == {**shared, "rule": "share", "seed": "7"}
    assert mast.slow == ("data",)
    with pytest.raises(UsageError, match="of a policy that the sweep does not have"):
        cells_of(("mast",), (1.0,), (0,), {"federated.rule": "share"}, (), Window())
    with pytest.raises(UsageError, match="there is no policy called 'fast'"):
        cells_of(("fast",), (1.0,), (0,), {}, (), Window())


def test_a_parameter_that_a_policy_does_not_have_ends_the_sweep(trace: JobTrace) -> None:
    cells = cells_of(("fifo", "mast"), (1.0,), (0,), {"scope": "region"}, (), Window())
    with pytest.raises(UsageError, match="fifo has no parameter 'scope'"):
        swept(trace, cells, None)


def test_the_table() -> None:
    waits = (1.0, 2.0, 6.0)
    results = [
        CellResult(Cell("fifo", 1.0, seed), {"queue_s": {"mean": wait, "p50": None}, "jobs": 5, "makespan_s": 1 / 3})
        for seed, wait in enumerate(waits)
    ]
    rows = {row.metric: row for row in table_of(results)}
    assert set(rows) == {"queue_s.mean", "jobs", "makespan_s"}
    row = rows["queue_s.mean"]
    half = 4.302652729911275 * np.std(waits, ddof=1) / np.sqrt(3)  # Student, two degrees of freedom, 97.5%
    assert (row.mean, row.low, row.high) == pytest.approx((3.0, 3.0 - half, 3.0 + half))
    assert rows["jobs"].low == 5.0
    assert rows["makespan_s"].high == pytest.approx(1 / 3)
    alone = table_of(results[:1])[0]
    assert (alone.seeds, alone.low, alone.high) == (1, None, None)
    assert csv_text([alone]) == "policy,load,metric,seeds,mean,low,high\nfifo,1.0,queue_s.mean,1,1.0,,\n"
