"""Machine, versions and commit with which a run was made."""

import hashlib
import os
import platform
import subprocess
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import mast_opt
from mast_opt.core.errors import BackendUnavailable
from mast_opt.core.memory import built_in_bytes
from mast_opt.core.units import GIB
from mast_opt.problems import backends
from mast_opt.problems.plugin_heuristics import HEURISTICS

_SOURCES = ("mast_opt", "pyproject.toml")


def machine() -> dict[str, Any]:
    """Machine of a benchmark: the processor, how many of them, memory and system; nothing that names the computer."""
    return {
        "processor": _processor(),
        "processors": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "system": f"{platform.system()} {platform.release().split('-')[0]}",
        "python": platform.python_version(),
    }


def versions(solvers: Iterable[str]) -> dict[str, str]:
    """Versions in a benchmark: of mast-opt, NumPy, numba, and the backends and plug-ins among these solvers, as far as
    they are installed.
    """
    found, asked = {name: version(name) for name in ("mast-opt", "numpy", "numba")}, set(solvers)
    for name in sorted(asked & set(backends.names())):
        try:
            found[name] = backends.get(name).version()
        except BackendUnavailable:
            continue
    for full in HEURISTICS:
        if (name := full.partition(".")[2]) in asked:
            found[name] = HEURISTICS.package(full) or ""
    return found


def commit() -> str | None:
    """The commit that last changed the benchmarked sources, with a mark of changes since; None away from a git
    checkout.
    """
    root = Path(mast_opt.__file__).parents[1]
    last = _git(root, "log", "-1", "--format=%H", "--", *_SOURCES)
    if not last:
        return None
    changes = _git(root, "diff", "HEAD", "--", *_SOURCES)
    mark = f"+{hashlib.sha256(changes.encode()).hexdigest()[:8]}" if changes else ""
    return last[:12] + mark


def _git(root: Path, *words: str) -> str:
    """Output of a git command on the benchmarked sources; empty where it fails."""
    try:
        ended = subprocess.run(["git", *words], cwd=root, capture_output=True, encoding="utf-8", check=False)
    except OSError:
        return ""
    return ended.stdout.strip() if ended.returncode == 0 else ""


def _processor() -> str:
    """Name of the processor on which a benchmark runs."""
    cpus = Path("/proc/cpuinfo")
    if cpus.exists():
        for line in cpus.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _memory_gb() -> int | None:
    """Memory of the benchmark's machine in GiB; None where the system does not say."""
    built_in = built_in_bytes()
    return None if built_in is None else round(built_in / GIB)
