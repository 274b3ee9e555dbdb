"""The published headline in time, and what each part of it is worth: an organisation before and after, in virtual time.

    python -m benchmarks.headline_in_time --small --variants before after early-share --seeds 1 2 3 --out results.jsonl

The first line of the file says what is run; each further line is one run. Runs that the file has are not done again.
The skew of homes is calibrated once for each seed (``--skew`` gives it) so that the worst ratio of tier 0 before is
2.63: an input, not a finding. ``--list`` names the variants.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.headline_runs import calibrated, run_variant
from benchmarks.headline_structure import OrganisationParams
from benchmarks.headline_variants import VARIANTS
from mast_opt.core.errors import UsageError

SMALL = {"days": 9, "gpus": 400, "regions": 5, "datasets": 300, "median_hours": 6.0, "largest_gpus": 16}
SMALL_WARM_UP_DAYS = 6.0
SIZES = tuple(SMALL)
HOUR_S = 3600
KIB = 1024
DIGITS = 4
"""Significant digits of a figure in the file."""


def figures_of(found: Mapping[str, Any]) -> dict[str, float | None]:
    """The figures of a run that the page needs, by short names."""
    waits, ratio, urgent = found["queue_s_by_tier"], found["worst_ratio"], found["urgent"]
    last, gap = max(ratio), found["plan_gap"].get("data", {"mean": None, "worst": None})
    figures: dict[str, float | None] = {
        "ratio": ratio[0]["mean"],
        "ratio_p95": ratio[0]["p95"],
        "ratio_all": ratio[last]["mean"],
        "least_ratio": found["least_ratio"],
        "planned": found["planned_ratio"].get(0),
        "plan_gap": gap["mean"],
        "plan_gap_worst": gap["worst"],
        "allocation": found["allocation"],
        "for_data_percent": None if found["not_collocated"] is None else 100 * found["not_collocated"],
        "stranded_gpus": found["stranded_gpus"],
        "storage_percent": 100 * (found["storage_overhead"] or 0.0),
        "copied_percent_per_day": found["copied_percent_per_day"],
        "preemptions": found["preemptions"],
        "lost_gpu_h": found["lost_gpu_h"],
        "starved": found["starved"],
        "urgent_starved": urgent["starved"],
        "urgent_whole_h": urgent["whole_h"],
        "urgent_part_h": urgent["part_h"],
        "jobs": found["jobs"],
    }
    urgent_demand = dict(found["urgent_demand"])
    blocked = urgent_demand.pop("blocked")
    figures["blocked_percent"] = None if blocked is None else 100 * blocked
    figures |= {f"urgent_{name}": value for name, value in urgent_demand.items()}
    figures |= {f"wait_{tier}_h": waited / HOUR_S for tier, waited in waits.items()}
    return {name: None if value is None else _rounded(value) for name, value in figures.items()}


def _rounded(value: float) -> float:
    short = float(f"{value:.{DIGITS}g}")
    return int(short) if short == int(short) else short


def read(file: Path) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """What a file says is run, and its runs."""
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return (lines[0], lines[1:]) if lines else (None, [])


class Experiment:
    """Runs of one organisation, kept in a file.

    Raises:
        UsageError: the file has runs of something else.
    """

    def __init__(
        self, file: Path, params: OrganisationParams, given: Mapping[str, str], warm_up_days: float, tolerance: float
    ) -> None:
        self.file, self.params, self.given = file, params, dict(given)
        self.warm_up_days, self.tolerance = warm_up_days, tolerance
        asked, defaults = (
            {name: value for name, value in asdict(one).items() if name not in ("seed", "skew")}
            for one in (params, OrganisationParams())
        )
        head = {"organisation": asked, "warm_up_days": warm_up_days, "params": self.given}
        known, runs = read(file)
        if known is not None and {**known, "organisation": {**defaults, **known["organisation"]}} != head:
            raise UsageError(f"{file} has runs of another organisation: {known}")
        self.done = {(run["variant"], run["seed"]) for run in runs}
        self.skew = {run["seed"]: run["skew"] for run in runs}
        if known is None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(head) + "\n")

    def run(self, names: list[str], seed: int, skew: float | None = None) -> Iterator[dict[str, Any]]:
        """The runs that the file does not have; they are added to it."""
        if all((name, seed) in self.done for name in names):
            return
        params = replace(self.params, seed=seed)
        skew = self.skew.get(seed) if skew is None else skew
        if skew is None:
            params = calibrated(params, warm_up_days=self.warm_up_days, tolerance=self.tolerance)
        else:
            params = replace(params, skew=skew)
        self.skew[seed] = params.skew
        for name in names:
            if (name, seed) in self.done:
                continue
            began = time.process_time()
            found = figures_of(run_variant(VARIANTS[name], params, self.given, warm_up_days=self.warm_up_days))
            cpu_s = round(time.process_time() - began, 1)
            peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KIB // 10**6
            stated = {"variant": name, "seed": seed, "skew": params.skew, "cpu_s": cpu_s, "peak_mb": peak_mb}
            stated["figures"] = found
            with self.file.open("a") as out:
                out.write(json.dumps(stated, separators=(",", ":")) + "\n")
            self.done.add((name, seed))
            yield stated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = OrganisationParams()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=["before", "after"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[1])
    parser.add_argument("--skew", type=float, help="of homes; calibrated unless given")
    parser.add_argument("--tolerance", type=float, default=0.05, help="of the calibrated ratio")
    parser.add_argument("--small", action="store_true", help="sizes of the small case, which the page has")
    for name in SIZES:
        kind = type(getattr(defaults, name))
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, help=f"{getattr(defaults, name)}")
    parser.add_argument("--warm-up-days", type=float, help="7, or 6 of the small case")
    parser.add_argument("--tick-s", type=int, default=60)
    parser.add_argument("--iterations", type=int, default=20, help="of the data plans")
    parser.add_argument("--servers-every-s", type=int, default=1800)
    parser.add_argument("--out", type=Path, default=Path("headline-in-time.jsonl"))
    parser.add_argument("--param", action="append", default=[], help="NAME=VALUE of every variant that does not set it")
    given = parser.parse_args()
    if given.list:
        for one in VARIANTS.values():
            print(f"{one.name:22} {one.says}")
        return
    sizes: dict[str, Any] = dict(SMALL) if given.small else {}
    sizes |= {name: getattr(given, name) for name in SIZES if getattr(given, name) is not None}
    warm_up_days = given.warm_up_days
    if warm_up_days is None:
        warm_up_days = SMALL_WARM_UP_DAYS if given.small else 7.0
    run = {
        "tick_s": str(given.tick_s),
        "slow.data.iterations": str(given.iterations),
        "slow.servers.every_s": str(given.servers_every_s),
    }
    run |= dict(text.split("=", 1) for text in given.param)
    experiment = Experiment(given.out, OrganisationParams(**sizes), run, warm_up_days, given.tolerance)
    for seed in given.seeds:
        for stated in experiment.run(given.variants, seed, given.skew):
            ratio, allocation = stated["figures"]["ratio"], stated["figures"]["allocation"]
            print(
                f"{stated['variant']:22} seed {seed}: ratio {ratio}, allocation {allocation}, {stated['cpu_s']} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
