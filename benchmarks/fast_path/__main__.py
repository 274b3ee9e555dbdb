"""Run what is missing of the study, then write its page."""

from __future__ import annotations

import argparse
from pathlib import Path

import benchmarks.fast_path
from benchmarks.fast_path.page import write_page
from benchmarks.fast_path.runs import Records, study


def main() -> None:
    parser = argparse.ArgumentParser(
        description=benchmarks.fast_path.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--results", type=Path, default=Path("benchmarks/fast_path/records.jsonl"))
    parser.add_argument("--page", type=Path, default=Path("docs/benchmarks/fast-path.md"))
    asked = parser.parse_args()
    records = Records(asked.results)
    study(records)
    write_page(records, asked.page)


if __name__ == "__main__":
    main()
