"""Policies of mast-opt keep the rules of policies."""

from __future__ import annotations

from tests.policies import conformance


class TestMast(conformance.Conformance):
    policy = "mast"


class TestFederated(conformance.Conformance):
    policy = "federated"


class TestEasy(conformance.Conformance):
    policy = "easy"
