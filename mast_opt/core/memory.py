"""Memory that is left, as far as the system reports it."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType

resource: ModuleType | None
try:
    import resource
except ImportError:  # Windows
    resource = None

GB = 10**9


def available_bytes(root: Path = Path("/")) -> int | None:
    """Bytes that this process may still take before the system ends it; None where the system does not report it.

    The least of what the machine has (free memory, caches that can be dropped, and swap), of what its control groups
    (containers, batch systems) leave it, and of what its limit on address space (``ulimit -v``) leaves it. Where a
    system reports only how much memory is built in, that.

    Args:
        root: where ``proc`` and ``sys`` are.
    """
    limits = [limit for limit in (_machine(root), _address_space(root), *_groups(root)) if limit is not None]
    return min(limits, default=None)


def _machine(root: Path) -> int | None:
    """Bytes of memory and swap that the machine has left, as far as it reports them."""
    with suppress(OSError, ValueError, KeyError):
        fields = dict(line.split(":") for line in (root / "proc/meminfo").read_text().splitlines())
        return sum(int(fields[name].split()[0]) * 1024 for name in ("MemAvailable", "SwapFree"))
    return built_in_bytes()


def _address_space(root: Path) -> int | None:
    """Bytes of address space that this process' limit leaves; None without a limit."""
    if resource is None:
        return None
    most = int(resource.getrlimit(resource.RLIMIT_AS)[0])
    if most == resource.RLIM_INFINITY:
        return None
    with suppress(OSError, ValueError, IndexError):
        used = int((root / "proc/self/statm").read_text().split()[0]) * int(resource.getpagesize())
        return max(0, most - used)
    return most


def built_in_bytes() -> int | None:
    """The memory of the machine; None where the system does not report it."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return None


def _groups(root: Path) -> Iterator[int]:
    """Bytes that each control group with a limit on memory leaves: those of this process and those around them.

    Pages of files count as use there, but are dropped before anything is ended.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            top, limit, use, cache = "sys/fs/cgroup", "memory.max", "memory.current", "file"
        elif "memory" in controllers.split(","):
            top, limit, use = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            cache = "total_cache"
        else:
            continue
        group = root / top / path.lstrip("/")
        for folder in (group, *group.parents):
            with suppress(OSError, ValueError, KeyError):  # ValueError: "max", no limit
                most, used = int((folder / limit).read_text()), int((folder / use).read_text())
                dropped = dict(entry.split() for entry in (folder / "memory.stat").read_text().splitlines())[cache]
                yield max(0, most - used + int(dropped))
            if folder == root / top:
                break
