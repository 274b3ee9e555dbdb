"""Random traces under every policy, with all labels renamed and rows in their order: the log is the same.

python -m tests.simulation.renaming --seeds 200
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from mast_opt.live.loop.history import history
from mast_opt.live.loop.longest_waits import longest_waits
from mast_opt.live.loop.metrics import metrics
from mast_opt.live.loop.place_metrics import place_metrics
from mast_opt.live.policies.early_binding import RULES
from mast_opt.live.policies.mast_params import BINDINGS
from mast_opt.live.policies.share_rules import OBJECTIVES, PACKING
from mast_opt.live.policies.whole_servers import PACKINGS
from mast_opt.live.simulation.kernel import POLICIES as ORDER_ONLY
from mast_opt.live.simulation.run import ENGINE_POLICIES, run_trace
from mast_opt.live.simulation.traces.trace import JobTrace, read_trace
from mast_opt.problems.job_placement.engine.limits import PLACEMENTS
from tests.renaming import renamed, reversing

SLOW = {
    "slow.data.every_s": "900",
    "slow.data.takes_s": "60",
    "slow.data.iterations": "3",
    "slow.servers.every_s": "700",
    "slow.servers.takes_s": "60",
}
SINGLE = "single"
"""Form of a trace whose jobs have one GPU."""
CASES: Mapping[str, tuple[str, str, dict[str, str], tuple[str, ...]]] = {
    **{name: (name, "equal", {}, ()) for name in ORDER_ONLY},
    **{name: (name, SINGLE if name == "allox" else "gangs", {}, ()) for name in ENGINE_POLICIES},
    **{f"mast {bind}": ("mast", "gangs", {"bind": bind}, ()) for bind in BINDINGS},
    **{f"mast pack {pack}": ("mast", "gangs", {"pack": pack}, ()) for pack in PACKINGS},
    **{f"mast {placement}": ("mast", "gangs", {"placement": placement}, ()) for placement in PLACEMENTS},
    "mast runner-up": ("mast", "gangs", {"runner_up": "true"}, ()),
    "mast region": ("mast", "gangs", {"scope": "region"}, ()),
    "mast data": ("mast", "gangs", SLOW, ("data",)),
    "mast servers": ("mast", "gangs", SLOW, ("servers",)),
    **{f"federated {rule}": ("federated", "gangs", {"rule": rule}, ()) for rule in RULES},
    **{
        f"gavel {objective} {aware}": (
            "gavel",
            SINGLE if objective == "allox" else "gangs",
            {"objective": objective, "aware": aware},
            (),
        )
        for objective in OBJECTIVES
        for aware in ("true", "false")
    },
    **{
        f"gavel {objective} packing": ("gavel", "pairs", {"objective": objective, "packing": "true"}, ())
        for objective in PACKING
    },
    **{
        f"{name} packing": (name, "pairs", {"packing": "true"}, ())
        for name in ("throughput", "hierarchical", "gandiva")
    },
}
"""Case → policy, form of the trace, parameters, slow paths."""


def drawn(form: str, seed: int, jobs: int = 14) -> dict[str, Any]:
    """A trace as JSON: few different amounts and times, so that there are many ties."""
    rng = np.random.default_rng(seed)
    equal, pairs = form == "equal", form == "pairs"

    def some(*choices: Any) -> Any:
        return choices[int(rng.integers(len(choices)))]

    def names(axis: str, count: int) -> list[str]:
        """Labels in an order of their own."""
        return [f"{axis}-{at}" for at in rng.permutation(count).tolist()]

    regions, types, datasets = names("region", 3), names("type", 3), names("data", 5)
    clusters = [(cluster, regions[at % 3]) for at, cluster in enumerate(names("cluster", 3 if equal else 6))]
    kind_of = {cluster: some(*types) for cluster, _ in clusters}
    servers = [
        {
            "server": name,
            "cluster": clusters[at % len(clusters)][0],
            "rack": f"rack-{at % 2}",
            "cpu_cores": 32,
            "memory_gb": 256,
            "gpu_type": types[0] if equal else some(*types, kind_of[clusters[at % len(clusters)][0]]),
            "gpus": 4 if equal else some(2, 4, 4),
        }
        for at, name in enumerate(names("server", 12))
    ]
    models = names("model", 2)
    submissions = []
    for name in names("job", jobs):
        row: dict[str, Any] = {"job": name, "submitted_s": some(0, 0, 100, 250, 600), "tier": some(0, 1, 1, 2)}
        row |= {"tasks": some(1, 1, 2), "gpus": some(1, 2, 4), "duration_s": some(300, 600, 600, 2000)}
        row |= {"home_region": some(*regions), "checkpoint_s": some(0, 100), "restart_s": some(0, 30)}
        if form == SINGLE:
            row |= {"tasks": 1, "gpus": 1}
        if pairs:
            row |= {"gpus": 1, "model": some(*models), "preemptible": "true"}
        elif not equal:
            row |= {"tenant": some("user-a", "user-b"), "namespace": some("space-a", "space-b", None)}
            row |= {"workload": some("work-a", "work-b", None), "preemptible": some("true", "true", "false")}
            if rng.random() < 0.5:
                row |= {"model": some(*models)}
            elif form != SINGLE and rng.random() < 0.3:
                row |= {"gpus": 0.5, "cpu_cores": 4, "memory_gb": 16}
        submissions.append({key: value for key, value in row.items() if value is not None})
    tables: dict[str, list[dict[str, Any]]] = {
        "regions": [{"region": region} for region in regions],
        "clusters": [{"cluster": cluster, "region": region} for cluster, region in clusters],
        "servers": servers,
        "submissions": submissions,
    }
    if not equal:
        tables["speeds"] = [
            {"model": model, "gpu_type": kind, "tasks": tasks, "steps_per_s": some(1, 2, 2)}
            for model in models
            for kind in types
            for tasks in (1, 2)
        ]
    if pairs:
        tables["pair_speeds"] = [
            {**row, "other": other, "steps_per_s": row["steps_per_s"] * some(0.6, 0.7)}
            for row in tables["speeds"]
            for other in models
        ]
    if form in ("gangs", SINGLE):
        tables["regions"] = [{"region": region, "storage_tb": 9, "ingress_tb_per_day": 200} for region in regions]
        tables["datasets"] = [{"dataset": name, "size_tb": some(1, 2), "namespace": "space-a"} for name in datasets]
        tables["replicas"] = [
            {"dataset": name, "region": region}
            for name in datasets
            for region in rng.permutation(regions)[: some(1, 2, 2)].tolist()
        ]
        tables["job_datasets"] = [
            {"job": row["job"], "dataset": name}
            for row in submissions
            if rng.random() < 0.4
            for name in rng.permutation(datasets)[: some(1, 2)].tolist()
        ]
        tables["job_gpu_types"] = [
            {"job": row["job"], "gpu_type": kind}
            for row in submissions
            if "model" not in row and rng.random() < 0.3
            for kind in rng.permutation(types)[:2].tolist()
        ]
        tables["quotas"] = [{"tenant": "user-a", "gpus": some(2, 6)}] if rng.random() < 0.5 else []
        tables["switchboards"] = [
            {"server": row["server"], "switchboard": f"board-{str(row['cluster'])[8:]}-{at % 2}"}
            for at, row in enumerate(servers)
        ]
        tables["happenings"] = [
            {"at_s": 400, "what": "server_down", "name": servers[0]["server"]},
            {"at_s": 800, "what": "server_up", "name": servers[0]["server"]},
        ]
    head = {"format": "mast-opt/1", "kind": "job-trace", "name": "drawn"}
    return {"instance": head, **{name: rows for name, rows in tables.items() if rows}}


def labels_of(content: Mapping[str, Any]) -> set[str]:
    """Every label of a trace."""
    tables = [rows for name, rows in content.items() if name != "instance"]
    words = {value for rows in tables for row in rows for value in row.values() if isinstance(value, str)}
    return words - {"true", "false", "server_down", "server_up"}


def trace_of(content: str, folder: Path) -> JobTrace:
    path = folder / "drawn.json"
    path.write_text(content)
    return read_trace(path)


def described(trace: JobTrace, case: str) -> list[str]:
    """What a run logs, its figures, and who waited longest; checksums are left out."""
    policy, _, given, slow = CASES[case]
    chosen = {name: text for name, text in given.items() if not name.startswith("slow.") or name[5:].startswith(slow)}
    run = run_trace(trace, policy, chosen, slow=slow, until_ms=40_000_000)
    log = list(run.events())
    found = [re.sub(r"checksum='[^']*'", "", repr(stored)) for stored in log]
    found += [repr(metrics(run.rows)), repr(place_metrics(log)), *map(repr, longest_waits(history(log), 20))]
    return [re.sub(r"checksum='\w+'", "", one) for one in found]


def difference(case: str, seed: int, folder: Path) -> str:
    """The first line that differs once all labels are renamed; empty where none does."""
    content = drawn(CASES[case][1], seed)
    names = reversing(labels_of(content))
    text = json.dumps(content)
    one = described(trace_of(text, folder), case)
    other = described(trace_of(renamed(text, names), folder), case)
    expected = [renamed(line, names) for line in one]
    if expected == other:
        return ""
    at = next(
        (at for at, pair in enumerate(zip(expected, other)) if pair[0] != pair[1]), min(len(expected), len(other))
    )
    return f"line {at} of {len(one)} and {len(other)}:\n  {[*expected, ''][at]}\n  {[*other, ''][at]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    parser.add_argument("--show", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for case in asked.cases:
            found = {seed: difference(case, seed, Path(folder)) for seed in range(asked.seeds)}
            bad = [seed for seed, line in found.items() if line]
            print(f"{case}: {len(bad)} of {asked.seeds} differ", bad[:5], flush=True)
            if bad and asked.show:
                print(found[bad[0]])


if __name__ == "__main__":
    main()
