"""A PostgreSQL server of its own in a scratch folder, reached over a socket there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.platforms import POSTGRESQL


class Server:
    """Runs as another user where we are root, as PostgreSQL wants it."""

    def __init__(self, folder: Path) -> None:
        assert POSTGRESQL is not None
        self._bin, self._folder = POSTGRESQL, folder
        self._as = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        if self._as:
            subprocess.run(["chown", "postgres:postgres", str(folder)], check=True)
        self._run("initdb", "-D", str(folder / "data"), "-A", "trust", "-U", "mast", "--no-sync", "-E", "UTF8")
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql:///postgres?host={self._folder}&user=mast"

    def start(self) -> None:
        options = f"-k {self._folder} -c listen_addresses= -c shared_buffers=16MB -c max_connections=40"
        log = str(self._folder / "log")
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-o", options, "-l", log, "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", str(self._folder / "data"), "-m", mode, "-w", "stop")

    def _run(self, program: str, *arguments: str) -> None:
        subprocess.run([*self._as, str(self._bin / program), *arguments], check=True, capture_output=True, cwd="/")


@contextmanager
def postgres_server() -> Iterator[Server]:
    """In a folder of its own, not in pytest's: nobody else may enter those, and a path of a socket is short."""
    folder = Path(tempfile.mkdtemp(prefix="mast-pg-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        server = Server(folder)
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
