"""Every search of mast-opt that goes on from a start keeps the rules of heuristics."""

from __future__ import annotations

from typing import ClassVar

from tests.search import conformance


class TestTetris(conformance.Conformance):
    kind, solver = "data-placement", "tetris"
    sizes: ClassVar = {"datasets": 8, "workloads": 8, "regions": 3}


class TestRas(conformance.Conformance):
    kind, solver = "server-assignment", "ras"
    sizes: ClassVar = {"servers": 20, "reservations": 2}


class TestTwine(conformance.Conformance):
    kind, solver = "task-reassignment", "twine"


class TestRepair(conformance.Conformance):
    kind, solver = "job-placement", "exhaustive+repair"


class TestBestFit(conformance.Conformance):
    kind, solver, constructive = "job-placement", "best-fit", True
