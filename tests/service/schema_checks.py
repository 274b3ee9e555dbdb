"""Checks of schemathesis, loaded by it: what the document says is right is not refused for its form.

Some requests that fit the document are refused all the same, for what they mean: a key that came with another request,
a server that nobody knows, half a GPU too much. And 4.0 is a whole number in a document, but not for the service.
"""

from __future__ import annotations

from typing import Any

import schemathesis

FORM = ("the body: ", "job 0: ", "is no JSON", "expected letters, digits", "expected a whole number from 1")


@schemathesis.check
def form_is_accepted(ctx: Any, response: Any, case: Any) -> None:
    """A body or parameter that fits the document is not said to have the wrong form."""
    if response.status_code in (400, 413, 415, 422) and case.meta.generation.mode.is_positive:
        detail = response.json()["detail"]
        means = "whole GPUs" in detail or "got `float`" in detail
        assert means or not any(words in detail for words in FORM), f"{case.method} {case.path}: {detail}"


@schemathesis.check
def a_refusal_is_a_problem(ctx: Any, response: Any, case: Any) -> None:
    """Every refusal has the form of RFC 9457 and the reason in words."""
    if response.status_code >= 400:
        assert response.headers["content-type"] == ["application/problem+json"], response.headers
        found = response.json()
        assert found["status"] == response.status_code
        assert found["detail"]
