"""Which files of this folder are collected."""

from tests.backends.test_size_limits import COMMERCIAL
from tests.solvers import here

collect_ignore = [] if here(COMMERCIAL) else ["test_size_limits.py"]
"""Without a commercial solver there is no free package to refuse anything."""
