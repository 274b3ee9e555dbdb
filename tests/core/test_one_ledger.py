"""What counts against a quota is compared with it in one class of the product; everything else asks that class."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import mast_opt

PACKAGE = Path(mast_opt.__file__).parent
FLEET, BATCH = "problems/job_placement/live_fleet/", "problems/job_placement/quota_standing.py"


@cache
def modules() -> dict[str, ast.Module]:
    """Path in the package → its module, parsed, where the text has to do with quotas."""
    texts = {path.relative_to(PACKAGE).as_posix(): path.read_text() for path in PACKAGE.rglob("*.py")}
    return {
        name: ast.parse(text)
        for name, text in texts.items()
        if any(word in text for word in ("quota", "ledger", "nominal"))
    }


def of_quotas(module: str) -> bool:
    """Whether a module is of the core's quotas, or imports something of them."""
    imports = (one for one in ast.walk(modules()[module]) if isinstance(one, ast.ImportFrom))
    return module.startswith(("core/ledger", "core/quota")) or any(
        (one.module or "").startswith(("mast_opt.core.ledger", "mast_opt.core.quota", "mast_opt.core.ranks"))
        for one in imports
    )


def calls(name: str) -> dict[str, int]:
    """Module → calls of functions and methods of this name, where quotas are known."""
    found: dict[str, int] = {}
    for module in filter(of_quotas, modules()):
        called = [one.func for one in ast.walk(modules()[module]) if isinstance(one, ast.Call)]
        count = sum(getattr(one, "attr", getattr(one, "id", None)) == name for one in called)
        if count:
            found[module] = count
    return found


def test_whether_amounts_fit_in_what_quotas_leave_is_one_function() -> None:
    """It is defined and called in the ledger only; so is the account of who is beyond its quota."""
    defined = [
        module
        for module in filter(of_quotas, modules())
        for one in ast.walk(modules()[module])
        if isinstance(one, ast.FunctionDef) and one.name == "_fits"
    ]
    assert defined == ["core/ledger.py"]
    assert set(calls("_fits")) == {"core/ledger.py"}


def test_who_asks_the_ledger() -> None:
    """The live fleet for what runs, the batch for its standing, and the current state of an instance."""
    inventory = FLEET + "inventory.py"
    assert calls("standing") == {inventory: 1, BATCH: 1}
    assert calls("displaced") == {inventory: 1, BATCH: 1}
    assert calls("right") == {inventory: 2, BATCH: 3}
    assert calls("excess") == {"core/ledger.py": 1, "problems/job_placement/analysis/current_state.py": 1}
    assert calls("may_hold").keys() == {"core/ledger.py", FLEET + "fleet.py"}


def test_the_amount_of_a_quota_is_read_by_few() -> None:
    """By the ledger and Kueue's admission, which has quotas of its own in the same tree, and to store or show it."""
    readers = {
        module
        for module, tree in modules().items()
        if any(isinstance(one, ast.Attribute) and one.attr == "nominal" for one in ast.walk(tree))
    }
    kueue = {"live/hosts/kueue/admission.py", "live/hosts/kueue/places.py"}
    shown = {FLEET + "snapshot_format.py", "live/service/views.py", "live/loop/snapshot.py"}
    others = {"problems/data_placement/generate/standard.py"}
    """Types of GPUs and sizes of jobs, not quotas."""
    assert readers - others == {"core/ledger.py", "core/quotas.py", "core/quota_tree.py"} | kueue | shown
