"""Commands on instances with all labels renamed and rows in their order: what they print and draw is the same.

python -m tests.renamed_commands --seeds 10
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import io
import json
import os
import random
import re
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import mast_opt
from mast_opt.cli import main as command
from mast_opt.problems import registry
from mast_opt.problems.kind.problem import Problem
from tests.every_call import GIVEN
from tests.renaming import renamed

COMMITTED = Path(__file__).parents[1] / "instances"
TEMPLATE = "template"
WIDE = "300"
"""Columns of the terminal; times would fold lines elsewhere."""
SCENARIOS = """[[scenario]]
name = "growth"
grow_demand = { all = 1.25 }
[[scenario]]
name = "room"
days = 3
"""
PERIODS = """[[period]]
name = "now"
grow_demand = { all = 1.1 }
[[period]]
name = "next"
grow_demand = { all = 1.2 }
"""
VARIES = re.compile(
    r"\b\d[\d,.]* ?m?s\b|(?<=time)\s+[\d.]+|(?:after|in) [\d.]+ s|x[0-9a-f]{10}-clip\d+|sha256:\w+|\b[0-9a-f]{12,}\b"
)
"""Times, checksums, and numbers of clips in a picture."""


def sources(kind: str, seed: int) -> Iterator[tuple[str, Problem[Any]]]:
    """Instances of a kind by name: generated, the template's, committed small ones."""
    family, sizes = GIVEN[kind]
    yield f"{kind} {family} {seed}", mast_opt.generate(kind, family, seed=seed, **sizes)
    if seed:
        return
    with tempfile.TemporaryDirectory() as folder:
        mast_opt.write_template(kind, Path(folder) / "template.xlsx")
        yield f"{kind} {TEMPLATE}", mast_opt.read(Path(folder) / "template.xlsx")
    for path in sorted((COMMITTED / kind.replace("-", "_")).iterdir()):
        found = path.suffix == ".json" or (path / "instance.toml").exists()
        if found and sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else [path])) < 20_000:
            yield f"{kind} {path.name}", mast_opt.read(path)


def as_text(problem: Problem[Any], folder: Path, *, coarse: bool) -> str:
    """The instance as JSON; ``coarse``: amounts with one digit, so that there are many ties."""
    path = folder / "given.json"
    mast_opt.write(problem, path, force=True)
    content = json.loads(path.read_text())
    if coarse:
        for name, rows in content.items():
            for row in rows if name != "instance" else ():
                row |= {key: float(f"{value:.1g}") for key, value in row.items() if isinstance(value, float)}
    return json.dumps(content, indent=1)


def labels_of(problem: Problem[Any], folder: Path) -> set[str]:
    content = json.loads(as_text(problem, folder, coarse=False))
    columns = {
        (table.name, column.name)
        for table in registry.kind_of(problem).tables.schema.tables
        for column in table.columns
        if column.axis
    }
    labels = {row[column] for table, column in columns for row in content.get(table, ()) if row.get(column)}
    return {label for label in labels if re.search(r"[A-Za-z]", label)} - {"none", "any"}


def solvers_of(kind: str) -> dict[str, bool]:
    """Heuristics of a kind, and whether they go on to improve a plan."""
    solvers = registry.kind_named(kind).solvers
    return {name: not solvers.is_constructive(name) for name in solvers.heuristics}


def two_namings(names: Collection[str], seed: int) -> tuple[dict[str, str], dict[str, str]]:
    """Labels of one width in a random order, by old labels; and in the opposite order, by the first ones."""
    order = list(range(len(names)))
    random.Random(seed).shuffle(order)
    words = [f"w{at:04d}w" for at in range(len(names))]
    one = {old: words[at] for old, at in zip(sorted(names), order, strict=True)}
    return one, dict(zip(words, reversed(words), strict=True))


def answers(text: str, solvers: Mapping[str, bool], folder: Path) -> dict[str, list[str]]:
    """What each command ends with and prints."""
    folder.mkdir()
    instance, plan = folder / "instance.json", folder / "plan"
    instance.write_text(text)
    (folder / "scenarios.toml").write_text(SCENARIOS)
    (folder / "periods.toml").write_text(PERIODS)
    calls: list[tuple[object, ...]] = [("validate", instance)]
    limits = ("--iterations", 10, "--seed", 1)
    calls += [("solve", instance, "--solver", solver, *limits[: 4 * improves]) for solver, improves in solvers.items()]
    calls += [
        ("solve", instance, "--solver", "highs", "--out", plan),
        ("verify", instance, plan),
        ("diff", instance, plan, "--worth"),
        ("steps", instance, plan),
        ("explain", instance),
        ("explain", instance, "--plan", plan),
        ("marginal", instance, "--plan", plan),
        ("buy", instance, "--target", 0.4),
        ("buy", instance),
        ("whatif", instance, "--scenarios", folder / "scenarios.toml", "--plan", plan),
        ("periods", instance, "--periods", folder / "periods.toml"),
        ("pareto", instance, "--terms", "storage,peak", "--points", 3),
        ("report", instance, plan, "--out", folder / "report.html"),
        ("export", instance, folder / "data.dat"),
    ]
    found = {}
    for call in calls:
        key = " ".join(map(str, call)).replace(str(folder), "")
        if call[0] == "report":  # which draws how a solve went in time
            (plan / "events.jsonl").unlink(missing_ok=True)
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = command([*map(str, call)])
        found[key] = lines(f"{int(code)}\n{out.getvalue()}", folder)
    for name in ("report.html", "data.dat"):
        if (folder / name).exists():
            found[name] = lines((folder / name).read_text(), folder)
    return found


def lines(text: str, folder: Path) -> list[str]:
    kept = [line for line in text.replace(str(folder), "DIR").splitlines() if not line.startswith("compiling for")]
    return [re.sub(r"\s+", " ", VARIES.sub("…", line)).strip() for line in kept]


def differences(
    problem: Problem[Any], seed: int, *, coarse: bool, solvers: Mapping[str, bool]
) -> tuple[int, dict[str, str]]:
    """The number of calls, and the calls of which something differs once all labels are renamed."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        there, back = two_namings(labels_of(problem, folder), seed)
        first = renamed(as_text(problem, folder, coarse=coarse), there)
        one = answers(first, solvers, folder / "one")
        other = answers(renamed(first, back), solvers, folder / "two")
    found = {}
    for key, said in one.items():
        expected, seen = [renamed(line, back) for line in said], other.get(key, [])
        if expected != seen:
            found[key] = "\n".join(list(difflib.unified_diff(expected, seen, lineterm="", n=0))[2:12])
    return len(one), found


def main() -> None:
    os.environ["COLUMNS"] = WIDE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kinds", nargs="*", default=list(GIVEN))
    asked = parser.parse_args()
    calls = bad = 0
    for kind in asked.kinds:
        for seed in range(asked.seeds):
            for name, problem in sources(kind, seed):
                for coarse in (False, True):
                    count, found = differences(problem, seed, coarse=coarse, solvers=solvers_of(kind))
                    calls, bad = calls + count, bad + len(found)
                    print(f"{name}{' coarse' * coarse}: {len(found)} of {count} differ", flush=True)
                    for key, words in found.items():
                        print(f"  {key}\n    " + words.replace("\n", "\n    ")[:1200], flush=True)
    print(f"{bad} of {calls} calls differ")


if __name__ == "__main__":
    main()
