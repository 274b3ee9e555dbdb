#!/usr/bin/env python3
"""Everything that needs setting up, with nothing but Python and git at hand.

    python3 make.py demo     solve the real instance and show the plan
    python3 make.py test     run the tests of the first tier, which start no process: some minutes; --all runs every
                             test, --rest those of the second tier; what follows is handed to pytest
    python3 make.py coverage run the tests and print line and branch coverage; kernels are interpreted for their part
    python3 make.py lint     ruff, mypy, import-linter, and the schemas of the workflow files
    python3 make.py docs     build the documentation as a site in site/, warnings as errors
    python3 make.py wheel    build the wheel, and run the tutorials and notebooks with it in an environment of its own
    python3 make.py bench    run the small suite of benchmarks, a quarter of an hour, or the suite that follows
    python3 make.py guarantees  test what the service promises, in full: an hour; --short takes some minutes
    python3 make.py shell    say where the environment is that these share

Each makes a virtual environment in .venv (or where MAST_OPT_VENV says) when there is none, and installs mast-opt
and what the task needs into it, once.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = Path(os.environ.get("MAST_OPT_VENV") or ROOT / ".venv").resolve()
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
INSTANCE = "instances/data_placement/cloud-regions"
SOLVE = ("--solver", "tetris", "--time-limit", "10")
PLAN = "out/cloud-regions"
GROUPS = ("test", "test-live", "test-full")
PARALLEL = ("--numprocesses", "auto", "--maxprocesses", "4")
TIERS = {
    "--all": ("--hypothesis-profile", "random"),
    "--rest": ("--tier", "second", "--hypothesis-profile", "random"),
}
KERNELS = ("tests/task_reassignment/twine/operators", "tests/data_placement/tetris/operators")
READERS_TOOLS = ("pytest", "sybil", "nbclient", "ipykernel", "pandas", "matplotlib")
READERS_PAGES = ("README.md", "docs/tutorial.md", "docs/tutorial-research.md", "docs/tutorial-scheduler.md",
                 "docs/how-to/python.md", "tests/test_notebooks.py")  # fmt: skip


def demo(arguments: Sequence[str]) -> int:
    install()
    return run("mast-opt", "solve", INSTANCE, *(arguments or (*SOLVE, "--out", PLAN)))


def test(arguments: Sequence[str]) -> int:
    """Run a tier of tests (tests/tiers.py). Only the first one draws the same examples on every run."""
    tier = next((word for word in arguments if word in TIERS), "")
    install(*(GROUPS if tier else GROUPS[:1]))
    more = [word for word in arguments if word not in TIERS]
    return run("pytest", *PARALLEL, *TIERS.get(tier, ("--tier", "first")), *more)


def coverage(arguments: Sequence[str]) -> int:
    """Coverage sees no compiled code, so the tests of kernels run a second time, interpreted; integers wrap there."""
    install(*GROUPS, "coverage")
    measured = ("--cov=mast_opt", "--cov-branch", *PARALLEL, *arguments)
    failed = run("pytest", "--cov-report=", *measured)
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    kernels = run("pytest", "--cov-append", "--cov-report=term", "-W", "ignore::RuntimeWarning", *measured, *KERNELS)
    return failed or kernels


def lint(arguments: Sequence[str]) -> int:
    install("test", "test-live", "lint")
    schema, github = ("check-jsonschema", "--builtin-schema"), ROOT / ".github"
    forms = sorted(str(path) for path in (github / "ISSUE_TEMPLATE").glob("*.yml") if path.name != "config.yml")
    checks = {
        "ruff check": ("ruff", "check"),
        "ruff format": ("ruff", "format", "--check"),
        "mypy": ("mypy",),
        "import-linter": ("lint-imports", "--no-cache"),
        "workflows": (*schema, "vendor.github-workflows", *sorted(map(str, (github / "workflows").glob("*.yml")))),
        "issue forms": (*schema, "vendor.github-issue-forms", *forms),
        "dependabot": (*schema, "vendor.dependabot", str(github / "dependabot.yml")),
        "Read the Docs": (*schema, "vendor.readthedocs", str(ROOT / ".readthedocs.yaml")),
    }
    failed = [name for name, check in checks.items() if run(*check)]
    print(f"failed: {', '.join(failed)}" if failed else f"passed: {', '.join(checks)}")
    return int(bool(failed))


def bench(arguments: Sequence[str]) -> int:
    install("test")
    return run("mast-opt", "bench", *(arguments or ("small",)))


def guarantees(arguments: Sequence[str]) -> int:
    install("test", "test-live", "schema")
    return run("python", "-m", "benchmarks.guarantees", *arguments)


def docs(arguments: Sequence[str]) -> int:
    install("docs")
    failed = run("sphinx-build", "-q", "-E", "-W", "--keep-going", "-b", "html", "docs", "site", *arguments)
    if not failed:
        print(f"The site begins at {ROOT / 'site' / 'index.html'}.")
    return failed


def wheel(arguments: Sequence[str]) -> int:
    """The wheel by itself: what a reader of the tutorials and notebooks does, with nothing of this folder to import."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        python = scratch / "venv" / BIN.name / ("python.exe" if os.name == "nt" else "python")
        venv.create(scratch / "venv", with_pip=True)
        pip(python, "--upgrade", "pip>=25.1", "build")
        if subprocess.run([python, "-m", "build", "--outdir", scratch / "dist", ROOT], check=False).returncode:
            return 1
        pip(python, str(next(scratch.glob("dist/*.whl"))), *READERS_TOOLS)
        tests = [f"tests/{name}.py" for name in ("__init__", "tiers", "test_notebooks")]
        for name in ("docs", "instances", "README.md", "conftest.py", *tests):
            source, target = ROOT / name, scratch / "reader" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
        command = [str(python), "-P", "-m", "pytest", "--override-ini=addopts=", *(arguments or READERS_PAGES)]
        bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return subprocess.run(command, cwd=scratch / "reader", env=bare, check=False).returncode


