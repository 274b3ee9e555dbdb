"""The core without the live system: nothing of ``mast_opt.live`` and of the packages that only it needs is there."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from importlib.abc import MetaPathFinder

REFUSED = {refused!r}


class Refused(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.startswith("mast_opt.live") or name.partition(".")[0] in REFUSED:
            raise ModuleNotFoundError(f"{{name}} is not installed here", name=name)


sys.meta_path.insert(0, Refused())
import mast_opt
from mast_opt.cli import main

problem = mast_opt.generate("server-assignment", seed=1, servers=20, reservations=2)
found = mast_opt.solve(problem, "highs", threads=1)
assert not mast_opt.verify(problem, found.plan).violations
fleet = mast_opt.Fleet([mast_opt.Server("s", "west", "c", "r", "h100", 8, 0, 0)])
assert fleet.place(mast_opt.Job("j", 0, mgpu=4000)).region == "west"
for words in ("generate server-assignment fleet --servers 20 --reservations 2", "validate fleet",
              "solve fleet --solver highs --out plan", "verify fleet plan", "diff fleet plan", "export fleet fleet.lp"):
    assert main(words.split()) == 0, words
assert not [name for name in sys.modules if name.startswith("mast_opt.live") or name in REFUSED]
"""


def live_packages() -> set[str]:
    """Packages to import of the extras that only the live system needs."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    names = {line.split(">")[0].split("[")[0] for extra in ("serve", "kueue", "postgresql") for line in extras[extra]}
    return {{"pyyaml": "yaml"}.get(name, name.replace("-", "_")) for name in names}


@pytest.mark.second_tier
def test_the_core_solves_verifies_and_places(tmp_path: Path) -> None:
    refused = live_packages()
    assert {"starlette", "msgspec", "lightkube", "yaml", "psycopg"} <= refused
    command = [sys.executable, "-c", PROGRAM.format(refused=refused)]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8", check=False)
    assert ended.returncode == 0, ended.stderr
