"""A browser without a window that is driven as a person would: real clicks, and answers to what it asks."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections import deque
from pathlib import Path
from typing import Any

from tests.platforms import BROWSER

FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars")
LONGEST_S = 60.0
VISIBLE = """(() => {
  const found = [...document.querySelectorAll(%s)].find((one) => !%s || one.textContent === %s);
  if (!found) return null;
  found.scrollIntoView({block: "center"});
  const box = found.getBoundingClientRect(), x = box.left + box.width / 2, y = box.top + box.height / 2;
  return found.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
})()"""
"""Middle of the first element of a selector and a text, scrolled to; null where something covers it."""


class Browser:
    """A page in a browser. It speaks the protocol of Chromium's developer tools over a pair of pipes.

    Args:
        width: of the page, in pixels; a window could not be as narrow as a telephone.
        profile: a folder of its own.
    """

    def __init__(self, width: int, profile: Path) -> None:
        assert BROWSER is not None, 'the test lacks needs("browser")'
        asked, self._out = os.pipe()
        self._in, said = os.pipe()
        command = [BROWSER, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}", "about:blank"]
        self._process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{asked} 4>&{said}', "bash", *command],
            pass_fds=(asked, said),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(asked)
        os.close(said)
        self._number, self._rest, self._session = 0, b"", ""
        self.asked: list[str] = []
        """Questions that the page has asked."""
        self.faults: list[str] = []
        """Exceptions in the page that nothing caught."""
        self.replies: deque[str | None] = deque()
        """Replies to the questions that are to come; None for no."""
        target = next(one for one in self.do("Target.getTargets")["targetInfos"] if one["type"] == "page")
        attached = self.do("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime"):
            self.do(f"{domain}.enable")
        shape = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 700}
        self.do("Emulation.setDeviceMetricsOverride", **shape)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def do(self, method: str, **params: Any) -> Any:
        """The result of a command of the protocol."""
        number = self._send(method, params)
        while True:
            message = self._next()
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]

    def _send(self, method: str, params: dict[str, Any]) -> int:
        self._number += 1
        session = {"sessionId": self._session} if self._session else {}
        message = {"id": self._number, "method": method, "params": params, **session}
        os.write(self._out, json.dumps(message).encode() + b"\0")
        return self._number

    def _next(self) -> Any:
        """The next message; questions of the page are answered on the way."""
        while b"\0" not in self._rest:
            more = os.read(self._in, 2**20)
            assert more, "the browser has ended"
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        message = json.loads(text)
        if message.get("method") == "Page.javascriptDialogOpening":
            self.asked.append(message["params"]["message"])
            reply = self.replies.popleft() if self.replies else None
            self._send("Page.handleJavaScriptDialog", {"accept": reply is not None, "promptText": reply or ""})
        elif message.get("method") == "Runtime.exceptionThrown":
            self.faults.append(str(message["params"]["exceptionDetails"]))
        return message

    def value(self, script: str) -> Any:
        """Value of an expression in the page."""
        return self.do("Runtime.evaluate", expression=script, returnByValue=True)["result"].get("value")

    def until(self, script: str) -> Any:
        """Value of an expression in the page as soon as it is true."""
        since = time.monotonic()
        while not (found := self.value(script)):
            assert time.monotonic() - since < LONGEST_S, f"{script} is still {found!r}"
            time.sleep(0.05)
        return found

    def press(self, selector: str, text: str = "") -> None:
        """Press the mouse on the first element of a selector (and a text)."""
        x, y = self.until(VISIBLE % (json.dumps(selector), json.dumps(text), json.dumps(text)))
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.value("0")

    def click(self, selector: str, text: str = "", *, reply: str | None) -> str:
        """Press the mouse, and reply to the question that follows: None for no. Returns the question."""
        before = len(self.asked)
        self.replies.append(reply)
        self.press(selector, text)
        assert len(self.asked) > before, "the page has asked nothing"
        return self.asked[before]

    def type(self, selector: str, text: str) -> None:
        """Press the mouse on a field and type."""
        self.press(selector)
        self.do("Input.insertText", text=text)

    def picture(self, path: Path) -> None:
        """A picture of the whole page."""
        found = self.do("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))
