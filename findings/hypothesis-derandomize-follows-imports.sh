#!/usr/bin/env bash
# Hypothesis: derandomize=True, and a test's verdict still depends on which other test files run.
#
# hypothesis 6.170.17, pytest 9.2.0, Python 3.11
#
# Expected: the documentation says that with derandomize=True "every run will test the same set of test cases until you update Hypothesis,
# Python, or the test function". So test_share.py passes or fails, whatever else is in the pytest run.
# What happens: it passes by itself, on every run. Run after another test file that imports a module of the project, it fails, also on
# every run. The two files share nothing; neither the test nor what it calls has changed. Hypothesis reads the literal constants of every
# module of the project that happens to be in sys.modules (here 777456 of fleet.py) and draws about one value in forty from them.
# Output seen:
#   alone:       1 passed      1 passed
#   with others: 1 failed, 1 passed (x=777456)      1 failed, 1 passed (x=777456)
# Why a user cares: a suite is derandomised so that the gate, a colleague and pytest-xdist see the same examples. With xdist the modules in
# a worker depend on which files it was handed, so that the same commit passes and fails; running the failing file by itself passes, and so
# does bisecting, since a constant in an unrelated module is enough to change the examples of every test.
set -euo pipefail

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check hypothesis==6.170.17 pytest==9.2.0
mkdir "$work/project"
cd "$work/project"
unset CI

cat > fleet.py << 'END'
LARGEST_CLUSTER_MGPU = 777456
END
cat > test_fleet.py << 'END'
import fleet

def test_there_is_a_largest_cluster():
    assert fleet.LARGEST_CLUSTER_MGPU > 0
END
cat > test_share.py << 'END'
from hypothesis import given, settings, strategies as st

def share(mgpu):
    return "whole" if mgpu == 777456 else "part"

@settings(derandomize=True, max_examples=400)
@given(st.integers(0, 10**6))
def test_it_is_a_part(x):
    assert share(x) == "part"
END

tests() {
  "$work/venv/bin/python" -m pytest -q -p no:cacheprovider "$@" > out.txt 2>&1 || true
  echo "$(tail -n 1 out.txt | sed 's/ in .*//')$(grep -o 'x=[0-9]*' out.txt | head -n 1 | sed 's/.*/ (&)/' || true)"
}
for run in 1 2; do echo "alone: $(tests test_share.py)" | tee -a alone.txt; done
for run in 1 2; do echo "with others: $(tests test_fleet.py test_share.py)" | tee -a others.txt; done
[[ $(grep -c "^alone: 1 passed$" alone.txt) == 2 ]]
[[ $(grep -c "^with others: 1 failed, 1 passed (x=777456)$" others.txt) == 2 ]]
