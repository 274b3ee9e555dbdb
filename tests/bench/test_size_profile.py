"""Profile by size: each part of the package gets the processor time that it took."""

from __future__ import annotations

import time

import pytest

from benchmarks.size_profile import PARTS, REST, part_of, profile, sampled


def _frame_in(file: str, called: str | None = None) -> object:
    """What ``part_of`` says of a function in a file, or of what that calls in another one."""
    known: dict[str, object] = {"part_of": part_of, "sys": __import__("sys")}
    if called is not None:
        exec(compile("def inner():\n    return part_of(sys._getframe())\n", called, "exec"), known)
        source = "def outer():\n    return inner()\n"
    else:
        source = "def outer():\n    return part_of(sys._getframe())\n"
    exec(compile(source, file, "exec"), known)
    outer = known["outer"]
    assert callable(outer)
    return outer()


def test_the_innermost_frame_counts_but_for_plans_of_data() -> None:
    assert _frame_in("/a/mast_opt/live/policies/mast.py") == "policy"
    assert _frame_in("/a/mast_opt/live/policies/mast.py", "/a/mast_opt/problems/job_placement/units.py") == "fleet"
    assert _frame_in("/a/mast_opt/live/policies/mast.py", "/b/numpy/core.py") == "policy"
    assert _frame_in("/a/mast_opt/live/slow_paths/data.py", "/a/mast_opt/live/loop/state.py") == "data plans"
    assert _frame_in("/b/numpy/core.py") == REST


def test_all_processor_time_belongs_to_some_part() -> None:
    began = time.process_time()
    with sampled() as spent:
        while time.process_time() - began < 0.2:
            pass
    assert sum(spent.values()) == pytest.approx(0.2, rel=0.3)
    assert set(spent) == {REST}


@pytest.mark.second_tier
def test_a_small_fleet_has_all_parts() -> None:
    found = profile(800, 1)
    shares = found["shares"]
    assert isinstance(shares, dict)
    assert set(shares) == {*PARTS.values(), REST}
    assert sum(shares.values()) == pytest.approx(1, abs=0.05)
    assert (found["gpus"], found["regions"]) == (800, 12)
    assert min(shares["policy"], shares["fleet"], shares["loop"]) > 0
