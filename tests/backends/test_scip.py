"""SCIP through PySCIPOpt."""

from __future__ import annotations

import pyscipopt
import pytest

from mast_opt.core.errors import BackendError
from mast_opt.core.solve_result import SolveParams
from mast_opt.problems import backends
from tests.backends.programs import knapsack


class Troubled(pyscipopt.Model):
    def optimizeNogil(self) -> None:
        raise Exception("SCIP: error in LP solver!")


def test_what_scip_cannot_overcome_is_an_error_of_the_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in data placement 140 of seed 501 of the fuzz of proofs, on some machines."""
    monkeypatch.setattr(pyscipopt, "Model", Troubled)
    with pytest.raises(BackendError, match="error in LP solver"):
        backends.get("scip").solve(knapsack()[0], SolveParams())
