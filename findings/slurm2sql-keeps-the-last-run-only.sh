#!/usr/bin/env bash
# slurm2sql: of a job that was requeued, the database has the last run only, also from rows of sacct --duplicates.
#
# Versions: slurm2sql 0.9.9, Python 3.11 (its sqlite3).
#
# Job 7 held 4 GPUs for an hour, was requeued (its node was needed), waited an hour more and ended after half an hour.
# sacct --duplicates has a row for each run; the submission of the second one is that of the requeue.
#
# Expected: two runs, or one job with 1.5 h × 4 GPUs = 21,600 GPU seconds, handed in at 08:00.
# Seen: JobID is UNIQUE and rows are put in with INSERT OR REPLACE (update=True, as the history modes of the command do), so the
# second row takes the place of the first: one run of 1,800 s, 7,200 GPU seconds, handed in at 09:00. Nothing is said, and
# the count of errors is 0. (Without update the second row is refused with an IntegrityError.)
#
# Why a user cares: GPU hours per account are too low for exactly those who are preempted most, and their waits look short.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet slurm2sql==0.9.9
cat >"$folder/run.py" <<'END'
import csv
import io
import sqlite3

import slurm2sql

columns = [name for name in [*slurm2sql.COLUMNS, *slurm2sql.COLUMNS_EXTRA] if not name.startswith("_")]
job = {"JobID": "7", "JobIDRaw": "7", "User": "u", "Account": "a", "Partition": "gpu", "NNodes": "1", "NCPUS": "4"}
job |= {"ReqMem": "1000M", "AllocTRES": "cpu=4,gres/gpu=4,mem=1000M,node=1", "ReqTRES": "cpu=4,gres/gpu=4"}
job |= {"TotalCPU": "00:01:00", "CPUTime": "00:04:00", "Timelimit": "1-00:00:00"}


def run(state, submit, start, end, elapsed):
    times = {"Submit": submit, "Start": start, "End": end}
    clock = {name: f"2024-06-01T{time}" for name, time in times.items()}
    return dict.fromkeys(columns, "") | job | clock | {"State": state, "Elapsed": elapsed}


text = io.StringIO()
writer = csv.DictWriter(text, columns)
writer.writeheader()
writer.writerow(run("REQUEUED", "08:00:00", "08:00:00", "09:00:00", "01:00:00"))
writer.writerow(run("COMPLETED", "09:00:00", "10:00:00", "10:30:00", "00:30:00"))
text.seek(0)
database = sqlite3.connect(":memory:")
errors = slurm2sql.slurm2sql(database, update=True, csv_input=csv.DictReader(text))
runs = database.execute("select JobID, State, Elapsed, NGpus from slurm").fetchall()
(gpu_s,) = database.execute("select gpu_s_reserved from eff").fetchone()
print("errors:", errors, " runs:", runs, " GPU seconds:", gpu_s)
assert errors == 0
assert runs == [("7", "COMPLETED", 1800, 4)]
assert gpu_s == 7200
END
"$folder/venv/bin/python" "$folder/run.py"
