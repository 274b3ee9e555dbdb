"""A fixed number of random cases; CONTRIBUTING says how to run more."""

from __future__ import annotations

import subprocess
import sys

from tests.platforms import needs


@needs("setpriv")  # Linux: /proc and RLIMIT_AS
def test_damaged_files_are_read_or_refused() -> None:
    command = [sys.executable, "-m", "tests.fuzz.readers", "--cases", "150", "--seed", "7"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "150 cases" in done.stdout
