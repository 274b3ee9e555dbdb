"""Errors as RFC 9457 has them."""

import json
from collections.abc import Mapping, Sequence

from starlette.responses import Response

PROBLEM = "application/problem+json"
TITLES = {
    400: "Bad request",
    401: "Who are you?",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    408: "Too slow",
    409: "Conflict",
    411: "How long is it?",
    413: "Too large",
    415: "Not JSON",
    421: "Another service",
    422: "Faults in the request",
    429: "Too many requests",
    431: "Too many headers",
    500: "Internal error",
    501: "Not set up",
    503: "Not available now",
}


class Problem(Exception):
    """An answer that says what is wrong.

    Args:
        code: for programs.
        faults: each one in words, where there are several.
    """

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        faults: Sequence[str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail, self.faults = status, code, detail, tuple(faults)
        self.headers = dict(headers or {})

    def body(self) -> str:
        """JSON document of the problem (RFC 9457)."""
        found: dict[str, object] = {
            "type": f"urn:mast-opt:{self.code}",
            "title": TITLES.get(self.status, "Error"),
            "status": self.status,
            "detail": self.detail,
        }
        if self.faults:
            found["faults"] = list(self.faults)
        return json.dumps(found)

    def response(self) -> Response:
        """HTTP response that states the problem."""
        return Response(self.body(), self.status, {"Cache-Control": "no-store", **self.headers}, PROBLEM)
