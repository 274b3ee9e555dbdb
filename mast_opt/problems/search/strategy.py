"""Strategies: which algorithm a solver runs on an instance, decided in one place before it runs.

A solver has one function ``choose_strategy`` from the size of the instance, the objective, the budget and the
parameters to a frozen subclass of ``Strategy``, hands the answer to ``SearchMonitor.chose``, and follows it. The
strategy is logged and kept in the plan.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass

from mast_opt.problems.search.params import Value, value_text

LOG = logging.getLogger("mast_opt")
"""The logger of the library, silent unless it gets a handler: INFO for begin and end of a solve, its parameters and
strategy, DEBUG for events."""
LOG.addHandler(logging.NullHandler())


@dataclass(frozen=True)
class Strategy:
    """Decisions of a solver on one instance: numbers, texts, truth values, tuples of these, or records of them."""

    @property
    def facts(self) -> dict[str, Value]:
        """Field → value, for files; ``schedule.race`` for the field of a field that is a record."""
        return dict(_flat(self, ""))

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value_text(value) or 'none'}" for name, value in self.facts.items())


def _flat(record: object, before: str) -> Iterator[tuple[str, Value]]:
    """(full name, value) of the fields of a strategy, those of records inside too."""
    names = [one.name for one in fields(record)] if is_dataclass(record) else list(getattr(record, "_fields", ()))
    for name in names:
        value = getattr(record, name)
        if is_dataclass(value) or hasattr(value, "_fields"):
            yield from _flat(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value
