"""A search for rules of placement, trained on six of FGD's pod lists and tested on the other seven.

    python -m benchmarks.rule_search FOLDER                # the table of all rules
    nice python -m benchmarks.rule_search FOLDER --search  # the search that found the last of them

FOLDER is as in ``benchmarks.fgd``. The search is genetic programming over ``rule_scores.FEATURES``: fleets of an
eighth of the servers and one order of the pods of each training list; the three best of them are compared on the whole
fleet, also on training lists only, with other orders than the test.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.fgd import NODES, Row, arrivals, models, published, rows
from benchmarks.rule_scores import (
    BINARY,
    FEATURES,
    MOST,
    RULES,
    UNARY,
    Fleet,
    Ints,
    Rule,
    allocated,
    arity,
    few_arrivals,
    fleet_of,
    operations,
    queue_of,
    sums,
    written,
)

LISTS = ["cpu050", "cpu100", "cpu200", "default", "gpushare40", "gpushare60", "gpushare80", "gpuspec20", "gpuspec25"]
LISTS += ["gpuspec33", "multigpu20", "multigpu30", "multigpu40"]
TRAINING, TEST = LISTS[1::2], LISTS[::2]
STEP = 8
"""The search has every eighth server."""
HOPELESS = 1.0
"""Points below the worst parent, over the first lists, at which a rule is given up."""
TRAINING_SEED, WHOLE_SEED, FIRST_SEED = 1, 2, 42
"""Of the orders of pods: of the search, of the three best on whole fleets, the first of the table."""
PARENTS, CHILDREN, BEST = 24, 24, 3
PER_OPERATION = 0.003
"""Points that an operation must gain."""
FOUND: Rule = (
    "waste_left",
    0.23185255475313737,
    "min",
    "room",
    "fill",
    "min",
    "asked",
    "/",
    "min",
    18.30864279644517,
    "type_share",
    "max",
    "waste_left",
    "waste_left",
    "-",
    "-",
    "fill",
    "-",
    "-",
)
"""What the search found."""
Case = tuple[Fleet, Ints]


def case(folder: Path, pod_list: str, step: int, order: Callable[[list[Row], int], list[Row]]) -> Case:
    """Every ``step``-th server and the pods that come."""
    nodes, pods = rows(folder / NODES)[::step], rows(next(folder.glob(f"openb_pod_list_{pod_list}.csv*")))
    fleet, kinds = fleet_of(nodes, pods)
    queue = order(pods, 1000 * sum(int(node["gpu"]) for node in nodes))
    return fleet, queue_of(queue, kinds, models(nodes))


def small_cases(folder: Path, step: int, seed: int) -> list[Case]:
    return [case(folder, name, step, partial(few_arrivals, seed=seed)) for name in TRAINING]


def whole_cases(folder: Path, pod_list: str, seeds: range) -> list[Case]:
    return [case(folder, pod_list, 1, partial(arrivals, seed=seed)) for seed in seeds]


def mean(cases: list[Case], rule: Rule) -> float:
    return statistics.fmean(allocated(fleet, queue, rule) for fleet, queue in cases)


def leaf(rng: random.Random) -> str | float:
    return rng.choice(FEATURES) if rng.random() < 0.75 else 10 ** rng.uniform(-2, 1.5)


def tree(rng: random.Random, depth: int) -> Rule:
    if depth == 0 or rng.random() < 0.2:
        return (leaf(rng),)
    if rng.random() < 0.15:
        return (*tree(rng, depth - 1), rng.choice(UNARY))
    return (*tree(rng, depth - 1), *tree(rng, depth - 1), rng.choice(BINARY))


def start_of(rule: Rule, end: int) -> int:
    """Where the part of a program begins that ends there."""
    missing, at = 1, end
    while True:
        missing += arity(rule[at]) - 1
        if missing == 0:
            return at
        at -= 1


def part(rule: Rule, rng: random.Random) -> tuple[int, int]:
    end = rng.randrange(len(rule))
    return start_of(rule, end), end + 1


def changed(rule: Rule, other: Rule, rng: random.Random) -> Rule:
    """The rule after one random change, perhaps with a part of another."""
    start, end = part(rule, rng)
    at, draw = rng.randrange(len(rule)), rng.random()
    word = rule[at]
    if draw < 0.35:
        if isinstance(word, float):
            new: str | float = word * math.exp(rng.gauss(0, 0.7))
        else:
            new = rng.choice((leaf(rng),) if arity(word) == 0 else BINARY if arity(word) == 2 else UNARY)
        return (*rule[:at], new, *rule[at + 1 :])
    if draw < 0.6:
        term: Rule = (10 ** rng.uniform(-2, 1), rng.choice(FEATURES), "*")
        return (*rule[:start], *rule[start:end], *term, rng.choice("+-"), *rule[end:])
    if draw < 0.75:
        return (*rule[:start], *tree(rng, 2), *rule[end:])
    if draw < 0.85:
        return rule[start:end]
    first, last = part(other, rng)
    return (*rule[:start], *other[first:last], *rule[end:])


def search(
    cases: list[Case], generations: int, seed: int, report: Callable[[int, list[Rule], float], None]
) -> list[Rule]:
    """The best rules for the cases, best first, no two of which do equally well."""
    rng = random.Random(seed)
    known: dict[Rule, float] = {}
    least = [0.0] * len(cases)

    def worth(rule: Rule) -> float:
        if rule not in known:
            values: list[float] = []
            for fleet, queue in cases:
                values.append(allocated(fleet, queue, rule))
                if statistics.fmean(values) < least[len(values) - 1] - HOPELESS:
                    break
            hopeless = len(values) < len(cases)
            known[rule] = 0.0 if hopeless else statistics.fmean(values) - PER_OPERATION * operations(rule)
        return known[rule]

    def distinct(rules: list[Rule]) -> list[Rule]:
        best: dict[float, Rule] = {}
        for rule in rules:
            best.setdefault(round(worth(rule), 2), rule)
        return [best[key] for key in sorted(best, reverse=True)]

    people: list[Rule] = [*RULES.values(), ("waste",), ("fill",), ("room",)]
    people += [
        sums(("waste", "neg", "percent", "neg"), (weight, other, "*"))
        for weight, other in ((0.1, "fill"), (1.0, "room"), (1.0, "gpu_left"), (1.0, "cpu_left"), (1.0, "whole_left"))
    ]
    people += [tree(rng, 3) for _ in range(PARENTS)]
    people = distinct([rule for rule in people if operations(rule) <= MOST])[:PARENTS]
    for generation in range(generations):
        worst = [allocated(fleet, queue, people[-1]) for fleet, queue in cases]
        least = [statistics.fmean(worst[: n + 1]) for n in range(len(cases))]
        children: list[Rule] = []
        while len(children) < CHILDREN:
            parent, other = (people[min(rng.randrange(len(people)) for _ in range(2))] for _ in range(2))
            child = changed(parent, other, rng)
            if operations(child) <= MOST and child not in known:
                children.append(child)
        people = distinct([*people, *children])[:PARENTS]
        report(generation + 1, people, worth(people[0]))
    return people


def table(folder: Path, rules: dict[str, Rule], seeds: int) -> str:
    """One row a list, training lists first, with the mean of each part; last, with several orders, the standard
    deviation between them, in the mean over the lists."""
    lines, spreads = [], []
    for title, names in (("training", TRAINING), ("test", TEST)):
        figures = []
        for name in names:
            cases = whole_cases(folder, name, range(FIRST_SEED, FIRST_SEED + seeds))
            each = [[allocated(fleet, queue, rule) for fleet, queue in cases] for rule in rules.values()]
            figures.append([published(name)["fgd"], *map(statistics.fmean, each)])
            spreads.append([statistics.stdev(values) if seeds > 1 else 0.0 for values in each])
            lines.append(f"| {name} | " + " | ".join(f"{value:.2f}" for value in figures[-1]) + " |")
            print(lines[-1], file=sys.stderr, flush=True)
        lines.append(f"| mean, {title} | " + " | ".join(f"{statistics.fmean(c):.2f}" for c in zip(*figures)) + " |")
    if seeds > 1:
        lines.append("| deviation | | " + " | ".join(f"{statistics.fmean(c):.2f}" for c in zip(*spreads)) + " |")
    head = ["| pod list | FGD, published | " + " | ".join(rules) + " |", "| --- |" + " --: |" * (len(rules) + 1)]
    return "\n".join([*head, *lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--search", action="store_true", help="search, and print the best rule as a program")
    parser.add_argument("--generations", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1, help="of the search")
    parser.add_argument("--seeds", type=int, default=1, help="orders of each list in the table")
    given = parser.parse_args()
    if not given.search:
        print(table(given.folder, RULES | {"found": FOUND}, given.seeds))
        return

    def report(generation: int, people: list[Rule], worth: float) -> None:
        print(generation, f"{worth:.3f}", written(people[0]), file=sys.stderr, flush=True)

    people = search(small_cases(given.folder, STEP, TRAINING_SEED), given.generations, given.seed, report)[:BEST]
    whole = [at for name in TRAINING for at in whole_cases(given.folder, name, range(WHOLE_SEED, WHOLE_SEED + 1))]
    scores = {rule: mean(whole, rule) for rule in people}
    for rule, score in scores.items():
        print(f"{score:.3f}", written(rule), file=sys.stderr)
    print(json.dumps(max(scores, key=scores.__getitem__)))


if __name__ == "__main__":
    main()
