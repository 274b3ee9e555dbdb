#!/usr/bin/env bash
# HiGHS, goals in an order of priority: "Optimal" and the gap are those of the last goal, and the objective reads 0.
#
# Versions: highspy 1.16.0, Python 3.11.
# Program: 40 jobs on 5 regions of different size. First goal: the largest load over size; second: jobs that move.
# mip_rel_gap is 0.05.
# Expected: an answer that stops 5% above the bound of the first goal says so, as a run of that goal alone does, and
# states a value of an objective.
# What happens: each goal is a solve of its own, and what is stated is the last one's. The status is "Optimal", the gap
# 0, the bound is the number of moves, and objective_function_value is 0, below that bound.
# Why a user cares: who solves for the least overload first and the fewest moves next reads "Optimal, gap 0" for a plan
# whose overload is above what is possible, and logs 0. Values have to be computed from the columns, and the gap
# of each goal but the last is nowhere to be read: solve goal by goal where it matters.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet highspy==1.16.0 numpy
"$folder/venv/bin/python" - <<'PYTHON'
import highspy
import numpy as np

JOBS, REGIONS, GAP = 40, 5, 0.05
random = np.random.default_rng(0)
GPUS = random.integers(50, 400, JOBS)
MOVES = np.append(random.integers(0, 2, JOBS * REGIONS), 0).astype(float)
WORST = np.zeros(JOBS * REGIONS + 1)
WORST[-1] = 1.0


def program(gap):
    solver = highspy.Highs()
    for name, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", gap), ("blend_multi_objectives", False)):
        solver.setOptionValue(name, value)
    runs = [[solver.addVariable(0, 1, type=highspy.HighsVarType.kInteger) for _ in range(REGIONS)] for _ in range(JOBS)]
    worst = solver.addVariable(0, 1e6)
    for job in runs:
        solver.addConstr(sum(job) == 1)
    for region in range(REGIONS):
        load = sum(int(gpus) * job[region] for gpus, job in zip(GPUS, runs))
        solver.addConstr(load - (1 + region / 10) * worst <= 0)
    return solver


def answer(gap, goals):
    solver = program(gap)
    for at, coefficients in enumerate(goals):
        goal = highspy.HighsLinearObjective()
        goal.coefficients, goal.weight, goal.offset, goal.priority = list(coefficients), 1.0, 0.0, 10 - at
        goal.abs_tolerance = goal.rel_tolerance = 0.0
        solver.addLinearObjective(goal)
    solver.run()
    info, columns = solver.getInfo(), np.array(solver.getSolution().col_value)
    status = solver.modelStatusToString(solver.getModelStatus())
    print(f"{len(goals)} goals: {status}, objective {info.objective_function_value:g}, bound {info.mip_dual_bound:.2f}, "
          f"gap {info.mip_gap:.4f}; worst load {WORST @ columns:.2f}, {MOVES @ columns:.0f} moves")
    return status, info.objective_function_value, info.mip_dual_bound, info.mip_gap, WORST @ columns, MOVES @ columns


alone = answer(GAP, [WORST])
both = answer(GAP, [WORST, MOVES])
assert alone[0] == both[0] == "Optimal"
assert alone[3] > 0.001 and alone[4] > alone[2], "the first goal alone is solved to its end: no gap to be lost"
assert both[4] > alone[2] * 1.001, "both goals: the first one is at its bound"
assert both[3] == 0.0 and both[5] > 0 and abs(both[2] - both[5]) < 1e-6, "the gap stated is no longer the last goal's"
assert both[1] == 0.0, "a value of an objective is stated now"
PYTHON
