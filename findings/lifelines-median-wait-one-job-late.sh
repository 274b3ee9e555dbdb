#!/usr/bin/env bash
# lifelines: the median wait of six jobs is the fourth, and with weights in tenths the last job never starts.
#
# Versions: lifelines 0.30.3, statsmodels 0.15.0, numpy 2.4.6, pandas 2.3.3, SciPy 1.17.1, Python 3.11.
#
# Kaplan-Meier is the usual estimate of waiting times where some jobs were cancelled before they started. Here all of them start.
#
# Expected: the median is the first wait after which at most half of the jobs are still waiting: the third of six, as it is the
# second of four and the fifth of ten. After the last start nobody waits, whatever the weights (a job's share of the GPUs).
# Found: the estimate is exp of a sum of logs. After 3 of 6 it is 0.5000000000000001, and the comparison with 0.5 is exact, so the
# median is the next wait. This is so for 24 of the 100 even numbers of jobs up to 200; scikit-survival 0.28.0 has no median, but
# the same comparison with its curve errs for 49 of them. With weights in tenths, the number at risk is a rounded difference,
# the logarithm of "at risk - started" is that of a negative number, and the NaN is skipped: the curve stays where it was. The
# one warning about such weights is of variances.
#
# Output seen:
#   waits of 1, 2, 60, 90 minutes: median 2
#   waits of 1, 2, 5, 60, 90, 120 minutes: median 60
#   even numbers of jobs up to 200 with a late median: 24
#   weights 2, 1, 1: [0.5, 0.25, 0.0], mean wait 40 minutes
#   weights 0.2, 0.1, 0.1: [0.5, 0.25, 0.25], mean wait within a day 380 minutes, statsmodels [0.5, 0.25, 0.0]
#
# Why a user cares: "half of the jobs start within an hour" is the figure that a queue is judged by. In small groups (one team,
# one GPU model) it can be many times too large, and a GPU-weighted mean grows with the horizon.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet lifelines==0.30.3 statsmodels==0.15.0 numpy==2.4.6 pandas==2.3.3 scipy==1.17.1
cat >"$folder/run.py" <<'END'
import warnings

import numpy as np
from lifelines import KaplanMeierFitter
from lifelines.utils import restricted_mean_survival_time
from statsmodels.duration.survfunc import SurvfuncRight

DAY_MINUTES = 24 * 60


def median(waits):
    return KaplanMeierFitter().fit(waits).median_survival_time_


few, more = (1, 2, 60, 90), (1, 2, 5, 60, 90, 120)
for waits in (few, more):
    print(f"waits of {', '.join(map(str, waits))} minutes: median {median(waits):g}")
assert median(few) == 2 and median(more) == 60
assert median(range(1, 11)) == 5

late = [n for n in range(2, 201, 2) if median(range(1, n + 1)) > n // 2]
print("even numbers of jobs up to 200 with a late median:", len(late))
assert 6 in late and len(late) > 10


def weighted(weights):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        curve = KaplanMeierFitter().fit((20, 40, 80), weights=weights)
    assert all("variance" in str(warning.message) for warning in said if issubclass(warning.category, UserWarning))
    found = curve.survival_function_["KM_estimate"].iloc[1:].round(9).tolist()
    return found, restricted_mean_survival_time(curve, t=DAY_MINUTES)


whole, mean_whole = weighted((2, 1, 1))
print(f"weights 2, 1, 1: {whole}, mean wait {mean_whole:.0f} minutes")
assert whole == [0.5, 0.25, 0] and round(mean_whole) == 40
tenths, mean_tenths = weighted((0.2, 0.1, 0.1))
of_statsmodels = SurvfuncRight([20, 40, 80], [1, 1, 1], freq_weights=np.array([0.2, 0.1, 0.1])).surv_prob.round(9).tolist()
print(
    f"weights 0.2, 0.1, 0.1: {tenths}, mean wait within a day {mean_tenths:.0f} minutes, statsmodels {of_statsmodels}"
)
assert tenths == [0.5, 0.25, 0.25] and mean_tenths > 300
assert of_statsmodels == [0.5, 0.25, 0]
END
"$folder/venv/bin/python" "$folder/run.py"