def shell(arguments: Sequence[str]) -> int:
    install(*GROUPS, "lint")
    print(f"The programs are in {BIN}, among them {BIN / 'mast-opt'} and {BIN / 'pytest'}.")
    return 0


def run(program: str, *arguments: str) -> int:
    """Run a program of the environment and return its exit code."""
    print("$", program, *arguments, flush=True)
    # pytest rewrites tests and they start hundreds of processes: with nothing kept, each compiles every module again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run([BIN / program, *arguments], check=False).returncode


def install(*groups: str) -> None:
    """Install mast-opt and the dependency groups, unless that has been done since pyproject.toml last changed."""
    state = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + sys.version.encode()).hexdigest()
    python = BIN / ("python.exe" if os.name == "nt" else "python")
    for group in (None, *groups):
        stamp = VENV / f"installed-{group or 'mast-opt'}"
        if stamp.exists() and stamp.read_text() == state:
            continue
        if not python.exists():
            make_environment(python)
        print(f"installing {'what the task ' + group + ' needs' if group else 'mast-opt'} into {VENV}", flush=True)
        pip(python, *(("--group", group) if group else ("--editable", ".")))
        stamp.write_text(state)


def make_environment(python: Path) -> None:
    print(f"making a virtual environment in {VENV}", flush=True)
    try:
        venv.create(VENV, with_pip=True)
    except subprocess.CalledProcessError:
        sys.exit("Python cannot make virtual environments here. On Debian and Ubuntu: apt install python3-venv")
    pip(python, "--upgrade", "pip>=25.1")


def pip(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    if subprocess.run(command, check=False).returncode:
        sys.exit("pip failed, as stated above. Repair that and run the same command again.")


def main(arguments: Sequence[str]) -> int:
    tasks = {
        "guarantees": guarantees,
        "demo": demo,
        "test": test,
        "lint": lint,
        "bench": bench,
        "coverage": coverage,
        "docs": docs,
        "wheel": wheel,
        "shell": shell,
    }
    if not arguments or arguments[0] not in tasks:
        print(__doc__)
        return 2
    if sys.version_info < (3, 11):  # noqa: UP036 - the one file that an older Python may read
        print(
            f"mast-opt needs Python 3.11 or newer, and this is {sys.version.split()[0]}; run make.py with a newer one."
        )
        return 2
    os.chdir(ROOT)
    return tasks[arguments[0]](arguments[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
