"""The page of the code that a verdict of ``mast-opt verify`` rests on states its lines, which are counted here."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.test_code_budget import code_lines

ROOT = Path(__file__).parents[1]
KINDS = ("data_placement", "job_placement", "server_assignment", "task_reassignment", "resource_allocation")
DATA = ("problem.py", "plan.py", "entities.py")
"""Modules that hold and validate an instance or a plan."""


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
        rows.append(f"| {kind.replace('_', ' ')} | {verdict} | {certificate} | {verdict + certificate} | {data} |")
    return rows


def _is_certificate(name: str) -> bool:
    """Whether a module checks bounds."""
    return any(word in name for word in ("certificate", "bound"))


def test_the_page_has_the_lines_of_today() -> None:
    page = (ROOT / "docs" / "trusted-base.md").read_text(encoding="utf-8")
    missing = [row for row in table() if row not in page]
    assert not missing, "rows of docs/trusted-base.md to be brought up to date"


def test_what_a_verifier_imports_of_its_problem_counts() -> None:
    modules = modules_of("job_placement")
    assert {"verification/verifier.py", "verification/certificate.py", "capacity.py", "problem.py"} <= modules.keys()
    assert not any(name.startswith(("exhaustive", "formulation", "engine")) for name in modules)
    assert all(lines > 0 for lines in modules.values())
