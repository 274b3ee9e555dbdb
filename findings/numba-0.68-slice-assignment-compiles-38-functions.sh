#!/usr/bin/env bash
# numba: a[1:3] = b[1:3] compiles 38 functions, the same as a loop compiles one.
#
# Versions: numba 0.68.0, llvmlite 0.50.0, numpy 2.4.6, Python 3.11.
#
# Expected: assigning one slice of an array to another costs the compiler about what a loop over the elements does, or what
# assigning a number to a slice does: one function is compiled, in 0.1 s of processor time.
# Seen: 38 functions are compiled, in 2.3 s. Where shapes differ, numba raises an error whose message states both shapes; the
# text is put together in compiled code, so numba's strings come along: conversion of numbers, concatenation, comparison,
# copies of characters of each width. They are compiled again in every process whose kernels are not in the cache.
#
# Why a user cares: a library with many small kernels pays this at each first use, and cold starts of containers and
# functions, where no cache is kept, pay it always. A loop in place of the assignment avoids it.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numba==0.68.0 numpy==2.4.6
cat >"$folder/run.py" <<'END'
import sys
import time

import numba
import numpy as np
from numba.core import event


def slices(a, b):
    a[1:3] = b[1:3]


def number(a, b):
    a[1:3] = 7


def loop(a, b):
    for i in range(1, 3):
        a[i] = b[i]


class Count(event.Listener):
    compiled = 0

    def on_start(self, event):
        self.compiled += 1

    def on_end(self, event):
        pass


function, count = globals()[sys.argv[1]], Count()
a, b = np.zeros(5), np.arange(5.0)
began = time.process_time()
with event.install_listener("numba:compile", count):
    numba.njit(function)(a, b)
print(f"{function.__name__}: {count.compiled} functions, {time.process_time() - began:.2f} s", file=sys.stderr)
print(count.compiled)
END
python="$folder/venv/bin/python"
"$python" -c "import llvmlite, numba, numpy; print(numba.__version__, llvmlite.__version__, numpy.__version__)"
[ "$("$python" "$folder/run.py" loop)" = 1 ]
[ "$("$python" "$folder/run.py" number)" = 1 ]
[ "$("$python" "$folder/run.py" slices)" -gt 30 ]
