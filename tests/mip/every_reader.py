"""Every committed instance, as .lp and .mps, in every reader that is installed; the large ones take minutes.

    python -m tests.mip.every_reader

Prints what differs or is refused, with the reader's words, and counts. The exit code is 1 if anything differs.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from pathlib import Path

from tests.mathprog import assert_same
from tests.mip.readers import READERS, REWRITING, limited, written
from tests.mip.test_readers import FOREIGN, NAMES, WRITERS, program_of


def outcomes(name: str, suffix: str) -> dict[str, str]:
    """Reader → ``same``, what differs, or the words with which it refuses the file."""
    mip = program_of(name)
    found: dict[str, str] = {}
    if mip is None:
        return found
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"m{suffix}"
        WRITERS[suffix](mip, path)
        expected = written(mip, suffix)
        for reader, read in READERS.items():
            if (reader, suffix) == FOREIGN:
                continue
            try:
                assert_same(limited(read(path)), expected, rewritten=reader in REWRITING)
                found[reader] = "same"
            except AssertionError as error:
                found[reader] = f"differs: {' '.join(str(error).split())[:200]}"
            except Exception as error:  # each library has exceptions of its own for what its licence leaves out
                found[reader] = f"refused: {' '.join(str(error).split())[:200]}"
    return found


def main() -> int:
    counts: Counter[tuple[str, str, str]] = Counter()
    for name in NAMES:
        for suffix in WRITERS:
            for reader, words in outcomes(name, suffix).items():
                counts[reader, suffix, words.partition(":")[0]] += 1
                if words != "same":
                    print(name, suffix, reader, words, flush=True)
    for (reader, suffix, words), count in sorted(counts.items()):
        print(f"{reader} {suffix} {words} {count}")
    return int(any(words == "differs" for _, _, words in counts))


if __name__ == "__main__":
    sys.exit(main())
