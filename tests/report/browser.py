"""A real browser without a window, where the machine has one."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.platforms import BROWSER

PROBE = """<script>
addEventListener("load", () => {
  const root = document.documentElement, look = (element) => getComputedStyle(element);
  const paper = () => look(document.body).backgroundColor;
  const seen = {
    width: innerWidth,
    overflow: root.scrollWidth - innerWidth,
    paper: paper(),
    wide: document.querySelectorAll(".wide svg").length && look(document.querySelector(".wide")).display,
    phone: document.querySelectorAll(".phone svg").length && look(document.querySelector(".phone")).display,
    requests: performance.getEntriesByType("resource").length,
    clipped: [...document.querySelectorAll("figure svg text")].filter((text) => {
      const box = text.getBoundingClientRect(), card = text.closest(".card").getBoundingClientRect();
      return box.width && (box.left < card.left || box.right > card.right);
    }).length,
  };
  document.getElementById("theme").click();
  seen.switched = paper();
  const marks = [...document.querySelectorAll("[role=graphics-symbol][aria-label]")];
  const mark = marks.find((one) => one.getBoundingClientRect().width);
  mark.dispatchEvent(new PointerEvent("pointermove", {bubbles: true, clientX: 5, clientY: 5}));
  seen.tip = document.getElementById("tip").textContent === mark.getAttribute("aria-label");
  document.getElementById("theme").click();
  document.getElementById("tip").hidden = true;
  const more = document.querySelectorAll("details");
  more.forEach((one) => { one.open = true; });
  const tables = [...document.querySelectorAll(".scroll")];
  seen.scrolled = tables.filter((one) => one.scrollWidth > one.clientWidth + 1).length;
  more.forEach((one) => { one.open = false; });
  const terms = document.querySelector("table.terms");
  const beyond = ({scrollWidth, clientWidth}) => Math.max(0, scrollWidth - clientWidth - 1);
  seen.compared = Math.max(0, ...[...document.querySelectorAll(".compared .scroll, .compared td")].map(beyond));
  seen.terms = terms ? Math.max(0, terms.offsetWidth - terms.parentElement.clientWidth) : 0;
  parent.postMessage(Object.entries(seen).map(([key, value]) => `${key}=${value}`).join(";"), "*");
});
</script>"""


FRAME = """<body style="margin:0"><iframe src="{page}" width="{width}" height="2400" style="border:0"></iframe>
<script>addEventListener("message", (event) => {{ document.body.dataset.seen = event.data; }});</script></body>"""
"""A window is at least 500 pixels wide, a frame in it is not."""


def look(page: Path, width: int, *, dark: bool) -> dict[str, str]:
    """What a reader of that width and theme gets to see, and a screenshot next to the page."""
    assert BROWSER is not None, 'the test lacks needs("browser")'
    probed = page.with_name(f"{page.stem}-{width}-{'dark' if dark else 'light'}.html")
    probed.write_text(page.read_text(encoding="utf-8").replace("</body>", f"{PROBE}</body>"), encoding="utf-8")
    frame = probed.with_name(f"frame-{probed.name}")
    frame.write_text(FRAME.format(page=probed.name, width=width), encoding="utf-8")
    shot = probed.with_suffix(".png")
    options = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--disable-dev-shm-usage",
        f"--user-data-dir={page.parent / 'profile'}",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
        f"--window-size={max(width, 500)},2400",
        "--virtual-time-budget=4000",
        "--enable-logging=stderr",
    ]
    dumped = _run([BROWSER, *options, "--dump-dom", frame.as_uri()])
    _run([BROWSER, *options, f"--screenshot={shot}", frame.as_uri()])
    assert "Uncaught" not in dumped.stderr
    found = re.search(r'data-seen="([^"]*)"', dumped.stdout)
    assert found, dumped.stderr
    seen = dict(pair.split("=", 1) for pair in found[1].split(";"))
    return {**seen, "shot": str(shot)}


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", timeout=120, check=True)
