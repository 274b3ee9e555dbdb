"""What some tests need of the machine in addition to their environment: such a test means nothing without it.

Where it is not there, the test is left out and the head of the report says so; with ``--require-all``, as the gate has
it wherever it could get a browser, no test is run at all then.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome", "chrome") if (path := shutil.which(name))), None
)
"""A real browser, to look at the report."""

OFFICE = shutil.which("soffice")
"""LibreOffice, which opens workbooks as a planner's spreadsheet program does."""

POSTGRESQL = next(
    (path for path in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True) if (path / "initdb").exists()),
    None,
)
"""Programs of a PostgreSQL server."""

APISERVER = next(
    (
        path
        for place in (
            Path(os.environ.get("MAST_OPT_KUBE_APISERVER") or Path.home() / ".cache/mast-opt/kube-apiserver"),
        )
        for path in (place, place / "kube-apiserver")
        if path.is_file() and os.access(path, os.X_OK) and shutil.which("etcd") and shutil.which("openssl")
    ),
    None,
)
"""The API server of Kubernetes that tests/hosts/kueue/build_apiserver.sh has built, with etcd and openssl to run it."""

POSIX = os.name == "posix"
NEEDS: Mapping[str, tuple[bool, str]] = {
    "signals": (POSIX, "signals that a process sends to one other process, as Ctrl-C does"),
    "file size limits": (POSIX, "RLIMIT_FSIZE, which stands for a full disk"),
    "links": (POSIX, "symbolic links that every user may make"),
    "mode bits": (POSIX, "permission bits of files"),
    "threads shown": (Path("/proc/self/task").is_dir(), "a system that shows the threads of a process, as Linux does"),
    "/dev/full": (sys.platform == "linux", "/dev/full, the output of Linux on which every write fails"),
    "setpriv": (shutil.which("setpriv") is not None, "setpriv of util-linux, with which CBC ends when we do"),
    "skypilot": (find_spec("sky") is not None, "SkyPilot (pip install 'mast-opt[skypilot]')"),
    "LibreOffice": (OFFICE is not None, "LibreOffice Calc (Debian: apt install libreoffice-calc)"),
    "PostgreSQL": (
        POSTGRESQL is not None and find_spec("psycopg") is not None,
        "a PostgreSQL server (Debian: apt install postgresql) and psycopg",
    ),
    "kube-apiserver": (
        APISERVER is not None,
        "kube-apiserver (tests/hosts/kueue/build_apiserver.sh ~/.cache/mast-opt/kube-apiserver), etcd and openssl",
    ),
    "kubectl": (
        shutil.which("kubectl") is not None,
        "kubectl, which has kustomize (Debian: apt install kubernetes-client)",
    ),
    "promtool": (shutil.which("promtool") is not None, "promtool (Debian: apt install prometheus)"),
    "browser": (BROWSER is not None, "a browser (Debian: apt install chromium)"),
}
"""Name → is it here, and what it is."""
ABSENT = {name: what for name, (here, what) in NEEDS.items() if not here}


def needs(name: str) -> pytest.MarkDecorator:
    """A test that is left out where the machine lacks one of ``NEEDS``."""
    if name not in NEEDS:
        raise KeyError(f"nothing called {name!r} is in NEEDS")
    return pytest.mark.needs(name)
