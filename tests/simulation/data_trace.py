"""A small trace whose data is in one region at first: regions, datasets, network and jobs, made from a seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

HEADER = """format = "mast-opt/1"
kind = "job-trace"
name = "data-in-one-region"
provenance = "drawn by tests/simulation/data_trace.py"
"""
COMMITTED = Path(__file__).parents[2] / "instances" / "traces" / "data-in-one-region"
REGIONS = ("east", "north", "west")
HOUR_S = 3600


def write_data_trace(folder: Path, seed: int = 0, *, days: int = 4, jobs: int = 70, ingress_tb: int = 4) -> Path:
    """Three regions of 4 × 8 GPUs with two clusters each; all data appears in east, which cannot run all the work."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    datasets = [(f"{space}-{n}", space) for space in ("ads", "search") for n in range(3)]
    servers = [
        (f"{region}-{n}", f"{region}-{'ab'[n // 2]}", f"r{n % 2}", f"{region}-msb{n % 2}")
        for region in REGIONS
        for n in range(4)
    ]
    submitted = np.sort(rng.integers(0, days * 24 * HOUR_S, jobs))
    rows, read = [], []
    for number, at in enumerate(submitted.tolist()):
        space = str(rng.choice(["ads", "search"]))
        hours = int(rng.integers(8, 30))
        gpus = int(rng.choice([2, 4, 8]))
        rows.append(f"job-{number},{at},{number % 3},1,{gpus},{hours * HOUR_S},{space},east,true")
        read += [f"job-{number},{space}-{n}" for n in sorted(rng.choice(3, int(rng.integers(1, 3)), replace=False))]
    tables = {
        "regions": ["region,storage_tb,ingress_tb_per_day", *(f"{region},40,{ingress_tb}" for region in REGIONS)],
        "clusters": ["cluster,region", *(f"{region}-{half},{region}" for region in REGIONS for half in "ab")],
        "servers": [
            "server,cluster,rack,gpu_type,gpus,cpu_cores,memory_gb",
            *(f"{name},{cluster},{rack},h100,8,64,512" for name, cluster, rack, _ in servers),
        ],
        "switchboards": ["server,switchboard", *(f"{name},{board}" for name, _, _, board in servers)],
        "submissions": [
            "job,submitted_s,tier,tasks,gpus,duration_s,namespace,home_region,preemptible",
            *rows,
        ],
        "job_datasets": ["job,dataset", *read],
        "datasets": ["dataset,size_tb,namespace", *(f"{name},2,{space}" for name, space in datasets)],
        "replicas": ["dataset,region", *(f"{name},east" for name, _ in datasets)],
    }
    (folder / "instance.toml").write_text(HEADER)
    for name, lines in tables.items():
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    return folder
