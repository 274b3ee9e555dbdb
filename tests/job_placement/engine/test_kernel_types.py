"""Kernels get the same types of arguments on every instance: otherwise one is compiled within the limit of a solve."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

from mast_opt.problems.job_placement.exhaustive.batch_state import batch_state_of
from mast_opt.problems.job_placement.exhaustive.objective import term_prices_of
from mast_opt.problems.job_placement.generate import FAMILIES


@pytest.mark.parametrize("family", FAMILIES)
def test_prices(family: str) -> None:
    types = set()
    for sizes in (dict.fromkeys(FAMILIES[family].sizes, 1), {}):
        problem = FAMILIES[family].generate(np.random.default_rng(0), **sizes)
        typeof: Any = numba.typeof
        types.add(typeof(term_prices_of(problem, batch_state_of(problem).layout)))
    assert len(types) == 1
