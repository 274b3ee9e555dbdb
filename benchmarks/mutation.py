"""Mutation testing: random small changes of the code, and whether the tests notice them.

    python benchmarks/mutation.py --mutants 20 --seed 1 --tests tests/task_reassignment/verification/test_verifier.py \
        -- mast_opt/problems/task_reassignment/verification/verifier.py

draws random mutants of the modules, runs the tests on a copy of the repository with one mutant at a time, and lists the
survivors: each needs a test, or an argument why it changes nothing that a test could see. Such arguments are in
``mutation-arguments.toml``; the mutants that it lists are not drawn. Docstrings, annotations and ``strict=`` are not
mutated.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
ARGUMENTS = Path(__file__).with_name("mutation-arguments.toml")
COPIED = ("mast_opt", "tests", "pyproject.toml")
LINKED = ("models", "instances", "docs", "benchmarks", "README.md", "CHANGELOG.md", "make.py")
PYTEST = ("-m", "pytest", "-p", "tests.tiers", "-p", "no:cacheprovider", "-x", "-q", "-n", "0")
"""Arguments of Python that run tests in a copy, one after another, up to the first failure."""

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
NAMES = {"minimum": "maximum", "maximum": "minimum", "min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True)
class Mutant:
    """One change of one module."""

    module: Path
    line: int
    words: str
    position: int
    """Of the node among those of ``sites``."""
    number: int
    """Of the change among those of the node."""

    def source(self) -> str:
        """The module's code with the change."""
        tree = ast.parse(self.module.read_text(encoding="utf-8"))
        node = next(node for at, node in enumerate(sites(tree)) if at == self.position)
        list(changes(node))[self.number][1]()
        return ast.unparse(ast.fix_missing_locations(tree))

    @property
    def name(self) -> str:
        """The module relative to the repository."""
        return self.module.relative_to(ROOT).as_posix()


def changes(node: ast.AST) -> Iterator[tuple[str, Callable[[], None]]]:
    """What can be changed at a node, in words, and how."""
    if isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            for other in COMPARISONS[type(op)]:
                yield f"{type(op).__name__} → {other.__name__}", partial(node.ops.__setitem__, at, other())
    elif isinstance(node, ast.BoolOp):
        swapped: ast.boolop = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield f"{type(node.op).__name__} → {type(swapped).__name__}", partial(setattr, node, "op", swapped)
    elif isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in OPERATORS:
        operator = OPERATORS[type(node.op)]
        yield f"{type(node.op).__name__} → {operator.__name__}", partial(setattr, node, "op", operator())
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.Invert | ast.USub):
        yield f"without {type(node.op).__name__}", partial(setattr, node, "op", ast.UAdd())
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield f"{node.value} → {not node.value}", partial(setattr, node, "value", not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int):
        for value in (node.value + 1, node.value - 1):
            yield f"{node.value} → {value}", partial(setattr, node, "value", value)
    elif isinstance(node, ast.Attribute | ast.Name):
        field = "attr" if isinstance(node, ast.Attribute) else "id"
        name = getattr(node, field)
        if name in NAMES:
            yield f"{name} → {NAMES[name]}", partial(setattr, node, field, NAMES[name])
    if isinstance(body := getattr(node, "body", None), list):
        for at, statement in enumerate(body):
            call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
            stored = isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript)
            if call or stored or isinstance(statement, ast.AugAssign | ast.Continue | ast.Break):
                yield f"without: {ast.unparse(statement)[:80]}", partial(body.__setitem__, at, ast.Pass())


def sites(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes that run: no annotations, and no ``strict=``, which only checks what is true anyway."""
    for name, value in ast.iter_fields(tree):
        if name in ("annotation", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not (isinstance(child, ast.keyword) and child.arg == "strict"):
                yield child
                yield from sites(child)


def mutants(module: Path) -> list[Mutant]:
    """Every mutant of a module."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    return [
        Mutant(module, getattr(node, "lineno", 0), words, position, number)
        for position, node in enumerate(sites(tree))
        for number, (words, _) in enumerate(changes(node))
    ]


def arguments() -> list[dict[str, str]]:
    """What ``mutation-arguments.toml`` lists."""
    listed: list[dict[str, str]] = tomllib.loads(ARGUMENTS.read_text(encoding="utf-8"))["mutant"]
    return listed


def covers(argument: dict[str, str], mutant: Mutant, lines: list[str]) -> bool:
    """Is the argument about this mutant? ``lines``: of its module, stripped."""
    at = mutant.line - 1
    same = (argument["module"], argument["line"], argument["change"]) == (mutant.name, lines[at], mutant.words)
    return same and ("after" not in argument or (at > 0 and lines[at - 1] == argument["after"]))


def undecided(module: Path) -> list[Mutant]:
    """The mutants of a module that nobody has argued for."""
    known, lines = arguments(), [line.strip() for line in module.read_text(encoding="utf-8").splitlines()]
    return [mutant for mutant in mutants(module) if not any(covers(one, mutant, lines) for one in known)]


def run(folder: Path, tests: list[str], time_limit_s: float) -> bool:
    """Do the tests pass? A run that takes too long counts as failed: the mutant was noticed."""
    command = [sys.executable, *PYTEST, *tests]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=time_limit_s)
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0


def copy_project(folder: Path) -> None:
    """Copy the project into an empty folder, where its package may be changed; what is large is linked."""
    for part in COPIED:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, folder / part)
    for part in LINKED:
        (folder / part).symlink_to(ROOT / part)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("modules", nargs="+", type=Path, help="files to mutate, relative to the repository")
    parser.add_argument("--tests", nargs="+", required=True, help="what pytest runs")
    parser.add_argument("--mutants", type=int, default=20, help="how many are drawn over all modules")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--time-limit", type=float, default=300.0, help="seconds for each run of the tests")
    given = parser.parse_args()
    os.nice(10)
    every = [one for module in given.modules for one in undecided(ROOT / module)]
    drawn = random.Random(given.seed).sample(every, min(given.mutants, len(every)))
    survivors = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_project(folder)
        if not run(folder, given.tests, given.time_limit):
            print("the tests fail, or take too long, without any mutant")
            return 2
        for number, mutant in enumerate(drawn, 1):
            path = folder / mutant.module.relative_to(ROOT)
            original = path.read_text(encoding="utf-8")
            path.write_text(mutant.source(), encoding="utf-8")
            survived = run(folder, given.tests, given.time_limit)
            path.write_text(original, encoding="utf-8")
            where = f"{mutant.name}:{mutant.line}: {mutant.words}"
            print(f"{number}/{len(drawn)} {'SURVIVED' if survived else 'noticed'} {where}", flush=True)
            survivors += [where] if survived else []
    print(f"{len(survivors)} of {len(drawn)} mutants survived ({len(every)} possible)", *survivors, sep="\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
