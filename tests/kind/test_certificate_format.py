"""Arrays of a certificate that are missing, or have another type, shape or number than they should."""

from __future__ import annotations

import numpy as np
import pytest

from mast_opt.problems.kind.certificate_format import LARGEST_PRICE, TEXT, ArrayFormat, array_faults, price

FORMATS = {"prices": price(2, 1), "names": ArrayFormat(TEXT), "sizes": ArrayFormat("int64", (2,), 1, 8)}
SOUND = {"prices": np.array([[0.0], [LARGEST_PRICE]]), "names": np.array(["a", "bc"]), "sizes": np.array([1, 8])}


def test_sound_arrays_have_no_fault() -> None:
    assert array_faults(SOUND, FORMATS) == []


@pytest.mark.parametrize(
    ("name", "array", "expected", "value"),
    [
        ("prices", np.zeros((2, 1), np.float32), "an array of float64", "float32"),
        ("prices", np.zeros((1, 2)), "shape (2, 1)", "(1, 2)"),
        ("prices", np.array([[0.0], [-1e-300]]), "numbers from 0 to 1e+100", None),
        ("prices", np.array([[np.nan], [0.0]]), "numbers from 0 to 1e+100", None),
        ("names", np.array([b"a"]), "an array of text", "|S1"),
        ("sizes", np.array([1, 9]), "numbers from 1 to 8", None),
        ("sizes", np.array([1, 2], np.int32), "an array of int64", "int32"),
    ],
)
def test_a_fault_names_array_and_expectation(name: str, array: np.ndarray, expected: str, value: str | None) -> None:
    [fault] = array_faults(SOUND | {name: array}, FORMATS)
    assert (fault.column, fault.expected, fault.value) == (name, expected, value)


def test_every_missing_array_is_named() -> None:
    faults = array_faults({}, FORMATS)
    assert [fault.expected for fault in faults] == [f"an array called {name}" for name in FORMATS]
