"""Ablation of our own solvers: what each mechanism buys, by paired whole solves with parameters that switch it off.

    python benchmarks/ablation.py SOLVER [--variants NAME …] [--instances NAME …] [--seeds 10] [--out RUNS.jsonl]
    python benchmarks/ablation.py SOLVER --set 'no swaps: swaps=0' --path FOLDER 400 --both 'restarts=0'

Instances with their rounds, and variants with the parameters and constants that they change, are those of the solver's
table in ablation.toml; ``--set`` and ``--path`` add some of one's own, ``--both`` sets some in all runs. Every solve
has one thread and a fixed number of rounds, so that figures do not depend on how busy the machine is (processor time,
which is shown too, does). A run is a line of RUNS.jsonl, and runs that are there already are not made again. Two tables
are printed, with mean and 95% confidence interval over the pairs of same instance and seed: 100 · ln(objective /
objective with the defaults), and the bound less that with the defaults, in percent of the objective (below 0, the bound
is weaker without).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import mast_opt
from mast_opt.problems.registry import kind_of
from mast_opt.problems.search.params import Params

DEFAULTS = "defaults"
T95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13)
"""Quantiles of Student's distribution for 1, 2, … degrees of freedom; 2 for more."""

Run = dict[str, Any]


def instance(stated: dict[str, Any], solver_seed: int = 0) -> Any:
    """A generated instance, another one for each seed of the solver if ``each_seed`` is set, or that of a folder."""
    if "path" in stated:
        return mast_opt.read(stated["path"])
    seed = solver_seed + 1 if stated.get("each_seed") else stated.get("seed", 1)
    return mast_opt.generate(stated["kind"], stated["family"], seed=seed, **stated["sizes"])


def divided(holder: Any, changes: dict[str, Any]) -> tuple[dict[str, Any], list[tuple[Any, str, Any]]]:
    """Changes of parameters, and those of constants, each with the object or class that has it."""
    params: dict[str, Any] = {}
    constants: list[tuple[Any, str, Any]] = []
    for name, value in changes.items():
        if isinstance(value, dict):
            inner, more = divided(getattr(holder, name), value)
            params |= {name: inner} if inner else {}
            constants += more
        elif isinstance(holder, Params) and name in (one.name for one in fields(holder)):
            params[name] = value
        else:
            constants.append((holder if name in vars(holder) else type(holder), name, value))
    return params, constants


