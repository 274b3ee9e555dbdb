"""No command depends on the spelling of labels: renamed, with rows in their order, an instance has the same answers."""

from __future__ import annotations

import pytest

from tests.every_call import GIVEN
from tests.renamed_commands import WIDE, differences, sources


@pytest.mark.second_tier
@pytest.mark.parametrize("kind", GIVEN)
def test_labels_decide_nothing(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", WIDE)
    _, problem = next(sources(kind, 1))
    calls, found = differences(problem, 1, coarse=True, solvers={})
    assert calls >= 14
    assert found == {}
