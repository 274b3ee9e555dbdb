"""Numbers and names in sentences."""

from __future__ import annotations

import pytest

from mast_opt.core.wording import as_shown, counted, did_you_mean, in_gpus, listed, named, ratio


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (counted(0, "job"), "0 jobs"),
        (counted(1, "job"), "1 job"),
        (counted(2000, "job"), "2,000 jobs"),
        (counted(1.0, "day"), "1 day"),
        (counted(0.5, "day"), "0.5 days"),
        (in_gpus(0.9999), "1 GPU"),
        (in_gpus(12.4), "12 GPUs"),
        (counted(1, "copy", "copies"), "1 copy"),
        (counted(2, "copy", "copies"), "2 copies"),
        (listed(["a"]), "a"),
        (listed(["a", "b"]), "a and b"),
        (listed(list("abcdefg")), "a, b, c, d, e, f and g"),
        (listed(list("abcdefgh")), "a, b, c, d, e, f and 2 more"),
        (named("job", ["a"]), "job a"),
        (named("job", ["a", "b"]), "jobs a and b"),
        (named("process", ["a", "b", "c"], "processes"), "processes a, b and c"),
        (did_you_mean("regoins", ["regions", "reads"]), "; did you mean 'regions'?"),
        (did_you_mean("Reads", ["regions", "reads"]), "; did you mean 'reads'?"),
        (did_you_mean("elephants", ["regions", "reads"]), ""),
    ],
)
def test_words(words: str, expected: str) -> None:
    assert words == expected


@pytest.mark.parametrize(
    ("over", "worst", "text"),
    [
        (0.068, 1.0005, "1.00"),
        (0.2, 1.0005, "1.0005"),
        (0.0, 0.9994, "0.999"),
        (0.0, 0.9999, "1.00"),
        (3.0, 1.2, "1.20"),
    ],
)
def test_demand_that_differs_from_supply_by_nothing_fills_it(over: float, worst: float, text: str) -> None:
    seen = as_shown(
        {
            "overload_gpus": over,
            "peak_ratio": worst,
            "peak_ratio_tier0": 0.75,
            "stored_tb": 0.01,
            "overload_usd_a_month": 124.0,
        }
    )
    assert seen["overload_usd_a_month"] == (124.0 if over >= 0.1 else 0.0)
    assert ratio(seen["peak_ratio"]) == text
    assert (seen["peak_ratio_tier0"], seen["stored_tb"]) == (0.75, 0.0)
    assert as_shown({"peak_ratio": worst}) == {"peak_ratio": worst}, "nothing says by how much"


@pytest.mark.parametrize(("value", "text"), [(0.90002, "0.90"), (0.9006, "0.901"), (1.00002, "1.00002")])
def test_a_ratio_is_on_its_side_of_a_level_where_that_can_be_seen(value: float, text: str) -> None:
    assert ratio(value, (1.0, 0.9)) == text
