#!/usr/bin/env bash
# polars: read_excel turns a name below row 100 of a column of numbers into an empty cell; without other cells the row is gone.
#
# Versions: polars 2.1.0 with fastexcel 0.21.0, openpyxl 3.1.5, Python 3.11.
#
# A sheet has a column of 100 job numbers, and below them one job that has a name.
#
# Expected: an error that names the value, as from pl.read_csv; or the column as text, as where the name is in row 100.
# Found: the type of a column is taken from its first 100 rows, and what does not fit later is null. Nothing is said. With
# that column alone, the row is taken for an empty one and left out.
#
# Output seen:
#   name in row 100: String, last rows ['99', 'pool-a', '7']
#   name in row 101: Int64, last rows [100, None, 7], GPUs [1, 64, 1]
#   the same column alone: 101 rows of 102, last rows [100, 7]
#   read_csv: ComputeError
#
# Why a user cares: a fleet of more than a hundred jobs or servers is read with some of them nameless or missing, most likely
# the odd ones that somebody added at the end by hand, and totals are too low. (infer_schema_length=None reads all rows first.)
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet polars==2.1.0 fastexcel==0.21.0 openpyxl==3.1.5
cat >"$folder/run.py" <<'END'
import io

import openpyxl
import polars as pl


def sheet(numbers, columns=2):
    book = openpyxl.Workbook()
    rows = [("job", "gpus"), *((job, 1) for job in range(1, numbers + 1)), ("pool-a", 64), (7, 1)]
    for row in rows:
        book.active.append(row[:columns])
    file = io.BytesIO()
    book.save(file)
    file.seek(0)
    return file


text = pl.read_excel(sheet(99))
print(f"name in row 100: {text['job'].dtype}, last rows {text['job'][-3:].to_list()}")
assert text["job"][-3:].to_list() == ["99", "pool-a", "7"]
table = pl.read_excel(sheet(100))
last, gpus = table["job"][-3:].to_list(), table["gpus"][-3:].to_list()
print(f"name in row 101: {table['job'].dtype}, last rows {last}, GPUs {gpus}")
assert (table["job"].dtype, last, gpus) == (pl.Int64, [100, None, 7], [1, 64, 1])
alone = pl.read_excel(sheet(100, columns=1))
print(f"the same column alone: {alone.height} rows of 102, last rows {alone['job'][-2:].to_list()}")
assert (alone.height, alone["job"][-2:].to_list()) == (101, [100, 7])
assert pl.read_excel(sheet(100), infer_schema_length=None)["job"][-2] == "pool-a"
try:
    pl.read_csv(io.StringIO("job\n" + "".join(f"{job}\n" for job in range(1, 101)) + "pool-a\n"))
except pl.exceptions.ComputeError as error:
    print("read_csv:", type(error).__name__)
else:
    raise AssertionError("read_csv takes a name among numbers")
END
"$folder/venv/bin/python" "$folder/run.py"
