"""The admin policy over HTTP, with the bodies that SkyPilot 0.14.1 sends, and with SkyPilot itself where it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from mast_opt.cli import main
from mast_opt.core.errors import BackendUnavailable
from mast_opt.live.hosts.skypilot import catalogue
from mast_opt.live.hosts.skypilot.rest import server
from tests.hosts.skypilot.test_advice import EAST, PRICES, WEST, task, write
from tests.platforms import needs

pytestmark = pytest.mark.second_tier
TABLES = {
    "gpus": f"kind,infra,accelerator,gpus\nquota,{EAST},H100,16\nquota,{WEST},H100,16\n",
    "data": f"dataset,infra,gb\ns3://corpus,{EAST},10000\n",
    "transfers": "from,to,usd_per_gb\naws,aws,0.02\n",
}


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    policy = server(write(tmp_path, **TABLES), PRICES, 0)
    thread = threading.Thread(target=policy.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{policy.server_port}/"
    policy.shutdown()
    thread.join()
    policy.server_close()


def post(url: str, body: object) -> tuple[int, str]:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def body(text: str) -> str:
    """As ``UserRequest.encode`` writes it."""
    options = {"cluster_name": None, "idle_minutes_to_autostop": None, "down": False, "dryrun": True}
    return json.dumps({
        "task": text, "skypilot_config": "{}\n", "request_name": "launch", "request_options": options,
        "at_client_side": True, "user": "", "client_api_version": None, "client_version": None,
    })  # fmt: skip


def test_three_requests_of_a_launch_are_answered_alike(url: str) -> None:
    text = yaml.safe_dump(task())
    answers = []
    for _ in range(3):
        status, answer = post(url, body(text))
        assert status == 200
        found = json.loads(json.loads(answer))
        text = found["task"]
        assert found["skypilot_config"] == "{}\n"
        answers.append([one["infra"] for one in yaml.safe_load(text)["resources"]["ordered"]])
    assert answers == [[EAST, WEST]] * 3


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (body(yaml.safe_dump(task(infra="gcp"))), "no place for the task: gpus.csv has no place"),
        (body("a: [b"), "not a request of SkyPilot's admin policy"),
        ({"task": "x"}, "not a request"),
        ("[]", "not a request"),
        (body("[]"), "not a request"),
    ],
)
def test_refusals_are_status_400_with_the_reason(url: str, sent: object, words: str) -> None:
    status, text = post(url, sent)
    assert (status, words in text) == (400, True), text


def test_a_missing_package_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "sky", None)
    with pytest.raises(BackendUnavailable, match=r"pip install 'mast-opt\[skypilot\]'"):
        catalogue.sky_prices()
    assert main(["advise", "skypilot", "task.yaml", "--tables", str(write(tmp_path, **TABLES))]) == 2
    assert "SkyPilot is not installed" in capsys.readouterr().err


HEAD = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"
REAL = """
import sys, threading
from pathlib import Path
import sky
from sky import skypilot_config
from sky.server.requests.request_names import AdminPolicyRequestName
from sky.utils import admin_policy_utils
from mast_opt.live.hosts.skypilot.catalogue import sky_prices
from mast_opt.live.hosts.skypilot.rest import server
policy = server(Path(sys.argv[1]), sky_prices(), 0)
threading.Thread(target=policy.serve_forever, daemon=True).start()
url = f"http://127.0.0.1:{policy.server_port}/"
for location in (url, "mast_opt.live.hosts.skypilot.policy.MastOptPolicy"):
    task = sky.Task.from_yaml(sys.argv[2])
    with skypilot_config.override_skypilot_config({"admin_policy": location}):
        for _ in range(3):
            dag, _ = admin_policy_utils.apply(task, AdminPolicyRequestName.CLUSTER_LAUNCH)
            (task,) = dag.tasks
            print("ANSWER", [str(one.infra.to_str()) for one in task.resources])
try:
    with skypilot_config.override_skypilot_config({"admin_policy": url}):
        admin_policy_utils.apply(
            sky.Task.from_yaml_config({"resources": {"infra": "gcp", "accelerators": "H100:8"}}),
            AdminPolicyRequestName.CLUSTER_LAUNCH,
        )
except sky.exceptions.UserRequestRejectedByPolicy as error:
    print("REFUSED", error)
"""


@needs("skypilot")
def test_skypilot_itself_takes_the_answers(tmp_path: Path) -> None:
    folder = tmp_path / ".sky" / "catalogs" / "v8" / "lambda"
    folder.mkdir(parents=True)
    rows = [
        f"gpu_8x_h100,H100,8,208,1800,H100,{usd},,{region}," for usd, region in ((24, "us-east-1"), (20, "us-west-2"))
    ]
    (folder / "vms.csv").write_text("\n".join([HEAD, *rows, ""]))
    tables = {name: text.replace("aws", "lambda") for name, text in TABLES.items()}
    (tmp_path / "tables").mkdir()
    write(tmp_path / "tables", **tables)
    (tmp_path / "task.yaml").write_text(yaml.safe_dump({"run": "x", **task(), "file_mounts": {"/d": "s3://corpus"}}))
    env = {**os.environ, "HOME": str(tmp_path), "MAST_OPT_SKYPILOT": str(tmp_path / "tables")}
    command = [sys.executable, "-c", REAL, str(tmp_path / "tables"), str(tmp_path / "task.yaml")]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    answers = [line for line in done.stdout.splitlines() if line.startswith("ANSWER")]
    assert answers == ["ANSWER ['lambda/us-east-1', 'lambda/us-west-2']"] * 6
    assert "no place for the task" in done.stdout.partition("REFUSED")[2]
