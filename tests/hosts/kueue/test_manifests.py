"""Folders of YAML of Kueue's objects, and what is wrong with some."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from mast_opt.core.errors import InputError
from mast_opt.live.hosts.kueue.manifests import read_manifests
from tests.hosts.kueue.objects import Object, flavor, local_queue, pods, queue, running, workload

JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "q"}},
    "spec": {"parallelism": 3, "template": pods(8)["template"]},
}


def write(path: Path, *objects: Object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump_all(objects))


def write_clusters(tmp_path: Path) -> Path:
    for name, gpus in (("east", 16), ("west", 64)):
        write(tmp_path / f"workers/{name}/queues.yaml", queue(gpus=gpus), flavor(), local_queue())
    listing = {"kind": "List", "items": [running("old", pods(8, 7))]}
    write(tmp_path / "workers/west/workloads.yml", listing)
    write(tmp_path / "manager/waiting.yaml", workload("a", pods(8, 2), datasets="logs"), workload("b", pods(8, 9)), JOB)
    (tmp_path / "replicas.csv").write_text("dataset,cluster\nlogs,east\nlogs,west\n")
    return tmp_path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_clusters(tmp_path)


def test_a_folder(folder: Path) -> None:
    picture = read_manifests(folder)
    assert [one.name for one in picture.clusters] == ["east", "west"]
    assert {one.name for one in picture.waiting} == {"a", "b", "train"}
    assert picture.replicas == {"logs": {"east", "west"}}
    assert next(one for one in picture.waiting if one.name == "train").pod_sets[0].count == 3


def test_one_cluster(tmp_path: Path) -> None:
    write(tmp_path / "all.yaml", queue(), flavor(), local_queue(), workload("a"), running("b"))
    picture = read_manifests(tmp_path)
    assert ([one.name for one in picture.clusters], [one.name for one in picture.waiting]) == ([tmp_path.name], ["a"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", "cannot be read"),
        ("- 3", "expected objects of Kubernetes"),
        ("kind: Workload\nmetadata: 3\n", "metadata is '3'; expected an object"),
        ("!!python/object/apply:os.system [ls]", "cannot be read"),
        ("kind: Workload\nmetadata: {name: w}\nspec: {}\n", "Workload w: it has no podSets"),
        ("kind: Pod\n", "has no ClusterQueue"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "x.yaml").write_text(text)
    with pytest.raises(InputError, match=words):
        read_manifests(tmp_path)


def test_replicas_are_checked(folder: Path) -> None:
    for text, words in (("x\n", "a first line dataset,cluster"), ("dataset,cluster\na,moon\n", "one of east, west")):
        (folder / "replicas.csv").write_text(text)
        with pytest.raises(InputError, match=words):
            read_manifests(folder)
    with pytest.raises(InputError, match="is no folder"):
        read_manifests(folder / "none")
