"""``instance.toml``: defaults, both modes, and what is wrong with it."""

from __future__ import annotations

import tomllib
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mast_opt.planner.io import read
from mast_opt.planner.io.writers.folder import toml_text
from mast_opt.problems.kind.header import Objective
from tests.io.conftest import Folder, faults_of
from tests.io.toy import HEADER


def test_defaults(folder: Folder) -> None:
    header = read(folder()).header
    assert header.objective == Objective({"peak": 1.0, "overload": 10.0, "idle": 0.0}, {}, ())
    assert header.rules == {"remote_reads": "price", "days": Fraction(1)}
    assert header.provenance == ""


def test_everything_said(folder: Folder) -> None:
    text = """
        provenance = "made up"
        rules = { remote_reads = "forbid", days = 0.1 }
        [objective]
        mode = "lexicographic"
        order = ["overload", "peak"]
        tier_weights = { 0 = 1, 2 = 0.25 }
        [objective.weights]
        peak = 2
        idle = 1e-3
    """
    header = read(folder(header=HEADER + text)).header
    assert header.provenance == "made up"
    assert header.rules == {"remote_reads": "forbid", "days": Fraction(1, 10)}
    expected = Objective({"peak": 2.0, "overload": 10.0, "idle": 0.001}, {0: 1.0, 2: 0.25}, ("overload", "peak"))
    assert header.objective == expected
    assert header.objective.lexicographic


@pytest.mark.parametrize(
    ("text", "key", "value", "expected"),
    [
        ("[rule]", "rule", "rule", "did you mean 'rules'?"),
        ("[rules]\nday = 1", "rules.day", "day", "did you mean 'days'?"),
        ("[rules]\nremote_reads = 'free'", "rules.remote_reads", "free", "'price' or 'forbid'"),
        ("[rules]\nremote_reads = 1", "rules.remote_reads", "1", "'price' or 'forbid'"),
        ("[rules]\ndays = 0", "rules.days", "0", "a positive number"),
        ("[rules]\ndays = -1.5", "rules.days", "-1.5", "a positive number"),
        ("[rules]\ndays = nan", "rules.days", "NaN", "a positive number"),
        ("[rules]\ndays = inf", "rules.days", "Infinity", "a positive number"),
        ("[rules]\ndays = true", "rules.days", "True", "a positive number"),
        ("[rules]\ndays = '1/0'", "rules.days", "1/0", "a positive number"),
        ("[rules]\ndays = 'x'", "rules.days", "x", "a positive number"),
        ("[rules]\ndays = 1e999999", "rules.days", "1E+999999", "a positive number"),
        ("rules = 5", "rules", "5", "a table, [rules]"),
        ("provenance = 5", "provenance", "5", "text in quotation marks"),
        ("[objective]\nmode = 'weighed'", "objective.mode", "weighed", "did you mean 'weighted'?"),
        ("[objective]\nweight = {}", "objective.weight", "weight", "did you mean 'weights'?"),
        ("[objective]\norder = ['peak']", "objective.order", "peak", 'no order, or mode = "lexicographic"'),
        ("[objective]\nmode = 'lexicographic'", "objective.order", None, "the terms in the order"),
        ("[objective]\nmode = 'lexicographic'\norder = []", "objective.order", "[]", "a list of terms"),
        ("[objective]\nmode = 'lexicographic'\norder = 'peak'", "objective.order", "peak", "a list of terms"),
        ("[objective]\nmode = 'lexicographic'\norder = [1]", "objective.order", "[1]", "a list of terms"),
        ("[objective]\nmode = 'lexicographic'\norder = ['peek']", "objective.order", "peek", "did you mean 'peak'?"),
        ("[objective]\nmode = 'lexicographic'\norder = ['peak', 'peak']", "objective.order", "peak", "each term once"),
        ("[objective.weights]\npaek = 1", "objective.weights.paek", "paek", "did you mean 'peak'?"),
        ("[objective.weights]\npeak = -1", "objective.weights.peak", "-1", "a number from 0 to 1e+18"),
        ("[objective.weights]\npeak = nan", "objective.weights.peak", "NaN", "a number from 0 to 1e+18"),
        ("[objective.weights]\npeak = inf", "objective.weights.peak", "Infinity", "a number from 0 to 1e+18"),
        ("[objective.weights]\npeak = 1e400", "objective.weights.peak", "1E+400", "a number from 0 to 1e+18"),
        ("[objective.weights]\npeak = '1'", "objective.weights.peak", "1", "a number from 0 to 1e+18"),
        ("[objective.weights]\npeak = true", "objective.weights.peak", "True", "a number from 0 to 1e+18"),
        ("[objective.tier_weights]\nhigh = 1", "objective.tier_weights.high", "high", "a whole number from 0"),
        ("[objective.tier_weights]\n-1 = 1", "objective.tier_weights.-1", "-1", "a whole number from 0"),
        ("[objective.tier_weights]\n0 = -1", "objective.tier_weights.0", "-1", "a number from 0 to 1e+18"),
        ("[objective.tier_weights]\n1 = 2\n01 = 3", "objective.tier_weights.01", "01", "one weight for tier 1"),
        ("[objective.peak_levels]\n0 = -1", "objective.peak_levels.0", "-1", "a number from 0 to 1e+18"),
        ("[objective.peak_levels]\n1 = 2\n01 = 3", "objective.peak_levels.01", "01", "one level for tier 1"),
    ],
)
def test_a_bad_setting(folder: Folder, text: str, key: str, value: str | None, expected: str) -> None:
    [fault] = faults_of(folder(header=f"{HEADER}{text}\n"))
    assert (fault.file, fault.value) == (f"instance.toml: {key}", value)
    assert expected in fault.expected


