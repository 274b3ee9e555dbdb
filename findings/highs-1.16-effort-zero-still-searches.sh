#!/usr/bin/env bash
# HiGHS 1.16: mip_heuristic_effort = 0 runs every heuristic that the default runs.
#
# Versions: highspy 1.16.0, numpy 2.4.6, Python 3.11.
# Program: a packing of 40 binary columns in 20 rows, one thread.
# Expected: the option is described as the effort spent for MIP heuristics, from 0 to 1; at 0 there are none.
# What happens: the run at 0 is the run at 0.05, node for node: the first solution is the feasibility jump's (J in the log), and
# as many iterations go to heuristics. Four switches end them (mip_heuristic_run_rins, _rens, _feasibility_jump,
# _root_reduced_cost).
# Seen: "effort 0.05, switches as they are: nodes 305, first solution J, iterations in heuristics 1987"; "effort 0, switches as
# they are: nodes 305, first solution J, iterations in heuristics 1987"; "effort 0, switches off: nodes 792, first solution S,
# iterations in heuristics 0".
# Why a user cares: comparing bounds or trees without heuristics, measuring a heuristic of one's own beside the solver, or saving
# time on small programs compares with all of them, without a word.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet highspy==1.16.0 numpy==2.4.6
cd "$folder"
cat > effort.py << 'PYTHON'
import re

import highspy
import numpy as np

SWITCHES = ("rins", "rens", "feasibility_jump", "root_reduced_cost")


def run(effort, off=()):
    rng = np.random.default_rng(5)
    columns, rows = 40, 20
    solver = highspy.Highs()
    solver.setOptionValue("log_to_console", False)
    open("log", "w").close()
    solver.setOptionValue("log_file", "log")
    solver.setOptionValue("threads", 1)
    assert solver.setOptionValue("mip_heuristic_effort", effort) == highspy.HighsStatus.kOk
    for name in off:
        assert solver.setOptionValue(f"mip_heuristic_run_{name}", False) == highspy.HighsStatus.kOk
    x = [solver.addBinary() for _ in range(columns)]
    for row in rng.integers(5, 60, (rows, columns)):
        solver.addConstr(sum(int(a) * v for a, v in zip(row, x)) <= int(row.sum() * 0.35))
    solver.maximize(sum(int(a) * v for a, v in zip(rng.integers(10, 50, columns), x)))
    info = solver.getInfo()
    assert round(info.objective_function_value) == 464, info.objective_function_value
    text = open("log").read()
    first = re.search(r"^ ([A-Z]) ", text, re.M)[1]
    spent = int(re.search(r"(\d+) \(heuristics\)", text)[1])
    found = info.mip_node_count, first, spent
    words = "off" if off else "as they are"
    print(f"effort {effort:g}, switches {words}: nodes {found[0]}, first solution {first}, iterations in heuristics {spent}")
    return found


usual, none, off = run(0.05), run(0.0), run(0.0, SWITCHES)
assert none == usual, "an effort of 0 changes the run"
assert usual[1] == "J" and usual[2] > 0
assert off[2] == 0 and off[1] != "J"
PYTHON
"$folder/venv/bin/python" effort.py
