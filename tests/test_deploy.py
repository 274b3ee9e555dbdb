"""Files for deployment: they are YAML, and name commands and options that there are."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml

import mast_opt
from mast_opt.cli.app import COMMANDS
from tests.cli.conftest import Call, call
from tests.platforms import needs

__all__ = ["call"]
DEPLOY = Path(__file__).parents[1] / "deploy"
NO_OBJECTS = ("kustomization.yaml", "alerts.yaml")
MANIFESTS = [path for path in sorted(DEPLOY.rglob("*.yaml")) if path.name not in NO_OBJECTS]
KUBERNETES = DEPLOY / "kubernetes"


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


@needs("kubectl")
def test_kustomize_builds_the_folder_for_kubernetes() -> None:
    built = subprocess.run(["kubectl", "kustomize", KUBERNETES], check=True, capture_output=True, text=True).stdout
    found = {one["kind"]: one for one in yaml.safe_load_all(built)}
    assert set(found) == {"ConfigMap", "Deployment", "NetworkPolicy", "Service"}
    assert "url" not in str(found["Deployment"]["spec"]["template"]["spec"]["containers"][0]["args"])


@needs("promtool")
def test_prometheus_takes_the_alerts() -> None:
    subprocess.run(["promtool", "check", "rules", KUBERNETES / "alerts.yaml"], check=True, capture_output=True)


def test_dashboard_and_alerts_ask_for_metrics_that_there_are() -> None:
    pytest.importorskip("prometheus_client")
    source = (Path(mast_opt.__file__).parent / "live" / "service" / "app.py").read_text()
    known = set(re.findall(r'"(mast_opt_[a-z0-9_]+)"', source))
    known |= {f"{name}{end}" for name in known for end in ("_total", "_bucket")}
    dashboard = json.loads((KUBERNETES / "dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    rules = yaml.safe_load((KUBERNETES / "alerts.yaml").read_text())["groups"][0]["rules"]
    asked += [rule["expr"] for rule in rules]
    assert len(rules) == 5
    assert all(rule["annotations"]["summary"] and rule["labels"]["severity"] for rule in rules)
    for expression in asked:
        names = set(re.findall(r"mast_opt_[a-z0-9_]+", expression))
        assert names
        assert names <= known, expression
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in dashboard["panels"]]
    assert len(set(places)) == len(places)
