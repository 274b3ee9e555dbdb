#!/usr/bin/env bash
# evalys: Workload.from_csv leaves out the first job of every log in the Standard Workload Format, and every cancelled job,
# also one that ran for an hour.
#
# Versions: evalys 4.0.7, pandas 2.2.3, numpy 1.26.4, Python 3.11.
#
# A machine of 4 processors. Job 1 holds all of them for 100 s, job 2 for the next 100 s, job 3 ran for 3,600 s on all four
# until its user cancelled it (status 5 with a run time of its own, as the definition has it), job 4 follows.
#
# Expected: four jobs; 4 processors in use from 0 s to 3,900 s.
# Seen: jobs 2 and 4. The first line after the comments is taken for a line of column names, which the format does not have
# (header=0), and "status <= 1", meant for the parts of checkpointed jobs (2, 3, 4), drops status 5 as well. The load is 0
# while jobs 1 and 3 run, and job 4's wait of an hour has no cause.
#
# Why a user cares: utilisation and waits of the public logs come out too low, without a word; in logs where a tenth of the
# jobs are cancelled while they run, a tenth of the load is missing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet evalys==4.0.7 pandas==2.2.3 numpy==1.26.4
cat >"$folder/log.swf" <<'END'
; Version: 2.2
; MaxNodes: 4
; MaxProcs: 4
; UnixStartTime: 0
1 0 0 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1
2 0 100 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1
3 10 190 3600 4 -1 -1 4 7200 -1 5 1 1 1 1 1 -1 -1
4 20 3780 100 4 -1 -1 4 100 -1 1 1 1 1 1 1 -1 -1
END
cat >"$folder/run.py" <<'END'
import sys
import warnings

warnings.simplefilter("ignore")
from evalys.workload import Workload

found = Workload.from_csv(sys.argv[1])
jobs = found.df["jobID"].tolist()
load = found.utilisation["load"]
print("jobs:", jobs)
print("processors in use at 50 s:", load.asof(50), " at 1,000 s:", load.asof(1000), " at 3,850 s:", load.asof(3850))
assert jobs == [2, 4]
assert not load.asof(50) > 0
assert load.asof(1000) == 0
assert load.asof(3850) == 4
END
MPLBACKEND=Agg "$folder/venv/bin/python" -W ignore "$folder/run.py" "$folder/log.swf"
