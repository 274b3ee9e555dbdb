"""Parameters of ras: every one is read in a search, and some of them change what is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import mast_opt
from mast_opt import RasParams
from mast_opt.problems import backends
from mast_opt.problems.search.interface import MipSolver, SearchContext, SearchMonitor, StoppingCriteria
from mast_opt.problems.search.sub_mip import SubMipParams
from mast_opt.problems.server_assignment.ras.params import IntegerBoundParams
from mast_opt.problems.server_assignment.ras.ras_search import ras

PROBLEM = mast_opt.generate("server-assignment", "standard", seed=1, servers=300, reservations=8)


def context(rounds: int | None, gap: float = 0.0) -> SearchContext:
    """One thread, and the solvers that are asked for; a minute where rounds are not counted."""

    def backend(name: str) -> MipSolver:
        return backends.get(name).solve

    stop = StoppingCriteria(60.0 if rounds is None else None, gap, rounds)
    return SearchContext(np.random.default_rng(0), SearchMonitor(stop), 1, backend)


def recorder(read: set[str], prefix: str) -> Callable[[Any, str], Any]:
    """What reads an attribute and records its name."""

    def get(self: Any, name: str) -> Any:
        read.add(f"{prefix}{name}")
        return object.__getattribute__(self, name)

    return get


def test_a_search_reads_every_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    """But those of sub-MIPs, whose tests are in ``tests/search``."""
    params, read = RasParams(lp_gap=0.0), set[str]()
    monkeypatch.setattr(RasParams, "sub_mip_round", 1)
    monkeypatch.setattr(RasParams, "lp_round", 1)
    monkeypatch.setattr(IntegerBoundParams, "margin", 1)
    names = {name for name in RasParams.parameters() if not name.startswith("sub_mip.")}
    for one in fields(RasParams):
        held = getattr(params, one.name)
        if hasattr(held, "differences") and not isinstance(held, SubMipParams):
            monkeypatch.setattr(type(held), "__getattribute__", recorder(read, f"{one.name}."), raising=False)
    monkeypatch.setattr(RasParams, "__getattribute__", recorder(read, ""), raising=False)
    ras(PROBLEM, context(rounds=4), None, params)
    ras(PROBLEM, context(rounds=None, gap=0.9), None, params)
    assert names - read == set()


def test_parameters_change_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def bound(**given: Any) -> float | None:
        return ras(PROBLEM, context(rounds=1), None, RasParams.of(given)).bound

    usual = bound()
    assert bound() == usual
    assert bound(price_steps=1) != usual
    assert bound(sub_mip={"solver": "scip"}) is not None
    monkeypatch.setattr(IntegerBoundParams, "cells", 1)
    assert bound() != usual
