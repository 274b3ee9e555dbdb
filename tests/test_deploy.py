"""Files for deployment: they are YAML, and name commands and options that there are."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mast_opt.cli.app import COMMANDS
from tests.cli.conftest import Call, call

__all__ = ["call"]
DEPLOY = Path(__file__).parents[1] / "deploy"
MANIFESTS = sorted(DEPLOY.rglob("*.yaml"))


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.name)
def test_manifests_are_objects_of_kubernetes(path: Path) -> None:
    for one in yaml.safe_load_all(path.read_text()):
        assert {"apiVersion", "kind", "metadata"} <= set(one)


def commands() -> list[list[str]]:
    found = []
    for path in MANIFESTS:
        for one in yaml.safe_load_all(path.read_text()):
            if one["kind"] == "Deployment":
                found += [part["args"] for part in one["spec"]["template"]["spec"]["containers"]]
    unit = (DEPLOY / "systemd" / "mast-opt.service").read_text()
    start = next(line for line in unit.splitlines() if line.startswith("ExecStart="))
    found.append(start.split()[1:])
    return found


def test_commands_have_options_that_there_are(call: Call) -> None:
    assert len(commands()) == 4
    for name, *tokens in commands():
        assert name in COMMANDS
        options = call(name, "--help").out
        for token in tokens:
            if token.startswith("--"):
                assert f"{token} " in options
