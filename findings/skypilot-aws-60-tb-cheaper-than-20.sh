#!/usr/bin/env bash
# SkyPilot: what its optimiser charges for data that leaves AWS or Google Cloud falls as the data grows.
#
# Versions: skypilot 0.14.1, Python 3.11.
#
# Expected: prices of transfers are tiers (AWS: 0.09 USD a GB for the first 10 TB, 0.085 for the next 40, 0.07 for the
# next 100), so that more data never costs less; 60 TB out of AWS cost about 5,019 USD.
# Found: Cloud.get_egress_cost(), from which the optimiser has the cost of reading a task's inputs on another cloud, says
# for AWS 1,708 USD for 20,000 GB and 1,408 USD for 60,000 GB: the volume left over after a tier, and not the volume below
# it, is charged at the tier before. For Google Cloud the whole volume moves to the next tier's price: 1,126 USD for
# 10,240 GB and 819 USD for 10,241.
#
# Output seen:
#   aws 20000 GB: 1707.91
#   aws 60000 GB: 1407.91
#   gcp 10240 GB: 1126.40
#   gcp 10241 GB: 819.28
#
# Why a user cares: a task with `inputs: {s3://corpus: 60000}` is sent to another cloud although the transfer costs more
# than the cheaper GPUs save.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet skypilot==0.14.1 >"$folder/pip.log" 2>&1 || { cat "$folder/pip.log"; exit 1; }

HOME=$folder "$folder/venv/bin/python" - <<'PY'
from sky.clouds import AWS, GCP

found = {}
for cloud, volumes in ((AWS(), (20_000, 60_000)), (GCP(), (10_240, 10_241))):
    for gigabytes in volumes:
        name = str(cloud).lower()
        found[name, gigabytes] = round(cloud.get_egress_cost(num_gigabytes=gigabytes), 2)
        print(f"{name} {gigabytes} GB: {found[name, gigabytes]:.2f}")
assert found["aws", 20_000] == 1707.91, found
assert found["aws", 60_000] == 1407.91, found
assert found["gcp", 10_240] == 1126.40, found
assert found["gcp", 10_241] == 819.28, found
PY
