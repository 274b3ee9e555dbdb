"""The whole service under a few seeds; ``python -m tests.service.random_runs`` takes a thousand."""

from __future__ import annotations

import pytest

from tests.service.random_runs import run


@pytest.mark.parametrize("seed", range(1, 11))
def test_whatever_fails_nothing_is_lost_and_everything_ends(seed: int) -> None:
    events, jobs, _ = run(seed, 150)
    assert events > jobs > 0
