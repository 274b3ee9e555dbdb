#!/usr/bin/env bash
# HiGHS 1.16: two rows that differ by less than the tolerance, and "Optimal" is 199 where 0.0005 is possible.
#
# Versions: highspy 1.16.0, Python 3.11; 1.12.0, 1.13.1 and 1.15.1 are right.
# Program: task a goes to one of three servers, task b to one of two. Server 1 must keep 0.007 a1 + b1 <= 1 and pays 1000
# for each unit above 0.9999995; the others pay above their own limits; b on server 2 earns 1.
# Expected: a on 2 and b on 1, at 0.0005 (or at 0, as the excess of 5e-7 is within the tolerance of 1e-6).
# What happens: presolve loses that plan. b goes to server 2, 0.2 above its limit: 199, with a bound to match.
# Seen: "default: Optimal 199.0, bound 199.0"; "presolve off: Optimal 0.0, bound 0.0"; "tolerance 1e-9: Optimal 0.0005, bound
# 0.0005".
# Why a user cares: a tolerance should cost 0.0005, and costs 199. A hard limit next to a soft one just below it is how
# capacities with a safety margin are stated. The gap says proven, no warning is given, and it was right in 1.15.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet highspy==1.16.0 numpy
cat >"$folder/two-tasks.lp" <<'LP'
Minimize
 cost: 1000 over1 + 1000 over2 + 1000 over3 - b2
Subject To
 a: a1 + a2 + a3 = 1
 b: b1 + b2 = 1
 hard1: 0.007 a1 + b1 <= 1
 soft1: 0.007 a1 + b1 - over1 <= 0.9999995
 soft2: 0.007 a2 + b2 - over2 <= 0.8
 soft3: 0.007 a3 - over3 <= 0.005
Binary
 a1 a2 a3 b1 b2
End
LP
"$folder/venv/bin/python" - "$folder/two-tasks.lp" <<'PYTHON'
import sys

import highspy


def answer(words, **options):
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    for name, value in options.items():
        solver.setOptionValue(name, value)
    solver.readModel(sys.argv[1])
    solver.run()
    info = solver.getInfo()
    value, bound = round(info.objective_function_value, 9), round(info.mip_dual_bound, 9)
    print(f"{words}: {solver.modelStatusToString(solver.getModelStatus())} {value}, bound {bound}")
    return value


assert answer("default") == 199.0, "the plan is no longer lost"
assert answer("presolve off", presolve="off") == 0.0
assert answer("tolerance 1e-9", mip_feasibility_tolerance=1e-9) == 0.0005
PYTHON
