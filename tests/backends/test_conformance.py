"""Every backend against the one conformance suite."""

from __future__ import annotations

import pytest

from mast_opt import backends
from mast_opt.backends.base import Backend
from tests.backends.conformance import Conformance
from tests.conftest import installed


class TestEveryBackend(Conformance):
    needing_finite_bounds = frozenset({"cpsat"})
    single_threaded = frozenset({"scip"})
    unseeded = frozenset({"copt"})

    @pytest.fixture(params=backends.names())
    def backend(self, request: pytest.FixtureRequest) -> Backend:
        return installed(request.param, request.config)
