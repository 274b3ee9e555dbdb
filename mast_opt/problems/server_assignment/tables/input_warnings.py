"""Input warnings of server assignment: values that are allowed and were probably not meant."""

import numpy as np

from mast_opt.core.input_warning import InputWarning
from mast_opt.core.units import MILLI
from mast_opt.problems.kind.plausibility import Plausibility
from mast_opt.problems.kind.schema import Tables
from mast_opt.problems.server_assignment.tables.schema import SCHEMA


def warnings(tables: Tables) -> tuple[InputWarning, ...]:
    """Suspicious values in the tables: server types, reservations larger than the fleet, units."""
    found = Plausibility(SCHEMA, tables)
    types, claims = len(tables.axes["type"]), len(tables.axes["reservation"])
    servers = np.bincount(tables.get("servers", "type"), minlength=types)
    reservation, kind = tables.get("values", "reservation"), tables.get("values", "type")
    useful = np.zeros(claims, np.bool_)
    useful[reservation[servers[kind] > 0]] = True
    stranded = np.zeros(types, np.bool_)
    stranded[kind[~useful[reservation]]] = True
    found.unsupplied("values", "type", servers > 0, "no server is of this type", every=stranded)
    found.spellings("servers", "type")
    worth = np.zeros(claims)
    np.add.at(worth, reservation, tables.get("values", "rru") * servers[kind].astype(np.float64))
    asked, claim = tables.get("reservations", "rru"), tables.get("reservations", "reservation")
    rows = np.flatnonzero(asked > worth[claim])
    in_all = [f"({worth[claim[row]] / MILLI:,.6g} RRU)" for row in rows]
    messages = [f"more than all servers together are worth to it {amount}" for amount in in_all]
    found.cells("reservations", "rru", rows, messages, "check the unit of rru here and in the table values")
    found.outliers("reservations", "rru")
    found.outliers("values", "rru", small_too=True)
    return tuple(found.found)
