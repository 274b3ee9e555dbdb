"""No run depends on the spelling of labels: with all of them renamed and rows in their order, the log is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_opt.live.simulation.kernel import POLICIES as ORDER_ONLY
from tests.simulation.renaming import CASES, difference

QUICK = {name for name, (policy, *_) in CASES.items() if policy in (*ORDER_ONLY, "mast", "federated", "pai")} | {
    "allox"
}
MARKED = [name if name in QUICK else pytest.param(name, marks=pytest.mark.second_tier) for name in CASES]


@pytest.mark.parametrize("case", MARKED)
def test_labels_decide_nothing(case: str, tmp_path: Path) -> None:
    assert difference(case, 1, tmp_path) == ""
