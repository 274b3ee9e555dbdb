"""Targets of the fuzzer: benchmark suites and results."""

from __future__ import annotations

import shutil
from pathlib import Path

import mast_opt
from mast_opt.planner.bench.results.store import latest, load
from mast_opt.planner.bench.suites.toml_reader import read_suite as suite_in
from mast_opt.planner.bench.suites.toml_reader import suite_path
from tests.fuzz.common import generated, texts
from tests.importers import test_gap

RESULTS = Path(__file__).parents[2] / "benchmarks/results/model-building.jsonl"


SUITE = """
title = "all that a suite may say"
about = "x"
solvers = ["highs", "quick"]
time_limits_s = [1, 2.5]
seeds = [0, 1]
threads = 1
gap = 1e-4
plots = ["profile"]

[contestants.quick]
solver = "tetris"
iterations = 10
threads = 2

[contestants.stranger]
peer = "peer.py"

[[entry]]
name = "stored"
instances = ["i.json"]

[[entry]]
name = "made"
kind = "data-placement"
family = "standard"
sizes = { datasets = 5, workloads = 6, regions = 2 }
instance_seeds = [0, 3]
solvers = ["quick", "stranger"]

[[entry]]
name = "public"
importer = "gap"
data = ["*.gap", ["a.gap"]]
settings = { name = "x" }
solvers = ["highs"]

[[entry]]
name = "program"
program = "peer.py"
arguments = { a = 1, b = "c" }

[reference]
file = "values.csv"
column = "instance"
best = "best"
bound = "lower"

[[known_issue]]
words = "slow"
contestant = "quick"
entry = "made"
"""


def make_suite(folder: Path) -> None:
    values = "instance,best,lower\na,1.5,1\nb,2,\n"
    texts(folder, {"s.toml": SUITE, "peer.py": "", "values.csv": values, "a.gap": test_gap.HAND})
    mast_opt.write(generated("data-placement"), folder / "i.json", "json")


def read_suite(folder: Path) -> None:
    suite_in(suite_path(str(folder / "s.toml")), folder)


def make_results(folder: Path) -> None:
    shutil.copy(RESULTS, folder / "r.jsonl")


def read_results(folder: Path) -> None:
    latest(load(folder / "r.jsonl"))
