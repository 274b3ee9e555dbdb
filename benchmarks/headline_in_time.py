"""The published headline in time, and what each part of it is worth: an organisation of 12 regions, before and after.

    python -m benchmarks.headline_in_time --variants before after early-share --seed 1 --out results

Every run is one JSON file, ``VARIANT-SEED.json``. The skew of homes is calibrated once for each seed (``--skew`` gives
it) so that the worst ratio of tier 0 before is 2.63: an input, not a finding. ``--list`` names the variants.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, replace
from pathlib import Path

from mast_opt.simulation.experiments import VARIANTS, calibrated, run_variant
from mast_opt.simulation.organisation.params import OrganisationParams


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    defaults = OrganisationParams()
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--variants", nargs="+", choices=list(VARIANTS), default=["before", "after"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--skew", type=float, help="of homes; calibrated unless given")
    parser.add_argument("--tolerance", type=float, default=0.05, help="of the calibrated ratio")
    parser.add_argument("--days", type=int, default=defaults.days)
    parser.add_argument("--gpus", type=int, default=defaults.gpus)
    parser.add_argument("--regions", type=int, default=defaults.regions)
    parser.add_argument("--datasets", type=int, default=defaults.datasets)
    parser.add_argument("--largest-gpus", type=int, default=defaults.largest_gpus)
    parser.add_argument("--median-hours", type=float, default=defaults.median_hours)
    parser.add_argument("--warm-up-days", type=float, default=7.0)
    parser.add_argument("--tick-s", type=int, default=60)
    parser.add_argument("--iterations", type=int, default=20, help="of the data plans")
    parser.add_argument("--servers-every-s", type=int, default=1800)
    parser.add_argument("--out", type=Path, default=Path("headline-in-time"))
    parser.add_argument("--param", action="append", default=[], help="NAME=VALUE of every variant that does not set it")
    given = parser.parse_args()
    if given.list:
        for one in VARIANTS.values():
            print(f"{one.name:18} {one.says}")
        return
    sizes = {
        name: getattr(given, name)
        for name in ("seed", "days", "gpus", "regions", "datasets", "median_hours", "largest_gpus")
    }
    params = OrganisationParams(**sizes)
    if given.skew is None:
        params = calibrated(params, warm_up_days=given.warm_up_days, tolerance=given.tolerance)
    else:
        params = replace(params, skew=given.skew)
    given.out.mkdir(parents=True, exist_ok=True)
    run = {
        "tick_s": str(given.tick_s),
        "slow.data.iterations": str(given.iterations),
        "slow.servers.every_s": str(given.servers_every_s),
    }
    run |= dict(text.split("=", 1) for text in given.param)
    for name in given.variants:
        began = time.process_time()
        found = run_variant(VARIANTS[name], params, run, warm_up_days=given.warm_up_days)
        stated = {"variant": name, "organisation": asdict(params), "cpu_s": round(time.process_time() - began, 1)}
        (given.out / f"{name}-{given.seed}.json").write_text(json.dumps({**stated, "metrics": found}, indent=1) + "\n")
        ratio = found["worst_ratio"].get(0, {}).get("mean")
        print(
            f"{name:18} seed {given.seed}: ratio {ratio}, allocation {found['allocation']}, {stated['cpu_s']} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
