"""Draws report.png: the top of the page that ``mast-opt report`` writes for a plan of the real instance.

.venv/bin/python docs/images/draw_report.py instances/data_placement/best_known/cloud-regions    (needs Chromium)
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

import mast_opt
from mast_opt.planner.io import read_events, read_plan_of

HERE = Path(__file__).resolve().parent
INSTANCE = HERE.parents[1] / "instances" / "data_placement" / "cloud-regions"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("plan", type=Path)
    parser.add_argument("--instance", type=Path, default=INSTANCE)
    parser.add_argument("--size", default="1180,1930")
    given = parser.parse_args()
    problem = mast_opt.read(given.instance)
    reading = read_plan_of(problem, given.plan)
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        parser.error("there is no Chromium on this machine (Debian: apt install chromium)")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        events = read_events(given.plan)
        mast_opt.write_report(problem, reading.plan, page, fields=reading.fields, events=events)
        options = ["--headless", "--no-sandbox", "--hide-scrollbars", "--blink-settings=preferredColorScheme=1"]
        shot = [f"--screenshot={HERE / 'report.png'}", f"--window-size={given.size}", page.as_uri()]
        subprocess.run([browser, *options, *shot], check=True, capture_output=True)


if __name__ == "__main__":
    main()
