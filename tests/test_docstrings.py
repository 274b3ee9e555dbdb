"""The first line of a docstring is a noun phrase or a sentence that says what the object is or does."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
NEVER_FIRST = frozenset(
    word
    for line in (
        "about above across after against along among around as at because before behind below beside between beyond",
        "but by during for from if in into like likewise of on once over per see since so than that though through to",
        "towards under unless until upon via what when where which while who whom whose why with within without",
    )
    for word in line.title().split()
)
"""Words with which a fragment begins: prepositions, and pronouns that stand for a noun which is missing."""
FRAGMENTS = ("The same", "How many", "How much", "How long", "How often", "How far")
QUESTION = re.compile(r"(Is|Are|Was|Were|Did|Do|Does|Has|Have|May|Can|Must|Should) [^.]*\?")
"""A question; "Whether" or "True if" says the same as a phrase."""
FEWEST_WORDS = 3
"""Words of a method's first line where its name is a single word, as in ``place`` or ``lines``."""


class Docstring(NamedTuple):
    """A docstring of a module, class or function, or the string below an attribute."""

    where: str
    name: str
    is_method: bool
    text: str


def docstrings(source: str, path: str) -> Iterator[Docstring]:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if not isinstance(body, list):
            continue
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield Docstring(f"{path}:{body[0].lineno}", getattr(node, "name", ""), False, text)
        for target, below in pairwise(body):
            if isinstance(target, ast.Assign | ast.AnnAssign) and _is_text(below):
                yield Docstring(f"{path}:{below.lineno}", "", False, below.value.value.strip())
        if isinstance(node, ast.ClassDef):
            for one in body:
                if isinstance(one, ast.FunctionDef) and "overload" not in map(ast.unparse, one.decorator_list):
                    yield Docstring(f"{path}:{one.lineno}", one.name, True, ast.get_docstring(one) or "")


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def is_fragment(text: str) -> bool:
    first = text.splitlines()[0].strip() if text else ""
    word = re.match(r"\w+(-\w+)?", first)
    if (word and word[0] in NEVER_FIRST) or first.startswith(FRAGMENTS) or QUESTION.match(text):
        return True
    return len(text.split()) < 2


def says_too_little(one: Docstring) -> bool:
    """Whether a stranger who sees a method's one-word name and its first line would not know what it acts on."""
    if not one.is_method or "_" in one.name:
        return False
    return len(one.text.split("\n\n")[0].split()) < FEWEST_WORDS


@cache
def every() -> list[Docstring]:
    found: list[Docstring] = []
    for file in sorted((ROOT / "mast_opt").rglob("*.py")):
        found += docstrings(file.read_text(encoding="utf-8"), file.relative_to(ROOT).as_posix())
    return found


def test_first_lines_are_noun_phrases_or_sentences() -> None:
    found = [f"{one.where}: {one.text.splitlines()[0]}" for one in every() if one.text and is_fragment(one.text)]
    assert not found, "\n".join(["Fragments:", *found])


def test_methods_with_a_name_of_one_word_say_what_they_act_on() -> None:
    found = [f"{one.where}: {one.name}: {one.text}" for one in every() if says_too_little(one)]
    assert not found, "\n".join(["Methods whose first line says too little:", *found])


@pytest.mark.parametrize(
    ("text", "fragment"),
    [
        ("Of a task.", True),
        ("What all of them say.", True),
        ("As ``start``, for who calls ``step``.", True),
        ("See ``Host``.", True),
        ("The same for the same command.", True),
        ("How many are kept.", True),
        ("[W]", True),
        ("Is every share 0 or 1?", True),
        ("Snapshot of a manager and its workers.", False),
        ("In-memory tables as a source.", False),
        ("Whether the run found a plan.", False),
    ],
)
def test_fragments_are_recognised(text: str, fragment: bool) -> None:
    assert is_fragment(text) == fragment
