"""A fingerprint of everything that can change the machine code of a kernel.

Compiled code contains the kernels that it calls and the constants that it reads, whichever module defines them. So the
fingerprint covers the module of the kernel, every module of the same package or of mast_opt that it imports, directly
or through others, and the versions of numba, llvmlite and NumPy. Imports are found in the text of the files, also where
they stand in a function. A module whose name is computed at run time is not found.
"""

import functools
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

import llvmlite
import numba
import numpy as np

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(\.*)([\w.]*)[ \t]+import[ \t]+(\([^)]*\)|[^\n]+)|import[ \t]+([^\n]+))", re.MULTILINE
)
_COMMENT = re.compile(r"#.*")
_PACKAGE = Path(__file__).parents[1]


@functools.cache
def fingerprint(file: Path, module: str) -> str:
    """The fingerprint of a module that defines kernels: 12 hexadecimal digits.

    Args:
        file: the module's file.
        module: its full name, such as ``"mast_opt.problems.task_reassignment.twine.annealing.kernel"``.
    """
    digest = hashlib.blake2b(repr((numba.__version__, llvmlite.__version__, np.__version__)).encode(), digest_size=6)
    for path in sorted(modules_seen(file, module)):
        digest.update(_digest(path))
    return digest.hexdigest()


def modules_seen(file: Path, module: str) -> set[Path]:
    """The files of all modules that a module can see: its own, and what it imports, directly or through others."""
    seen: dict[Path, str] = {}
    waiting = [(file, module)]
    while waiting:
        path, name = waiting.pop()
        if path not in seen:
            seen[path] = name
            waiting += _imported(path, name)
    return set(seen)


@functools.cache
def _imported(path: Path, module: str) -> tuple[tuple[Path, str], ...]:
    """The files, with the names of their modules, that a file imports from its own package and from mast_opt."""
    top, *inside = module.split(".")
    folders = {"mast_opt": _PACKAGE}
    if inside:
        folders[top] = path.parents[len(inside) - (path.name != "__init__.py")]
    found = []
    for name in imports_of(path, module):
        first, *rest = name.split(".")
        if first in folders:
            stem = folders[first].joinpath(*rest)
            found += [(file, name) for file in (stem / "__init__.py", stem.with_suffix(".py")) if file.is_file()]
    return tuple(found)


def imports_of(path: Path, module: str) -> Iterator[str]:
    """The full names of the modules that a file may import, with repetitions; ``from a import b`` counts as ``a`` and
    ``a.b``."""
    for dots, origin, names, modules in _IMPORT.findall(path.read_text(encoding="utf-8")):
        if modules:
            yield from (name.split()[0] for name in _COMMENT.sub("", modules).split(",") if name.strip())
            continue
        if dots:
            levels = len(dots) - (path.name == "__init__.py")
            parent = module.split(".")[: -levels or None]
            origin = ".".join([*parent, *([origin] if origin else [])])
        yield origin
        listed = _COMMENT.sub("", names).strip("() \t\n")
        yield from (f"{origin}.{name.split()[0]}" for name in listed.split(",") if name.strip())


@functools.cache
def _digest(path: Path) -> bytes:
    """Digest of the content of a kernel's file."""
    return hashlib.blake2b(path.read_bytes(), digest_size=16).digest()
