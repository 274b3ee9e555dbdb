"""The project's own files, as a checkout has them: what .gitignore names is left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IGNORED = [".git", *(line.rstrip("/") for line in (ROOT / ".gitignore").read_text(encoding="utf-8").split())]


def project_files() -> Iterator[Path]:
    """Every file below the root that .gitignore does not name."""
    for folder, folders, names in os.walk(ROOT):
        folders[:] = sorted(name for name in folders if not _ignored(name))
        yield from (Path(folder, name) for name in sorted(names) if not _ignored(name))


def _ignored(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in IGNORED)