@contextmanager
def with_constants(constants: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """Give constants of a solver other values for a while; nothing is compiled with them."""
    before = [(holder, name, getattr(holder, name)) for holder, name, _ in constants]
    setter = object.__setattr__
    for holder, name, value in constants:
        (setattr if isinstance(holder, type) else setter)(holder, name, value)
    try:
        yield
    finally:
        for holder, name, value in before:
            (setattr if isinstance(holder, type) else setter)(holder, name, value)


def solved(problem: Any, solver: str, changes: dict[str, Any], rounds: int, seed: int) -> Run:
    """Objective (None without a plan), bound and processor seconds of one solve."""
    began = time.process_time()
    params, constants = divided(kind_of(problem).solvers.params[solver](), changes)
    with with_constants(constants):
        solution = mast_opt.solve(
            problem, solver, params=params or None, iterations=rounds, seed=seed, threads=1, gap=0.0
        )
    found = {"objective": solution.objective, "bound": solution.bound}
    return {**found, "cpu_s": round(time.process_time() - began, 3)}


def change(run: Run, whole: Run) -> float:
    """How much worse than with the defaults, in percent; infinite where there is no plan any more."""
    mine, usual = run["objective"], whole["objective"]
    if mine is None or usual is None:
        return 0.0 if mine is usual else math.copysign(math.inf, 1.0 if mine is None else -1.0)
    return 0.0 if mine == usual else 100 * math.log(max(mine, 1e-12) / max(usual, 1e-12))


def bound_change(run: Run, whole: Run) -> float | None:
    """By how much the bound is higher than with the defaults, in percent of their objective; None without either."""
    if run["bound"] is None or whole["bound"] is None or not whole["objective"]:
        return None
    return float(100 * (run["bound"] - whole["bound"]) / abs(whole["objective"]))


def interval(values: list[float]) -> str:
    """Mean ± half of the 95% confidence interval; pairs in which one side has no plan are counted apart."""
    finite = [value for value in values if math.isfinite(value)]
    lost, won = values.count(math.inf), values.count(-math.inf)
    words = "".join(f", {count} {what}" for count, what in ((lost, "lost"), (won, "won")) if count)
    if not finite:
        return words.removeprefix(", ")
    if len(finite) == 1:
        return f"{finite[0]:+.2f}{words}"
    quantile = T95[len(finite) - 2] if len(finite) - 2 < len(T95) else 2.0
    half = quantile * statistics.stdev(finite) / math.sqrt(len(finite))
    return f"{statistics.fmean(finite):+.2f} ± {half:.2f}{words}"


def table(runs: list[Run], names: list[str], changed: Callable[[Run, Run], float | None] = change) -> str:
    """A row for each variant, a column for each instance, all of them together, and processor time; ``changed``
    compares a run with that of the defaults."""
    by_key = {(run["instance"], run["rounds"], run["seed"], run["variant"]): run for run in runs}
    pairs: dict[tuple[str, str], list[float]] = defaultdict(list)
    time_of: dict[str, list[float]] = defaultdict(list)
    for (name, rounds, seed, variant), run in by_key.items():
        whole = by_key.get((name, rounds, seed, DEFAULTS))
        if whole is not None and variant != DEFAULTS:
            value = changed(run, whole)
            pairs[variant, name] += [] if value is None else [value]
            time_of[variant].append(math.log(max(run["cpu_s"], 1e-3) / max(whole["cpu_s"], 1e-3)))
    heads = ["variant", *names, "all", "processor time"]
    text = ["| " + " | ".join(heads) + " |", "| ---" + " | ---:" * (len(heads) - 1) + " |"]
    for variant, ratios in time_of.items():
        every = [value for name in names for value in pairs[variant, name]]
        cells = [interval(values) if (values := pairs[variant, name]) else "" for name in names]
        percent = 100 * (math.exp(statistics.fmean(ratios)) - 1)
        text.append(f"| {variant} | " + " | ".join([*cells, interval(every), f"{percent:+.0f}%"]) + " |")
    return "\n".join(text)


def stated_variant(text: str) -> tuple[str, dict[str, Any]]:
    """Of ``NAME: PARAM=VALUE PARAM=VALUE``, with values as in TOML."""
    name, _, changes = text.partition(":")
    return name.strip(), tomllib.loads("\n".join(changes.split()))


def merged(common: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Parameters of both nested mappings; ``own`` ones win."""
    inner = {key: merged(common[key], value) for key, value in own.items() if isinstance(value, dict) and key in common}
    return {**common, **own, **inner}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("solver")
    parser.add_argument("--variants", nargs="*", help="all of the solver's table unless given")
    parser.add_argument("--instances", nargs="*", help="likewise")
    parser.add_argument("--set", nargs="*", default=[], metavar="NAME: PARAM=VALUE", help="further variants")
    parser.add_argument("--both", default="", metavar="PARAM=VALUE", help="parameters of all runs, the defaults' too")
    parser.add_argument("--path", nargs=2, action="append", default=[], metavar=("FOLDER", "ROUNDS"))
    parser.add_argument("--rounds", type=int, help="in place of those of the table")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out", type=Path, default=Path("out/ablation.jsonl"))
    chosen = parser.parse_args()
    stated = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).get(chosen.solver, {})
    variants = {n: v for n, v in stated.get("variants", {}).items() if chosen.variants is None or n in chosen.variants}
    variants = {DEFAULTS: {}, **variants, **dict(map(stated_variant, chosen.set))}
    common = stated_variant(f":{chosen.both}")[1]
    variants = {name: merged(common, changes) for name, changes in variants.items()}
    some = stated.get("instances", {}).items()
    instances = {n: one for n, one in some if chosen.instances is None or n in chosen.instances}
    if chosen.rounds is not None:
        instances = {name: {**one, "rounds": chosen.rounds} for name, one in instances.items()}
    instances |= {Path(folder).name: {"path": folder, "rounds": int(rounds)} for folder, rounds in chosen.path}
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    lines = chosen.out.read_text(encoding="utf-8").splitlines() if chosen.out.exists() else []
    runs: list[Run] = [run for run in map(json.loads, lines) if run["solver"] == chosen.solver]
    keys = ("instance", "rounds", "seed", "variant", "params")
    done = [[run[key] for key in keys] for run in runs]
    mast_opt.warm_up(*{kind_of(instance(one)).name for one in instances.values()})
    for seed in range(chosen.seeds):
        for name, one in instances.items():
            problem = None
            for variant, params in variants.items():
                if [name, one["rounds"], seed, variant, params] in done:
                    continue
                problem = instance(one, seed) if problem is None else problem
                run = {
                    "solver": chosen.solver,
                    **dict(zip(keys, (name, one["rounds"], seed, variant, params), strict=True)),
                }
                runs.append(run | solved(problem, chosen.solver, params, one["rounds"], seed))
                with chosen.out.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(runs[-1]) + "\n")
    shown = [run for run in runs if run["params"] == variants.get(run["variant"])]
    print(table(shown, list(instances)), "\nBounds:\n", table(shown, list(instances), bound_change), sep="\n")


if __name__ == "__main__":
    main()
