"""Several solves at a time, and time limits that make no sense."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import mast_opt
from mast_opt.core.parallel import in_parallel

SMALL = mast_opt.generate("data-placement", seed=3, datasets=6, workloads=8, regions=3)


def test_answers_come_in_order() -> None:
    assert in_parallel(lambda number: number * 2, range(5), 3, threading.Event()) == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("failing", [0, 1])
def test_a_failure_stops_the_others_those_before_it_too(failing: int) -> None:
    cancel = threading.Event()

    def call(number: int) -> bool:
        if number == failing:
            raise ZeroDivisionError
        return cancel.wait(60)

    with pytest.raises(ZeroDivisionError):
        in_parallel(call, range(4), 2, cancel)
    assert cancel.is_set()


@pytest.mark.parametrize("ask", [mast_opt.explain, partial(mast_opt.pareto, terms=("storage", "peak"))])
@pytest.mark.parametrize("limit_s", [0.0, -1.0, float("nan")])
def test_a_time_limit_is_above_0(ask: Callable[..., Any], limit_s: float) -> None:
    with pytest.raises(mast_opt.UsageError, match=r"time_limit_s is .*; expected a number of seconds above 0"):
        ask(SMALL, time_limit_s=limit_s)
