"""What an adapter makes of an instance, with a stand-in for the library of its peer, which is not installed here."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from mast_opt.planner.io import read, write
from tests.bench.conftest import INSTANCES

ADAPTERS = INSTANCES.parent / "benchmarks" / "peers"


@pytest.mark.parametrize(
    ("adapter", "instance", "item", "container"),
    [
        ("rebalancer_servers", "server_assignment/shared-pool", "s11", "nobody"),
        ("rebalancer_servers", "server_assignment/repair-first", "s11", "web"),
        ("rebalancer_data", "data_placement/two-regions", "dataset clicks", "east"),
    ],
)
def test_objects_begin_in_the_container_that_has_them_today(
    adapter: str, instance: str, item: str, container: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that an adapter reads lacks columns without any value: in the first instance nobody has anything."""
    library = MagicMock()
    for name in ("rebalancer", "rebalancer_common", adapter):
        monkeypatch.setitem(sys.modules, name, library)
    for name in ("rebalancer_common", adapter):
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(ADAPTERS))
    write(read(INSTANCES / instance), tmp_path / "instance.json")
    import_module(adapter).question(json.loads((tmp_path / "instance.json").read_text()))
    named = library.ProblemSolver.return_value.set_object_name.return_value.set_container_name.return_value
    (inside,) = named.set_assignment.call_args.args
    assert item in inside[container]
