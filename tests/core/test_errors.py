"""Errors: codes, fields and copies."""

from __future__ import annotations

import json
import pickle

import pytest

import mast_opt
from mast_opt.core import errors


def _classes(root: type[errors.MastOptError]) -> list[type[errors.MastOptError]]:
    return [root, *(found for child in root.__subclasses__() for found in _classes(child))]


def test_every_error_has_a_code_of_its_own() -> None:
    named = [found for found in _classes(errors.MastOptError) if not found.__name__.startswith("_")]
    codes = [found.__dict__.get("code") for found in named]
    assert None not in codes
    assert len(set(codes)) == len(codes)


def test_a_refused_argument_is_named_in_fields() -> None:
    with pytest.raises(mast_opt.UsageError) as caught:
        mast_opt.generate("data-placement", seed=-1)
    details = caught.value.details()
    assert details["code"] == "usage"
    assert details["argument"] == "seed"
    assert details["expected"] in details["message"]
    assert json.loads(json.dumps(details)) == details


def test_faults_are_fields_and_survive_a_copy() -> None:
    fault = mast_opt.Fault("regions.csv", "a number", row=3, column="storage_tb", value="x")
    error = mast_opt.InstanceError([fault], "cause")
    details = error.details()
    assert details["faults"] == [
        {"file": "regions.csv", "expected": "a number", "row": 3, "column": "storage_tb", "value": "x", "count": 1}
    ]
    assert json.loads(json.dumps(details)) == details
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.faults, str(again)) == (type(error), error.faults, str(error))


def test_other_errors_survive_a_copy() -> None:
    error = mast_opt.UsageError("seed is -1", argument="seed", expected="at least 0")
    again = pickle.loads(pickle.dumps(error))
    assert again.details() == error.details()
