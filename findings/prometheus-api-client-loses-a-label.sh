#!/usr/bin/env bash
# prometheus-api-client: two series that differ in a label called "value" (or "timestamp") become one in the data frame, and
# a mean by labels mixes them.
#
# Versions: prometheus-api-client 0.7.2, pandas 3.1.1, Python 3.11.
#
# An answer of /api/v1/query_range as Prometheus gives it: GPUs by quota, of which the label value says which one it is
# ("value" is an ordinary label name; labels such as quantile, le and value come from exporters).
#
# Expected: the label is kept beside the figure, under another name if need be, or the clash is refused.
# Seen: the figure takes the label's column. The frame has no trace of the label, its rows cannot be told apart, and a group-by
# over all labels that are left gives 5.0, the mean of a limit of 8 and a use of 2.
#
# Why a user cares: the usual next step, groupby(labels).value.mean(), answers with a number that no series has.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet prometheus-api-client==0.7.2 pandas==3.1.1
cat >"$folder/run.py" <<'END'
from prometheus_api_client import MetricRangeDataFrame, MetricSnapshotDataFrame

labels = {"__name__": "gpu_quota", "team": "ads"}
ranges = [
    {"metric": {**labels, "value": which}, "values": [[0, figure], [60, figure]]}
    for which, figure in (("limit", "8"), ("used", "2"))
]
frame = MetricRangeDataFrame(ranges)
print(frame)
assert sorted(frame.columns) == ["__name__", "team", "value"]
assert "limit" not in frame.to_string()
means = frame.groupby(["__name__", "team"])["value"].mean().tolist()
print("means by what is left of the labels:", means)
assert means == [5.0]
instant = [{"metric": {**labels, "timestamp": "creation"}, "value": [0, "8"]}]
frame = MetricSnapshotDataFrame(instant)
print(frame)
assert "creation" not in frame.to_string()
END
MPLBACKEND=Agg "$folder/venv/bin/python" "$folder/run.py"
