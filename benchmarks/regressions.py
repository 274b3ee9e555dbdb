"""Whether new results are worse than committed ones, beyond what the seeds of the committed ones spread.

    python benchmarks/regressions.py benchmarks/results/small.jsonl out/bench/small.jsonl

Two runs are compared if instance, contestant and time limit agree. The committed objectives of all seeds span a range.
A new objective is a regression if it is above that range by more than ``--margin`` (relative), and so are a bound that
is as far below its range and a run without a plan where every committed one has a plan; where more is better, it is the
other way round. Exit code 1 if there are any.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from mast_opt.core.sense import Sense
from mast_opt.planner.bench.results.metrics import bound, contestant, feasible, instance, objective, sense
from mast_opt.planner.bench.results.store import Result, load

Key = tuple[object, ...]


def by_run(results: Iterable[Result]) -> dict[Key, list[Result]]:
    """The results of each instance, contestant and time limit."""
    groups: dict[Key, list[Result]] = defaultdict(list)
    for result in results:
        groups[(result["entry"], instance(result), contestant(result), result["time_limit_s"])].append(result)
    return groups


def regressions(before: Sequence[Result], after: Sequence[Result], margin: float) -> list[str]:
    """A line for each new run that is worse than the range of the committed ones."""
    known, lines = by_run(before), []
    for key, results in by_run(after).items():
        old = known.get(key, [])
        objectives = [value for one in old if (value := objective(one)) is not None]
        bounds = [value for one in old if (value := bound(one)) is not None]
        for result in results:
            where = f"{result['entry']}, {result['instance']}, {contestant(result)}, seed {result['seed']}"
            found, proven, of = objective(result), bound(result), sense(result)
            worst = of.opposite.best(*objectives) if objectives else 0.0
            loosest = of.best(*bounds) if bounds else 0.0
            least = of is Sense.MIN
            if old and all(map(feasible, old)) and not feasible(result):
                lines.append(f"{where}: no plan ({result['status']}); every earlier run has one")
            elif objectives and found is not None and of.minimised(found - worst) > margin * abs(worst):
                lines.append(f"{where}: objective {found:.6g}; at {'most' if least else 'least'} {worst:.6g} before")
            elif bounds and proven is not None and of.minimised(loosest - proven) > margin * abs(loosest):
                lines.append(f"{where}: bound {proven:.6g}; at {'least' if least else 'most'} {loosest:.6g} before")
    return lines


def main() -> int:
    """Print the regressions and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="committed results")
    parser.add_argument("after", type=Path, help="new results")
    parser.add_argument("--margin", type=float, default=0.02, help="relative change that counts as noise")
    options = parser.parse_args()
    before, after = load(options.before), load(options.after)
    lines = regressions(before, after, options.margin)
    shared = by_run(before).keys() & by_run(after).keys()
    if not shared:
        print("the two files have no run in common")
        return 1
    print(*lines, sep="\n")
    print(f"{len(lines)} regressions in {len(shared)} comparable rows")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
