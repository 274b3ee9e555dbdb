"""The headline at the published size: 100,000 GPUs in 30 regions, before and after, each mechanism taken away once.

    python -m benchmarks.headline_at_size --small    # 400 GPUs in 5 regions, one seed: minutes
    python -m benchmarks.headline_at_size            # a quarter of an hour of processor time a variant
    python -m benchmarks.headline_at_size --days 18 --largest-gpus 1024 --seeds 1 2 3

Results go to a file as in ``headline_in_time``, and runs that it has are not done again; the table is printed from it.
What is taken away is taken from ``room``: all mechanisms, and smaller jobs make room for gangs. ``room-servers`` adds
the assignment of servers by ``ras`` in every region, each half hour. Demand is half as high in the first days, which do
not count. ``--small`` calibrates the demand first, unless ``--skew`` gives what was. Peak memory is that of the
process, so run one variant at a time where it matters.
"""

from __future__ import annotations

import argparse
import gc
from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.headline_in_time import SMALL, SMALL_WARM_UP_DAYS, Experiment, read
from benchmarks.headline_structure import OrganisationParams

FULL = {
    "days": 11,
    "gpus": 100_000,
    "regions": 30,
    "datasets": 16_000,
    "median_hours": 10.0,
    "largest_gpus": 256,
    "load": 0.97,
    "ramp_days": 3,
    "failures": 6.5,
}
WARM_UP_DAYS = 4.0
SKEW = 1.37
"""Of homes at the full size, calibrated with seed 1."""
ROWS = (
    *("before", "after", "room", "room-regional", "room-no-plan", "room-no-preemption", "room-pack-never"),
    *("room-early", "room-hard", "room-soft", "room-servers"),
)
SMALL_ROWS = ROWS[:3]
COLLECT_AFTER = 100_000, 50, 100
"""Thresholds of Python's garbage collector: what a log holds stays."""
RUN = {"tick_s": "60", "slow.data.iterations": "60"}
COLUMNS = {
    "ratio": "by region and type",
    "urgent_by_region": "by region",
    "least_ratio": "fluid bound",
    "urgent_running": "runs",
    "urgent_waiting": "waits",
    "urgent_slope": "slope a week",
    "allocation": "allocated",
    "storage_percent": "more storage, %",
    "blocked_percent": "wait for data, %",
    "cpu_s": "CPU, s",
    "peak_mb": "peak, MB",
}
"""Figure → its head in the table. Ratios are of tier 0; what runs and waits is over all supply."""


def table(runs: list[dict[str, Any]]) -> str:
    """Markdown table of runs: medians over the seeds of each variant."""
    heads = ["variant", "seeds", *COLUMNS.values()]
    lines = ["| " + " | ".join(heads) + " |", "|---|" + "--:|" * (len(heads) - 1)]
    for name in sorted({run["variant"] for run in runs}, key=ROWS.index):
        of = [{**run, **run["figures"]} for run in runs if run["variant"] == name]
        cells = [_cell([one[figure] for one in of if one.get(figure) is not None]) for figure in COLUMNS]
        lines.append(f"| `{name}` | {len(of)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(values: list[float]) -> str:
    """Median of a figure, or nothing where no run has it."""
    middle = median(values) if values else 0.0
    return (f"{middle:,.0f}" if middle >= 1000 else f"{middle:.3g}") if values else "–"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true", help="the small case, before, after and with room")
    parser.add_argument("--variants", nargs="+", choices=ROWS)
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--skew", type=float, help="of homes; calibrated for each seed unless given")
    parser.add_argument("--days", type=int, help="of which the last ones count")
    parser.add_argument("--largest-gpus", type=int, help="of a gang")
    parser.add_argument("--load", type=float, help="factor on the demand of every tier")
    parser.add_argument("--failures", type=float, help="of a server in a thousand days")
    parser.add_argument("--quotas", action="store_true", help="quotas of namespaces, below teams")
    parser.add_argument("--warm-up-days", type=float)
    parser.add_argument("--out", type=Path, default=Path("headline-at-size.jsonl"))
    given = parser.parse_args()
    sizes: Mapping[str, Any] = SMALL if given.small else FULL
    for name in ("days", "largest_gpus", "load", "failures", "quotas"):
        sizes = sizes if getattr(given, name) in (None, False) else {**sizes, name: getattr(given, name)}
    warm_up_days = SMALL_WARM_UP_DAYS if given.small else WARM_UP_DAYS
    warm_up_days = warm_up_days if given.warm_up_days is None else given.warm_up_days
    skew = given.skew if given.skew or given.small else SKEW
    gc.set_threshold(*COLLECT_AFTER)
    experiment = Experiment(given.out, OrganisationParams(**sizes), RUN, warm_up_days, 0.05)
    for seed in given.seeds:
        for stated in experiment.run(given.variants or list(SMALL_ROWS if given.small else ROWS), seed, skew):
            print(f"{stated['variant']} seed {seed}: {stated['cpu_s']} s", flush=True)
    print(table(read(given.out)[1]))


if __name__ == "__main__":
    main()
