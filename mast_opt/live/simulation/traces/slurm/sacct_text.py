"""Output of ``sacct --parsable2``: a header line, then one line for each job or step; bars separate fields."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import numpy as np
import polars as pl

from mast_opt.live.simulation.traces.slurm.records import MOST, SacctRow, resources_in, stage_of
from mast_opt.planner.importers.traces.csv_table import columns_of
from mast_opt.planner.io.faults import Faults
from mast_opt.planner.io.raw_table import RawTable, raw_table
from mast_opt.problems.kind.schema import Column, integer, label

ReadT = TypeVar("ReadT")

BAR = "|"
COLUMNS = (
    label("JobID", "job", help="the job"),
    label("Partition", "partition", help="its partition"),
    label("Submit", "time", help="when it was handed in"),
    label("End", "time", help="when it ended"),
    label("Elapsed", "time", help="how long it ran"),
    integer("NNodes", maximum=MOST, help="how many nodes it held"),
    label("AllocTRES", "tres", required=False, help="what it held"),
    label("ReqTRES", "tres", required=False, help="what it asked for"),
    label("Account", "account", required=False, help="its account"),
    label("User", "user", required=False, help="who handed it in"),
    label("QOS", "qos", required=False, help="its quality of service"),
    label("Start", "time", required=False, help="when it started; finds clocks that were changed"),
    label("State", "state", required=False, help="how it ended, or that it was requeued, resized or preempted"),
    label("Timelimit", "time", required=False, help="for how long it might run at most"),
    integer("Restarts", maximum=MOST, required=False, help="how often it was requeued (from Slurm 23.11 on)"),
)
OPTIONAL = ("ReqTRES", "Account", "User", "QOS", "Start", "State", "Timelimit", "Restarts")
FORMAT = ",".join(column.name for column in COLUMNS if column.name != "Restarts")
"""Value that ``sacct --format`` needs."""
_ELAPSED = re.compile(r"(?:([0-9]{1,6})-)?(?:([0-9]{1,6}):)?([0-9]{1,3}):([0-9]{2})(?:\.[0-9]{1,9})?")
_EPOCH = datetime(1970, 1, 1)
UNKNOWN = ("Unknown", "None", "")
"""Values that Slurm writes for a missing time."""
NO_LIMIT = ("", "unlimited", "infinite", "partition_limit", "n/a", "invalid")
"""Values, in small letters, that Slurm writes for the missing time limit of a job or a partition."""


def read_piped(data: bytes, file: str, columns: tuple[Column, ...], faults: Faults) -> RawTable | None:
    """Table of ``sacct`` in a text whose fields are separated by bars. If the text has no table, the result is None and
    ``faults`` says why.
    """
    lines = data.decode("utf-8", "replace").splitlines()
    heads = lines[0].split(BAR) if lines else []
    if columns[0].name not in heads or "\0" in lines[0]:
        expected = f"a first line with names between bars ({BAR.join(column.name for column in columns)})"
        faults.add(file, expected, 1, value=lines[0] if lines else "")
        return None
    rows = [line.split(BAR) for line in lines[1:]]
    uneven = np.array([at for at, row in enumerate(rows) if len(row) != len(heads)], np.int64)
    words = f"{len(heads)} fields between bars, as in the first line; a field that may hold bars, such as JobName, is"
    faults.cells(file, None, uneven + 1, lambda n: lines[1 + uneven[n]], f"{words} best left out")
    if len(uneven):
        return None
    cells = [pl.Series([row[at] for row in rows], dtype=pl.String) for at in range(len(heads))]
    return raw_table(file, heads, cells, faults)


def rows_in_text(data: bytes, file: str, faults: Faults) -> list[SacctRow]:
    """Rows of jobs that ``sacct`` prints, without rows of steps; ``faults`` collects what is wrong with them."""
    raw = read_piped(data, file, COLUMNS, faults)
    if raw is None:
        return []
    if "JobID" in raw.frame.columns:
        job = raw.frame["JobID"].fill_null("").str.contains(".", literal=True).not_()
        raw = RawTable(file, raw.frame.filter(job), np.flatnonzero(job.to_numpy()) + 1)
    table = columns_of(raw, COLUMNS, faults, OPTIONAL)
    if table is None:
        return []
    rows = raw.numbers(np.arange(raw.frame.height)).tolist()
    texts = {name: column.fill_null("").to_list() for name, column in table.labels.items()}
    reading = _Reading(file, rows, texts, faults)
    submitted = reading.column("Submit", _time, "a time such as 2024-05-31T13:45:00")
    started = reading.column("Start", _time_or_none, "a time, or Unknown")
    ended = reading.column("End", _time_or_none, "a time, or Unknown")
    zoned = [one[1] for times in (submitted, started, ended) for one in times if one is not None]
    if any(zoned) and not all(zoned):
        faults.add(
            file, "times of one kind: all with an offset or as seconds, or all by the local clock", column="Submit"
        )
    elapsed = reading.column("Elapsed", _elapsed, "a time such as 1-02:03:04 or 02:03:04")
    stages = reading.column(
        "State", lambda text: stage_of([text] if text else []), "a state of Slurm such as COMPLETED"
    )
    limits = reading.column("Timelimit", limit_in, "a time such as 1-02:03:04 or UNLIMITED")
    held, asked = (
        reading.column(name, resources_in, "resources such as cpu=4,gres/gpu=2,mem=4000M,node=1")
        for name in ("AllocTRES", "ReqTRES")
    )

    def seconds(time: tuple[int, bool] | None) -> int | None:
        return None if time is None else time[0]

    return [
        SacctRow(
            row=row,
            name=texts["JobID"][at],
            submitted_s=seconds(submitted[at]) or 0,
            ended_s=seconds(ended[at]),
            elapsed_s=elapsed[at] or 0,
            stage=stages[at],
            partition=texts["Partition"][at].split(",")[0],
            nodes=int(table.numbers["NNodes"][at]),
            requested=asked[at] or {},
            allocated=held[at] or {},
            account=texts["Account"][at],
            user=texts["User"][at],
            qos=texts["QOS"][at],
            started_s=seconds(started[at]),
            limit_s=limits[at],
            restarts=int(table.numbers["Restarts"][at]),
        )
        for at, row in enumerate(rows)
    ]


class _Reading:
    """Columns of texts that are read cell by cell."""

    def __init__(self, file: str, rows: list[int], texts: dict[str, list[str]], faults: Faults) -> None:
        self._file, self._rows, self._texts, self._faults = file, rows, texts, faults

    def column(self, name: str, read: Callable[[str], ReadT], expected: str) -> list[ReadT | None]:
        """Values of the cells in a column of ``sacct``; an unreadable cell is None and gets a fault."""
        found: list[ReadT | None] = []
        bad: list[int] = []
        for at, text in enumerate(self._texts[name]):
            try:
                found.append(read(text))
            except ValueError:
                found.append(None)
                bad.append(at)
        rows = np.array([self._rows[at] for at in bad], np.int64)
        self._faults.cells(self._file, name, rows, lambda n: self._texts[name][bad[n]], expected)
        return found


def _time(text: str) -> tuple[int, bool]:
    """Time in a row of ``sacct``: seconds since 1970, and whether they are UTC. They are UTC for a number of seconds
    or a time with an offset; a time without an offset is in the local time of the user who ran ``sacct``.
    """
    if text.isascii() and text.isdigit() and len(text) <= 12:
        return int(text), True
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        return int((time - _EPOCH).total_seconds()), False
    return int(time.timestamp()), True


def _time_or_none(text: str) -> tuple[int, bool] | None:
    """Time in a row of ``sacct``; None where Slurm does not know it."""
    return None if text in UNKNOWN else _time(text)


def limit_in(text: str) -> int | None:
    """Seconds of a time limit of Slurm; None for no limit, or for that of the partition."""
    return None if text.lower() in NO_LIMIT else _elapsed(text)


def _elapsed(text: str) -> int:
    """Seconds of an elapsed time of Slurm, days-hours:minutes:seconds. Raises ValueError."""
    match = _ELAPSED.fullmatch(text)
    if match is None:
        raise ValueError(text)
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