@pytest.mark.parametrize(
    ("text", "key", "expected"),
    [
        ("", "instance.toml: format", "format = 'mast-opt/1'"),
        ('format = "mast-opt/2"\nkind = "toy"\nname = "x"', "instance.toml: format", "format = 'mast-opt/1'"),
        ('format = "mast-opt/1"\nkind = "toyy"\nname = "x"', "instance.toml: kind", "did you mean 'toy'?"),
        ('format = "mast-opt/1"\nname = "x"', "instance.toml: kind", "toy"),
        ('format = "mast-opt/1"\nkind = "toy"', "instance.toml: name", "text in quotation marks"),
        ('format = "mast-opt/1"\nkind = "toy"\nname = " "', "instance.toml: name", "text in quotation marks"),
        ('format = "mast-opt/1"\nkind = "toy\nname = "x"', "instance.toml", "TOML (Illegal character '\\n' (at line 2"),
        ('format = "mast-opt/1"\nkind = ', "instance.toml", "TOML (Invalid value"),
        ("a = " + "[" * 5000, "instance.toml", "TOML ("),
        ("a = " + "1" * 5000, "instance.toml", "TOML ("),
        ("a = 1e99999999999999999999", "instance.toml", "TOML ("),
    ],
)
def test_a_bad_file(folder: Folder, text: str, key: str, expected: str) -> None:
    faults = faults_of(folder(header=text))
    assert faults[0].file == key
    assert expected in faults[0].expected


def test_a_header_that_is_not_utf8(folder: Folder) -> None:
    [fault] = faults_of(folder(header=HEADER.encode() + b"provenance = 'Z\xfcrich'\n"))
    assert fault.expected == "text in UTF-8 (line 4 is not)"


VALUES = st.recursive(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), VALUES, max_size=4))
def test_toml_text_is_toml(fields: dict[str, object]) -> None:
    assert tomllib.loads(toml_text(fields)) == fields


def test_toml_text_of_other_values() -> None:
    fields = {"none": None, "deep": [{"none": None, "x": 1}], "numpy": np.float64(0.1), "count": np.int64(3)}
    assert tomllib.loads(toml_text(fields)) == {"deep": [{"x": 1}], "numpy": 0.1, "count": 3}
    assert tomllib.loads(toml_text({"a": float("nan")}))["a"] != 0
    with pytest.raises(TypeError, match="is not TOML serializable"):
        toml_text({"a": object()})
