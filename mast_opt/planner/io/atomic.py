"""Files and folders that are replaced as a whole or not at all."""

import ctypes
import errno
import os
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mast_opt.core.errors import InputError

_HERE = -100
"""``AT_FDCWD`` of ``<fcntl.h>``: relative paths are relative to the working folder."""
_EXCHANGE = 2
"""``RENAME_EXCHANGE`` of ``<linux/fs.h>``."""
_CANNOT = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM}


def exchange(one: Path, other: Path) -> bool:
    """Let two paths of an output change places, so that neither name is ever missing; False where the system cannot do
    that.

    Both must exist, on one file system. Linux only (``renameat2(2)``). Raises OSError for anything else that fails.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):  # a C library without it
        return False
    rename.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    rename.restype = ctypes.c_int
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), os.fspath(other))


try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_ADVICE = {
    errno.ENOSPC: "free some space or choose another disk",
    errno.EDQUOT: "free some space or choose another disk",
    errno.EACCES: "choose a folder that you may write to",
    errno.EPERM: "choose a folder that you may write to",
    errno.EROFS: "choose a folder that you may write to",
    errno.ENAMETOOLONG: "choose a shorter name",
}


def check_free(target: Path, *, force: bool) -> None:
    """Raises InputError where an output file is to be written and something is there that may not be replaced: a
    folder, or without ``force`` anything.
    """
    if target.is_dir():
        raise InputError(f"{target} exists already, as a folder; choose the name of a file")
    if target.exists() and not force:
        raise InputError(
            f"{target} exists already; choose another path, or overwrite it (--force; in Python, force=True)"
        )


def check_writable(target: Path) -> None:
    """Raises InputError where nothing can be written at the target: asked before hours of work, not after."""
    with _explained(target):
        real = _followed(target)
        if real.is_mount():
            raise InputError(f"{target} is a mount point, which cannot be replaced; choose a folder inside it")
        place = next(path for path in real.parents if path.exists())
        probe = _temporary(place / real.name)
        probe.touch()
        probe.unlink()


@contextmanager
def new_file(target: Path) -> Iterator[Path]:
    """A path to write to; it takes the target's place when the block ends well. Raises InputError for OS errors."""
    real = _followed(target)
    with _explained(target), _sibling(real) as partial:
        _recover(real)
        partial.touch()
        with _in_use(partial):
            yield partial
            _flush(partial)
        partial.replace(real)
        _flush(real.parent)


@contextmanager
def new_folder(target: Path, replaceable: Callable[[Path], None]) -> Iterator[Path]:
    """An empty folder to fill; it takes the target's place when the block ends well. Raises InputError for OS errors.

    ``replaceable(target)`` raises where something stands at the target that must stay. Where that has come only while
    the folder was filled, or the folder cannot take its place, it is kept under a name that the InputError states.
    """
    real = _followed(target)
    with _explained(target):
        _recover(real)
        replaceable(target)
        with _sibling(real) as partial:
            partial.mkdir()
            with _in_use(partial):
                yield partial
                for path in partial.iterdir():
                    _flush(path)
                _flush(partial)
            with _kept_under_another_name(partial, real):
                replaceable(target)
                _swap(partial, real)
            _flush(real.parent)


@contextmanager
def _kept_under_another_name(partial: Path, target: Path) -> Iterator[None]:
    """Gives the complete folder a name of its own where the block fails, and states it."""
    try:
        yield
    except (InputError, OSError) as error:
        kept = partial.rename(target.with_name(f"{target.name}-{secrets.token_hex(4)}"))
        reason = str(error) if isinstance(error, InputError) else _reason(target, error)
        raise InputError(f"{reason}. What was to be written there is complete in {kept}") from error


def _swap(partial: Path, target: Path) -> None:
    """Put the partial folder at the target; what was there is removed afterwards, and is back there on failure."""
    if not target.exists():
        partial.rename(target)
        return
    if exchange(partial, target):
        return  # the old folder now has the partial one's name, under which it is removed
    aside = target.with_name(f".{target.name}.previous-{secrets.token_hex(4)}")
    target.rename(aside)
    try:
        partial.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


@contextmanager
def _sibling(target: Path) -> Iterator[Path]:
    """Temporary path next to an output, removed afterwards if it is still there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = _temporary(target)
    try:
        yield partial
    finally:
        with suppress(OSError):
            if partial.is_dir():
                shutil.rmtree(partial)
            else:
                partial.unlink(missing_ok=True)


def _followed(target: Path) -> Path:
    """Path of an output with its symbolic links resolved."""
    return Path(os.path.realpath(target))


def _temporary(target: Path) -> Path:
    """Name of a temporary file or folder next to an output."""
    return target.with_name(f".{target.name}.partial-{secrets.token_hex(4)}")


ABANDONED_S = 3600.0
"""Seconds without a change after which a partial file or folder is abandoned where no lock can say so."""
_GRACE_S = 60.0
"""Seconds in which a writer creates and locks its partial file."""


def previous_of(target: Path) -> list[Path]:
    """Complete earlier folders of a target that a killed process left under another name, the latest first."""
    try:
        found = target.parent.glob(f".{_globbed(target.name)}.previous-*")
        return sorted(found, key=lambda path: path.stat().st_mtime_ns, reverse=True)
    except OSError:
        return []


def _globbed(name: str) -> str:
    """Name of an output as a pattern of ``glob`` that matches it alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _recover(target: Path) -> None:
    """Undo what a killed writer of this output left behind."""
    previous = previous_of(target)
    if previous and not target.exists():
        previous.pop(0).rename(target)
    for path in previous:
        shutil.rmtree(path, ignore_errors=True)
    for path in target.parent.glob(f".{_globbed(target.name)}.partial-*"):
        with suppress(OSError):
            if _is_abandoned(path):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()


def _is_abandoned(path: Path) -> bool:
    """Whether a temporary output belongs to a process that no longer writes it."""
    idle_s = time.time() - path.lstat().st_mtime
    if idle_s < _GRACE_S or path.is_symlink():
        return False
    if fcntl is None:
        return idle_s > ABANDONED_S
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return idle_s > ABANDONED_S
    finally:
        os.close(descriptor)
    return True


@contextmanager
def _in_use(partial: Path) -> Iterator[None]:
    """Lock the partial file or folder while it is written, so that other writers leave it alone."""
    if fcntl is None:
        yield
        return
    descriptor = os.open(partial, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks: its age says whether it is in use
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _flush(path: Path) -> None:
    """Wait until the file, or the folder's list of names, is on the disk (a folder only where the system can)."""
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system without fsync
            raise
    finally:
        os.close(descriptor)


@contextmanager
def _explained(target: Path) -> Iterator[None]:
    """Errors of the system while an output is written as InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{_reason(target, error)}. What was there is unchanged.") from error


def _reason(target: Path, error: OSError) -> str:
    """Reason why an output could not be written, with advice where there is any."""
    advice = _ADVICE.get(error.errno or 0)
    return f"{target} could not be written: {error.strerror or error}{f'; {advice}' if advice else ''}"
