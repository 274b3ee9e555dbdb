#!/usr/bin/env bash
# cvxpy_leximin: method="saturation" ends 1% early, with status "optimal"; method="ordered_outcomes" does not.
#
# Versions: cvxpy-leximin 0.5, cvxpy-base 1.9.3, scipy 1.17.1 (its HiGHS), numpy 2.4.6, Python 3.11.
#
# Three jobs with rates a, b, c on linear limits: a <= 1, b <= 1.005, b + c <= 3. Leximin raises the smallest rate, then
# the next smallest: a = 1, then b = 1.005 (nothing else wants that half percent more than b), then c = 1.995.
#
# Expected: both methods of the package give these rates, to the solver's seven digits: the domain is convex, which is what
# the package asks for.
# Seen: ordered_outcomes gives 1, 1.005, 1.995. saturation gives 1, 1, 2 and calls that optimal too: a rate that could rise by
# less than 1% (upper_tolerance = 1.01 by default) counts as saturated, and what it leaves goes to a larger one. With b <= 1.02
# both agree.
#
# Why a user cares: shares that look fair to three digits are not leximin, and the two methods cannot be compared with each
# other or with another solver. Pass upper_tolerance=1.000001 to Problem.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet cvxpy-leximin==0.5 cvxpy-base==1.9.3 scipy==1.17.1 numpy==2.4.6
cat >"$folder/run.py" <<'END'
import cvxpy
import numpy as np
from cvxpy_leximin import Leximin, Problem


def rates(most, method, **tolerances):
    rate = cvxpy.Variable(3)
    limits = [rate >= 0, rate[0] <= 1, rate[1] <= most, rate[1] + rate[2] <= 3]
    problem = Problem(Leximin([rate[0], rate[1], rate[2]]), limits, **tolerances)
    problem.solve(solver="SCIPY", method=method)
    print(f"b <= {most}, {method} {tolerances or ''}: {problem.status}, {rate.value.round(6).tolist()}")
    assert problem.status == "optimal"
    return rate.value


def same(one, other):
    return np.allclose(one, other, atol=1e-6)


assert same(rates(1.005, "ordered_outcomes"), [1, 1.005, 1.995])
assert same(rates(1.005, "saturation"), [1, 1, 2])
assert same(rates(1.005, "saturation", upper_tolerance=1.000001, lower_tolerance=0.99999999), [1, 1.005, 1.995])
assert same(rates(1.02, "ordered_outcomes"), [1, 1.02, 1.98])
assert same(rates(1.02, "saturation"), [1, 1.02, 1.98])
END
"$folder/venv/bin/python" "$folder/run.py"
