"""Instances of family ``standard`` for the studies that go over seeds of one size."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import mast_opt
from mast_opt.problems.data_placement import DataPlacement


def asked(about: str | None, seeds: int, seconds: float) -> argparse.Namespace:
    """The command line: a size, how many seeds, how many seconds; with these numbers where it says nothing."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("datasets", 50), ("workloads", 80), ("regions", 6), ("seeds", seeds)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--seconds", type=float, default=seconds)
    return parser.parse_args()


def instances(options: argparse.Namespace) -> Iterator[tuple[int, DataPlacement]]:
    """(seed, instance), one after another."""
    sizes = {"datasets": options.datasets, "workloads": options.workloads, "regions": options.regions}
    for seed in range(1, options.seeds + 1):
        yield seed, mast_opt.generate("data-placement", "standard", seed=seed, **sizes)
