"""The service against its OpenAPI document: schemathesis sends what the document allows, and what it does not.

    python -m tests.service.schema_run --examples 200 --seed 1

Streams are left out: they do not end. Needs the dependency group ``schema``.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.service.processes import Service

STREAMS = "stream$|solves/.*/events$"
LEFT_OUT = "positive_data_acceptance"
"""Replaced by ``form_is_accepted``."""
SETTINGS = """
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 409, 413, 415, 422, 503]
"""
"""413: more jobs than a list may have."""


def run(examples: int, seed: int, folder: Path) -> str:
    """Raises AssertionError with what schemathesis found."""
    service = Service(folder, "--rate", "1000000")
    settings = folder / "schemathesis.toml"
    settings.write_text(SETTINGS)
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(settings)),
        *("run", service.url + "openapi.json", "--url", service.url.rstrip("/")),
        *("--checks", "all", "--exclude-checks", LEFT_OUT, "--exclude-path-regex", STREAMS),
        *("--phases", "examples,coverage,fuzzing", "--max-examples", str(examples), "--seed", str(seed)),
        *("--request-timeout", "30", "--generation-database", "none", "--no-color"),
    ]
    environment = {**os.environ, "SCHEMATHESIS_HOOKS": "tests.service.schema_checks"}
    try:
        found = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    finally:
        code = service.end(signal.SIGTERM)
    assert found.returncode == 0, found.stdout + found.stderr
    assert code == 0
    cases = next(line for line in found.stdout.splitlines() if " generated, " in line)
    assert int(cases.split(" generated, ")[0].split()[-1].replace(",", "")) >= examples, cases
    return f"{cases.strip()} by schemathesis, no fault"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(run(given.examples, given.seed, Path(folder) / "state"))


if __name__ == "__main__":
    main()
