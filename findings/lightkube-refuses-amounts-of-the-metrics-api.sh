#!/usr/bin/env bash
# lightkube: parse_quantity refuses the unit in which the metrics API of Kubernetes states CPU, and one of the two spellings of
# an exponent.
#
# Versions: lightkube 1.0.1, kubernetes 37.0.2 (the other Python client, for comparison), Python 3.11.
#
# `kubectl get --raw /apis/metrics.k8s.io/v1beta1/pods` states CPU in billionths ("156340n"), sometimes in millionths; the API
# server accepts both suffixes and both "1e3" and "1E3" as amounts.
#
# Expected: every amount that the API server writes or accepts is read.
# Seen: "156340n" and "100u" are a ValueError ("Invalid unit suffix"); so is "1E3", while "1e3" is 1000 and "1E" is 10^18.
# The kubernetes client reads all of them.
#
# Why a user cares: comparing use with requests is the first thing that a scheduler does with these amounts. Code that was
# tried on requests ("250m") fails on the first sample of real use, or where a chart writes 1E3.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet lightkube==1.0.1 kubernetes==37.0.2
cat >"$folder/run.py" <<'END'
from kubernetes.utils.quantity import parse_quantity as reference
from lightkube.utils.quantity import parse_quantity


def seen(text: str) -> str:
    try:
        return f"{parse_quantity(text):f}"
    except ValueError as error:
        return f"ValueError: {error}"


found = {text: seen(text) for text in ("250m", "156340n", "100u", "1e3", "1E3", "1E")}
for text, result in found.items():
    print(f"{text:>8}  lightkube {result:<42} kubernetes {reference(text):f}")
assert found["250m"] == "0.250" and found["1e3"] == "1000.000"
assert all(found[text].startswith("ValueError") for text in ("156340n", "100u", "1E3"))
assert found["1E"] == "1000000000000000000.000"
END
"$folder/venv/bin/python" "$folder/run.py"
