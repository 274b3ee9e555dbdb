"""Input warnings of task reassignment: values that are allowed and were probably not meant."""

import numpy as np

from mast_opt.core.input_warning import InputWarning
from mast_opt.problems.kind.plausibility import Plausibility, thousandfold
from mast_opt.problems.kind.schema import Tables
from mast_opt.problems.task_reassignment.tables.problem_tables import SCHEMA


def warnings(tables: Tables) -> tuple[InputWarning, ...]:
    """Suspicious values in the tables: processes larger than any machine, and units, resource by resource."""
    found = Plausibility(SCHEMA, tables)
    names = tables.axes["resource"]
    most = np.zeros(len(names), np.int64)
    np.maximum.at(most, tables.get("capacities", "resource"), tables.get("capacities", "capacity"))
    resource, amount = tables.get("needs", "resource"), tables.get("needs", "amount")
    rows = np.flatnonzero(amount > most[resource])
    messages = [f"more {names[resource[row]]} than any machine has ({most[resource[row]]:,})" for row in rows]
    found.cells("needs", "amount", rows, messages, "check the unit")
    of, capacity = tables.get("capacities", "resource"), tables.get("capacities", "capacity")
    for k, name in enumerate(names):
        rows = np.flatnonzero(of == k)
        for which, words in zip(thousandfold(capacity[rows]), ("a thousand times", "a thousandth of")):
            message = f"about {words} the {name} of the other machines"
            found.cells("capacities", "capacity", rows[which], message, "check the unit")
    return tuple(found.found)
