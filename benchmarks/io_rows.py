"""Rows per second of reading, checking and building an instance, from CSV and from Parquet.

    python benchmarks/io_rows.py [--rows 1000000]

Makes a data-placement instance with that many datasets and as many reads in a temporary folder, reads it in either
format (best of three, so that the disk's cache is warm), and prints seconds and rows per second.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

from mast_opt.planner.io import validate

HEADER = 'format = "mast-opt/1"\nkind = "data-placement"\nname = "rows"\n'
REGIONS = 20


def make_tables(rows: int, rng: np.random.Generator) -> dict[str, pl.DataFrame]:
    """Tables of an instance with ``rows`` datasets, each read once, and a tenth as many workloads."""
    regions = pl.Series([f"region-{r:02}" for r in range(REGIONS)])
    datasets = pl.Series(np.arange(rows)).cast(pl.String).str.pad_start(8, "0").str.replace("^", "dataset-")
    workloads = datasets.head(max(rows // 10, 1)).str.replace("dataset", "workload")
    readers = workloads.gather(rng.integers(len(workloads), size=rows))
    amount = pl.Series(rng.lognormal(0, 1.4, rows)).round(4)
    return {
        "regions": pl.DataFrame({"region": regions, "storage_tb": 10.0 * rows / REGIONS, "cpu_cores": 1e6}),
        "gpu_supply": pl.DataFrame({"region": regions, "gpu_type": "H100", "gpus": 1000}),
        "datasets": pl.DataFrame({"dataset": datasets, "size_tb": amount, "copies_min": 1}),
        "replicas": pl.DataFrame({"dataset": datasets, "region": regions.gather(rng.integers(REGIONS, size=rows))}),
        "workloads": pl.DataFrame({"workload": workloads, "tier": 0, "cpu_cores": 1.5}),
        "gpu_demand": pl.DataFrame({"workload": workloads, "gpu_type": "H100", "gpus": 1}),
        "reads": pl.DataFrame({"workload": readers, "dataset": datasets.shuffle(1), "tb_per_day": amount}),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="datasets, and reads")
    tables = make_tables(parser.parse_args().rows, np.random.default_rng(0))
    total = sum(frame.height for frame in tables.values())
    print(f"{total:,} rows in {len(tables)} tables")
    with tempfile.TemporaryDirectory() as parent:
        for format in ("csv", "parquet"):
            folder = Path(parent) / format
            folder.mkdir()
            (folder / "instance.toml").write_text(HEADER)
            for name, frame in tables.items():
                write = frame.write_csv if format == "csv" else frame.write_parquet
                write(folder / f"{name}.{format}")
            seconds = min(validate(folder).seconds for _ in range(3))
            print(f"{format:8} {seconds:6.2f} s {total / seconds:12,.0f} rows/s")


if __name__ == "__main__":
    main()
