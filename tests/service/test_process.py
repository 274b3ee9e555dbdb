"""``mast-opt serve`` as a process: killed; and its page in a real browser."""

from __future__ import annotations

import json
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.platforms import BROWSER, needs
from tests.service.kills import Service, run


@needs("signals")
def test_a_service_that_is_killed_loses_nothing(tmp_path: Path) -> None:
    assert "none lost, none twice" in run(3, 1, tmp_path / "state")


@needs("signals")
@needs("browser")
@pytest.mark.parametrize("width", [1200, 390])
def test_the_page_in_a_browser(tmp_path: Path, width: int) -> None:
    service = Service(tmp_path / "state")
    try:
        jobs = [{"job": f"train-{number}", "gpus": 8, "duration_s": 900, "tier": 0} for number in range(3)]
        body = json.dumps([*jobs, {"job": "too-large", "tasks": 1000, "gpus": 8}]).encode()
        headers = {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(service.url + "v1/jobs", body, headers)) as answer:
            assert answer.status == 201
        assert BROWSER is not None
        flags = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},2000"]
        command = [BROWSER, *flags, f"--user-data-dir={tmp_path / 'profile'}", "--virtual-time-budget=3000"]
        shown = subprocess.run([*command, "--dump-dom", service.url], capture_output=True, text=True, check=True).stdout
    finally:
        service.end(signal.SIGKILL)
    assert "train-1" in shown
    assert "too-large" in shown
    assert shown.count('class="cell"') > 10
    assert 'id="problem" class="bad" role="status"></p>' in shown
