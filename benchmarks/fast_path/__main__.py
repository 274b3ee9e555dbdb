"""Run what is missing of the study, then write its page."""

from __future__ import annotations

import argparse
from pathlib import Path

import benchmarks.fast_path
from benchmarks.fast_path.page import write_page
from benchmarks.fast_path.real import RealRecords, real_study
from benchmarks.fast_path.runs import Records, study


def main() -> None:
    parser = argparse.ArgumentParser(
        description=benchmarks.fast_path.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=Path("benchmarks/fast_path/records.jsonl"))
    parser.add_argument("--page", type=Path, default=Path("docs/benchmarks/fast-path.md"))
    parser.add_argument("--real-results", type=Path, default=Path("benchmarks/fast_path/real.jsonl"))
    parser.add_argument("--data", type=Path, help="folder with real data; without it, no new real batch is solved")
    asked = parser.parse_args()
    records, real = Records(asked.results), RealRecords(asked.real_results)
    study(records)
    if asked.data is not None:
        real_study(real, asked.data)
    write_page(records, real, asked.page)


if __name__ == "__main__":
    main()
