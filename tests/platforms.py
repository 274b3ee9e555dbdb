"""What some tests need of the system that they run on, and why they mean nothing without it.

Nothing here skips a test on the gate's machine: the gate passes ``--skip-nothing``.
"""

from __future__ import annotations

import os
import shutil
import sys

import pytest

sends_signals = pytest.mark.skipif(
    os.name == "nt", reason="Windows has no signal that a process can send to one other process as Ctrl-C does"
)
limits_file_sizes = pytest.mark.skipif(
    os.name == "nt", reason="Windows has no RLIMIT_FSIZE, which stands for a full disk here"
)
makes_links = pytest.mark.skipif(os.name == "nt", reason="Windows lets only some users make symbolic links")
has_dev_full = pytest.mark.skipif(
    sys.platform != "linux", reason="/dev/full, the output on which every write fails, is a device of Linux"
)
has_setpriv = pytest.mark.skipif(
    shutil.which("setpriv") is None,
    reason="setpriv, with which a process ends when another does, is part of util-linux",
)
has_ray = pytest.mark.skipif(
    sys.version_info >= (3, 15), reason="Ray has no package for Python 3.15 yet; elsewhere the tests' group brings it"
)
has_mode_bits = pytest.mark.skipif(os.name == "nt", reason="files have no permission bits on Windows")
