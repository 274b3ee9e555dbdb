"""Strategies: which algorithm a solver runs on an instance, decided in one place before it runs.

A solver has one function ``choose_strategy`` from the size of the instance, the objective, the budget and the
parameters to a frozen subclass of ``Strategy``, hands the answer to ``SearchMonitor.chose``, and follows it. The
strategy is logged and kept in the plan.
"""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass

from mast_opt.search.params import Value, value_text

LOG = logging.getLogger("mast_opt.search")


@dataclass(frozen=True)
class Strategy:
    """What a solver does on one instance; every field is a number, a text, a truth value or a tuple of these."""

    @property
    def facts(self) -> dict[str, Value]:
        """Field → value, for files."""
        return asdict(self)

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value_text(value) or 'none'}" for name, value in self.facts.items())
