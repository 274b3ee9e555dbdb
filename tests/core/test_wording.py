"""Numbers and names in sentences."""

from __future__ import annotations

import pytest

from mast_opt.core.wording import counted, did_you_mean, listed, named


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (counted(0, "job"), "0 jobs"),
        (counted(1, "job"), "1 job"),
        (counted(2000, "job"), "2,000 jobs"),
        (counted(1.0, "day"), "1 day"),
        (counted(0.5, "day"), "0.5 days"),
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
