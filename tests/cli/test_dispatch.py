"""``mast-opt dispatch`` against the stand-in over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from mast_opt.cli.commands import dispatch
from mast_opt.live.hosts.kueue.dispatcher import Decision
from tests.cli.conftest import Call
from tests.hosts.kueue.http_stand_in import served
from tests.hosts.kueue.objects import pods, workload
from tests.hosts.kueue.test_dispatcher import Clusters


@pytest.fixture
def clusters() -> Clusters:
    clusters = Clusters({"east": 8, "west": 64})
    clusters.submit(workload("w", pods(8, 2)))
    return clusters


@pytest.fixture
def kubeconfig(clusters: Clusters, tmp_path: Path) -> Iterator[Path]:
    with (
        served(clusters.manager, tmp_path) as manager,
        served(clusters.workers["east"], tmp_path) as east,
        served(clusters.workers["west"], tmp_path) as west,
    ):
        merged = yaml.safe_load(Path(manager).read_text())
        for name, path in (("east", east), ("west", west)):
            one = yaml.safe_load(Path(path).read_text())
            merged["clusters"].append({"name": name, "cluster": one["clusters"][0]["cluster"]})
            merged["contexts"].append({"name": f"{name}-admin", "context": {"cluster": name, "user": "me"}})
        (tmp_path / "merged").write_text(yaml.safe_dump(merged))
        yield tmp_path / "merged"


WORKERS = ("--worker", "east=east-admin", "--worker", "west=west-admin")


def test_one_turn(call: Call, clusters: Clusters, kubeconfig: Path) -> None:
    shadow = call("dispatch", "--kubeconfig", kubeconfig, *WORKERS, "--once", "--shadow", "--json")
    assert shadow.code == 0
    (decision,) = shadow.record["decisions"]
    assert (decision["clusters"], decision["done"]) == (["west"], False)
    assert "nominatedClusterNames" not in clusters.status("w")
    done = call("dispatch", "--kubeconfig", kubeconfig, *WORKERS, "--once")
    assert "1 decision, 1 carried out." in done.out
    assert clusters.status("w")["nominatedClusterNames"] == ["west"]


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["--worker", "east", "--once"], "expected NAME=CONTEXT"),
        (["--worker", "a=b", "--worker", "a=c", "--once"], "a is given twice"),
        (["--worker", "a=b", "--json"], "--once"),
        (["--worker", "a=b", "--kubeconfig", "none", "--once"], "cannot be reached"),
        (["--worker", "a=b", "--replicas", "none", "--once"], "none cannot be read"),
        (["--worker", "a=b", "--hook", "gates", "--once"], "go with mast-opt serve"),
    ],
)
def test_what_cannot_be_done_is_named(call: Call, tokens: list[str], words: str) -> None:
    ended = call("dispatch", *tokens)
    assert ended.code in (1, 2)
    assert words in ended.err


def test_only_what_is_new_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    show = dispatch._printer({})
    first = Decision("default/w", "wait", (), "fits nowhere now")
    show([first])
    show([first])
    show([Decision("default/w", "nominate", ("east",), "east: fits", done=True)])
    assert capsys.readouterr().out.count("\n") == 2
