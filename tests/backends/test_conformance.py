"""Every backend against the one conformance suite."""

from __future__ import annotations

import pytest

from mast_opt.problems import backends
from mast_opt.problems.backends.base import Backend
from tests.backends.conformance import Conformance
from tests.solvers import HERE


class TestEveryBackend(Conformance):
    needing_finite_bounds = frozenset({"cpsat"})
    single_threaded = frozenset({"scip"})
    unseeded = frozenset({"copt"})

    @pytest.fixture(params=HERE)
    def backend(self, request: pytest.FixtureRequest) -> Backend:
        name: str = request.param
        return backends.get(name)
