"""The page of the code that a verdict of ``mast-opt verify`` rests on states its lines, which are counted here."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.test_code_budget import code_lines

ROOT = Path(__file__).parents[1]
KINDS = ("data_placement", "job_placement", "server_assignment", "task_reassignment", "resource_allocation")
SLACK, FEWEST = 0.02, 5
"""Part, or lines, by which a number of the page may be off."""
DATA = ("problem.py", "plan.py", "entities.py")
"""Modules that hold and validate an instance or a plan."""


LEFT_OUT = ("verification/certificate_tree_cuts.py", "verification/spectral_bound.py")
"""Modules for arrays that a certificate of data placement may leave empty."""


def modules_of(kind: str) -> dict[str, int]:
    """Modules of a problem that its verification rests on, with their code lines: those that it imports, directly or
    through others, and itself.
    """
    folder = ROOT / "mast_opt" / "problems" / kind
    waiting, found = sorted((folder / "verification").glob("*.py")), {}
    while waiting:
        path = waiting.pop()
        name = path.relative_to(folder).as_posix()
        if name in found or name.endswith("__init__.py"):
            continue
        text = path.read_text(encoding="utf-8")
        found[name] = code_lines(text)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"mast_opt.problems.{kind}"):
                base = ROOT / Path(*str(node.module).split("."))
                options = [base.with_suffix(".py"), *(base / f"{one.name}.py" for one in node.names)]
                waiting += [option for option in options if option.exists()]
    return found


def table() -> list[str]:
    """Rows of the page: problem, modules that judge, their lines, and lines of those that hold the data."""
    rows = []
    for kind in KINDS:
        modules = modules_of(kind)
        judging = {name: lines for name, lines in modules.items() if name not in DATA}
        verdict = sum(lines for name, lines in judging.items() if not _is_certificate(name))
        certificate = sum(lines for name, lines in judging.items() if _is_certificate(name))
        data = sum(lines for name, lines in modules.items() if name in DATA)
        words = kind.replace("_", " ")
        rows.append(f"| {words} | {verdict} | {certificate} | {verdict + certificate} | {data} |")
        if more := sum(judging.get(name, 0) for name in LEFT_OUT):
            certificate -= more
            rows.append(f"| {words}, prices alone | {verdict} | {certificate} | {verdict + certificate} | {data} |")
    return rows


def _is_certificate(name: str) -> bool:
    """Whether a module checks bounds."""
    return any(word in name for word in ("certificate", "bound"))


def numbers(line: str) -> tuple[str, list[int]]:
    """Name and numbers of a row of the table."""
    name, *counts = line.strip("| ").split(" | ")
    return name, list(map(int, counts))


def is_near(stated: list[int], counted: list[int]) -> bool:
    """Whether numbers of the page are right within ``SLACK``."""
    return len(stated) == len(counted) and all(
        abs(one - other) <= max(FEWEST, SLACK * other) for one, other in zip(stated, counted)
    )


def test_the_page_has_the_lines_of_today() -> None:
    page = (ROOT / "docs" / "trusted-base.md").read_text(encoding="utf-8")
    stated = dict(
        numbers(line) for line in page.splitlines() if line.startswith("| ") and line.strip("| ")[-1:].isdigit()
    )
    far = [row for row in table() if not is_near(stated[numbers(row)[0]], numbers(row)[1])]
    assert not far, "rows of docs/trusted-base.md to be brought up to date"


def test_a_small_change_needs_no_other_number() -> None:
    assert is_near([575, 140], [581, 135])
    assert not is_near([575], [590])
    assert not is_near([575], [575, 1])


def test_what_a_verifier_imports_of_its_problem_counts() -> None:
    modules = modules_of("job_placement")
    assert {"verification/verifier.py", "verification/certificate.py", "capacity.py", "problem.py"} <= modules.keys()
    assert not any(name.startswith(("exhaustive", "formulation", "engine")) for name in modules)
    assert all(lines > 0 for lines in modules.values())
