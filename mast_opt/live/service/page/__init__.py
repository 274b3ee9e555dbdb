"""A page for operators over the same API: one file when it is served, made of three."""

import base64
import hashlib
from importlib.resources import files


def _read(name: str) -> str:
    """Text of a file of the operators' page."""
    return (files(__package__) / name).read_text(encoding="utf-8")


_STYLE, _SCRIPT = _read("page.css"), _read("page.js")


def _hash(text: str) -> str:
    """Hash of a script or style of the page, as a content security policy states it."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


POLICY = (
    f"default-src 'none'; connect-src 'self'; img-src data:; script-src {_hash(_SCRIPT)}; style-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Content-Security-Policy of the page: no script but its own, no other host."""
PAGE = _read("page.html").replace("/* style */", _STYLE).replace("/* script */", _SCRIPT)
