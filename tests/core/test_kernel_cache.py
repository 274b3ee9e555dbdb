"""A read-only installation without a home directory works; its kernels are kept in a private temporary folder."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import mast_opt
from mast_opt.core import kernel_cache
from tests.platforms import needs

WITHOUT_PRIVILEGES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
"""Root without capabilities obeys the mode bits, and still reaches an interpreter that others may not read."""
KERNEL = """
from mast_opt.core.kernel_cache import cached_njit

@cached_njit()
def twice(number):
    return 2 * number
"""
SOLVE = """
import mast_opt
import sample_kernel
problem = mast_opt.generate("server-assignment", seed=1, servers=30, reservations=3, datacenters=1)
solution = mast_opt.solve(problem, "highs", gap=0.5, time_limit_s=300)
print("plan" if solution.plan is not None and sample_kernel.twice(2) == 4 else solution.message)
"""


@pytest.fixture
def installation() -> Iterator[Path]:
    """A copy of the package that nobody may write to, with an empty folder for temporary files."""
    root = Path(tempfile.mkdtemp())
    try:
        root.chmod(0o755)
        (root / "tmp").mkdir()
        (root / "tmp").chmod(0o1777)
        source = Path(mast_opt.__file__).parent
        shutil.copytree(source, root / "lib" / "mast_opt", ignore=shutil.ignore_patterns("__pycache__"))
        (root / "lib" / "sample_kernel.py").write_text(KERNEL)
        for path in (root / "lib", *(root / "lib").rglob("*")):
            path.chmod(0o555 if path.is_dir() else 0o444)
        yield root
    finally:
        for folder in ((root / "lib"), *(path for path in (root / "lib").rglob("*") if path.is_dir())):
            folder.chmod(0o755)
        shutil.rmtree(root, ignore_errors=True)


def run(root: Path, code: str) -> subprocess.CompletedProcess[str]:
    """The code in a process without a home that may not write to the installation."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(root / "lib"),
        "HOME": "/proc/none",
        "XDG_CACHE_HOME": "/proc/none",
        "TMPDIR": str(root / "tmp"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    privileges = WITHOUT_PRIVILEGES if os.getuid() == 0 else ()
    command = [*privileges, sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, cwd=root, env=environment, check=False)


@needs("mode bits")
@needs("setpriv")
def test_a_read_only_installation_without_a_home_solves(installation: Path) -> None:
    done = run(installation, SOLVE)
    assert (done.returncode, done.stdout, done.stderr) == (0, "plan\n", "")
    kept = list((installation / "tmp").rglob("*.nbi"))
    assert kept
    folder = next((installation / "tmp").glob("mast-opt-kernels*"))
    assert folder.stat().st_mode & 0o777 == 0o700
    stamps = {path: path.stat().st_mtime_ns for path in (installation / "tmp").rglob("*.nb*")}
    assert run(installation, SOLVE).returncode == 0
    assert stamps == {path: path.stat().st_mtime_ns for path in (installation / "tmp").rglob("*.nb*")}


@needs("mode bits")
def test_a_temporary_folder_that_others_can_write_to_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = kernel_cache._private_folder()
    assert mine.stat().st_mode & 0o777 == 0o700
    mine.chmod(0o777)
    with pytest.raises(OSError, match=mine.name):
        kernel_cache._private_folder()


@needs("links")
def test_a_link_is_not_used_as_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine = kernel_cache._private_folder()
    mine.rename(tmp_path / "other")
    mine.symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match=mine.name):
        kernel_cache._private_folder()


def test_where_no_folder_can_be_used_a_warning_says_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    class Dispatcher:
        def enable_caching(self) -> None:
            raise RuntimeError("cannot cache function: no locator available")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.warns(RuntimeWarning, match="set NUMBA_CACHE_DIR"):
        kernel_cache._keep_on_disk(Dispatcher())


def test_without_compilation_a_function_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def twice(number: int) -> int:
        return 2 * number

    monkeypatch.setattr(kernel_cache._config, "DISABLE_JIT", 1)
    assert kernel_cache.cached_njit()(twice) is twice
