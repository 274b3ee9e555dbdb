"""Checksums and ``.dat`` files of the committed instances are what they were when the instances were committed.

``python -m tests.io.test_committed_digests`` pins what they are now.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import pytest

from mast_opt.core.errors import UsageError
from mast_opt.planner.io import checksum, read
from mast_opt.problems.registry import kind_of

ROOT = Path(__file__).parents[2] / "instances"
PINNED = Path(__file__).with_name("committed_digests.json")
"""Instance → its checksum, and the start of the digest of its ``.dat``."""


def committed() -> list[Path]:
    """The committed instances that are no traces."""
    found = [path.parent for path in ROOT.glob("*/*/instance.toml")] + list(ROOT.glob("*/*.json"))
    return sorted(path for path in found if path.parent.name != "traces")


def digests(path: Path, folder: Path) -> list[str]:
    """The checksum of an instance, and the digest of its data for GLPK where there is one."""
    problem: Any = read(path)
    exporters: Any = kind_of(problem).tables.exporters
    found = [checksum(problem)]
    if ".dat" in exporters:
        try:
            exporters[".dat"](problem, folder / "x.dat")
        except UsageError:  # a policy that no .mod states
            return found
        found.append(hashlib.sha256((folder / "x.dat").read_bytes()).hexdigest()[:16])
    return found


def pinned() -> dict[str, list[str]]:
    found: dict[str, list[str]] = json.loads(PINNED.read_text())
    return found


@pytest.mark.parametrize("path", committed(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_committed_instance_says_what_it_said(tmp_path: Path, path: Path) -> None:
    assert digests(path, tmp_path) == pinned()[str(path.relative_to(ROOT))]


def test_every_committed_instance_is_pinned() -> None:
    assert sorted(pinned()) == [str(path.relative_to(ROOT)) for path in committed()]


def as_text(found: dict[str, list[str]]) -> str:
    """Digests as the file has them: a line for each instance."""
    lines = (f"  {json.dumps(name)}: {json.dumps(one)}" for name, one in found.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def test_the_file_is_as_the_command_writes_it() -> None:
    assert as_text(pinned()) == PINNED.read_text()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        PINNED.write_text(as_text({str(path.relative_to(ROOT)): digests(path, Path(place)) for path in committed()}))
