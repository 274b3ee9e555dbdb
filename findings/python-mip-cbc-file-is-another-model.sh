#!/usr/bin/env bash
# python-mip 2.0.0 with CBC: the file that Model.write makes is not the model that it solved.
#
# Versions: mip 2.0.0 (with its own CBC, and HiGHS 1.15.1 from highsbox), Python 3.11.
#
# Expected: a maximisation of 3 x + 2 y + 5 that is worth 17 is worth 17 again after write("m.lp") and read("m.lp"), and
# write("m.mps") makes m.mps. With solver_name="HIGHS" both hold.
# Seen with solver_name="CBC": the LP file minimises -3 x - 2 y; the constant 5 is gone, and the model that is read back
# minimises and is worth -12. No m.mps is there: write("m.mps") made m.mps.mps.gz, and read("m.mps") says that there is no file.
#
# Why a user cares: placement models carry a constant (what today's plan costs) and are exported so that several solvers
# can be compared. Objective, bound and relative gap of the file differ from those of the model by a constant and a
# sign, and nothing says so.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q mip==2.0.0 highsbox==1.15.1
cd "$work"
cat > case.py <<'PY'
import sys
from pathlib import Path

import mip

solver = sys.argv[1]
model = mip.Model(sense=mip.MAXIMIZE, solver_name=solver)
model.verbose = 0
x, y = model.add_var(ub=4, var_type=mip.INTEGER, name="x"), model.add_var(ub=3, name="y")
model.add_constr(2 * x + y <= 7, name="c")
model.objective = mip.maximize(3 * x + 2 * y + 5)
model.optimize()
for name in ("m.lp", "m.mps"):
    model.write(f"{solver}-{name}")
again = mip.Model(solver_name=solver)
again.verbose = 0
again.read(f"{solver}-m.lp")
again.optimize()
files = " ".join(sorted(path.name for path in Path().glob(f"{solver}-m*")))
print(f"{solver}: {model.sense} {model.objective_value:g}, read back {again.sense} {again.objective_value:g}; {files}")
PY
for solver in HIGHS CBC; do "$work/venv/bin/python" case.py $solver 2> /dev/null | grep "read back"; done | tee seen.txt
diff seen.txt - <<'TXT'
HIGHS: MAX 17, read back MAX 17; HIGHS-m.lp HIGHS-m.mps
CBC: MAX 17, read back MIN -12; CBC-m.lp CBC-m.mps.mps.gz
TXT
echo "as described"
