"""Random damage to the content of a file, at the level of its format where there is one.

``damaged`` takes the name of a file and its bytes. Tables, trees and archives are taken apart, changed and put
together again, so that damage reaches the code behind the parsers; bytes and tokens are changed as well.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import tomllib
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from mast_opt.planner.io.writers.folder import toml_text

WORDS = [
    b"", b"-1", b"0", b"1", b"1e308", b"nan", b"inf", b"9" * 400, b"1e999999999", b"9223372036854775807", b'"', b"\0",
    b"\xff", b"\n", b",", b"=", b"[", b"{" * 5000, b"[" * 5000, b"true", b"\xe2\x80\xae", b"a." * 500, b"XFD1048576",
    b"<", b"|O", b"(9999999999999,)", b"4294967296", b"0.0000001", b"\xef\xbb\xbf", b"x" * 100_000,
]  # fmt: skip
TOML_VALUES = [
    "1979-05-27T07:32:00Z", "1979-05-27", "07:32:00", "inf", "-inf", "nan", "true", "0", "-1", "1e308", "1e999999999",
    "9" * 400, "9" * 5000, "0xffffffffffffffffffff", "[]", "{}", "[[1], [2.5, 'x']]", "{ a = { b = [1] } }", "''",
    "'\ufeff'", '"\\u0000"', '"\\u202e"', "'" + "x" * 100_000 + "'", "[" * 2000 + "]" * 2000, "[{ name = 'x' }]",
]  # fmt: skip
JSON_VALUES = [
    "null", "true", "0", "-1", "1e308", "1e999999999", "9" * 400, "9" * 5000, "NaN", "-Infinity", "[]", "{}", '""',
    '" "', '"\\u0000"', '"\\ud800"', '"\\u202e"', "[[[]]]", "[{}, {}]", '{"a": [1, {"b": null}]}', '{"a": 1, "a": 2}',
    '"' + "x" * 100_000 + '"', "[" * 5000 + "]" * 5000,
]  # fmt: skip
MOST_ROWS = 3_000_000
"""Rows of a damaged Parquet table, or twice as many; more take the maker too long."""
_TOKEN = re.compile(rb"[\w.\-]+")
_HOLE = re.compile(r'"@@(\d+)@@"')


def damaged(rng: random.Random, name: str, data: bytes) -> bytes:
    """The content with one to four changes."""
    suffix = name.rsplit(".", 1)[-1].lower()
    if suffix == "gz" and rng.random() < 0.8:
        return gzip.compress(damaged(rng, name[:-3], gzip.decompress(data)), 1)
    by_format = _BY_FORMAT.get(suffix)
    if by_format is not None and rng.random() < 0.6:
        data = by_format(rng, data)
        if rng.random() < 0.8:
            return data
    if data[:2] == b"PK" and rng.random() < 0.8:
        return _in_archive(rng, data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        data = _in_bytes(rng, data)
    return data


def _in_bytes(rng: random.Random, data: bytes) -> bytes:
    tokens = list(_TOKEN.finditer(data))
    start, stop = rng.choice(tokens).span() if tokens else (0, 0)
    other = rng.choice(tokens).group() if tokens else b""
    action = rng.randrange(6)
    if action == 0:
        return data[:start] + rng.choice(WORDS) + data[stop:]
    if action == 1:
        return data[:start] + other + data[stop:]
    if action == 2:
        return data[:start] + rng.choice(WORDS) + data[start:]
    if action == 3:
        return data[:start]
    if action == 4:
        return data[:start] + data[start : start + rng.randint(1, 400)] * rng.randint(2, 50) + data[stop:]
    at = rng.randrange(len(data) + 1)
    return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def _in_archive(rng: random.Random, data: bytes) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as new:
        names = old.namelist()
        chosen, fate = rng.choice(names), rng.random()
        for name in names:
            entry = old.read(name)
            if name != chosen:
                new.writestr(name, entry)
            elif fate < 0.9:
                new.writestr(name, damaged(rng, name, entry))
            elif fate < 0.95:
                new.writestr(rng.choice(["/", "../x", "x" * 1000, "a\0b", "A.XML"]), entry)
    return content.getvalue()


def _csv(rng: random.Random, data: bytes) -> bytes:
    """Cells, rows or columns changed as a whole."""
    rows = [line.split(b",") for line in data.split(b"\n")]
    row = rng.randrange(len(rows))
    column = rng.randrange(len(rows[0]))
    action = rng.randrange(11)
    if action >= 7:
        other = rng.choice(rows)
        rows[row][column % len(rows[row])] = rng.choice([other[column % len(other)], b"0", b"1", b"3", b"0.5", b"1e9"])
    elif action == 0:
        rows[row][column % len(rows[row])] = rng.choice(WORDS)
    elif action == 1:
        del rows[row]
    elif action == 2:
        rows.insert(row, rng.choice(rows))
    elif action == 3:
        rows = [[cell for n, cell in enumerate(cells) if n != column] for cells in rows]
    elif action == 4:
        rows = [[*cells, cells[column % len(cells)]] for cells in rows]
    elif action == 5:
        word = rng.choice(WORDS)
        rows = [rows[0]] + [[word if n == column else cell for n, cell in enumerate(cells)] for cells in rows[1:]]
    else:
        rows = rows[:1]
    return b"\n".join(b",".join(cells) for cells in rows)


def _columns(height: int) -> list[Callable[[], pl.Series]]:
    """Columns of every type that Parquet can hold."""
    whole = range(height)
    return [
        lambda: pl.Series([None] * height, dtype=pl.Null),
        lambda: pl.Series([None] * height, dtype=pl.String),
        lambda: pl.Series([""] * height),
        lambda: pl.Series(["x" * 1_000_000] * min(height, 20) + [""] * max(0, height - 20)),
        lambda: pl.Series([2**64 - 1 - n for n in whole], dtype=pl.UInt64),
        lambda: pl.Series([-(2**63) + n for n in whole], dtype=pl.Int64),
        lambda: pl.Series([n % 100 for n in whole], dtype=pl.Int8),
        lambda: pl.Series([float("nan"), float("inf"), -float("inf"), -0.0, 1e308][:height], dtype=pl.Float64)
        .extend_constant(5e-324, max(0, height - 5)),
        lambda: pl.Series([n / 3 for n in whole], dtype=pl.Float32),
        lambda: pl.Series([n % 2 == 0 for n in whole], dtype=pl.Boolean),
        lambda: pl.Series(whole, dtype=pl.Int32).cast(pl.Date),
        lambda: pl.Series(whole, dtype=pl.Int64).cast(pl.Datetime("ns", "UTC")),
        lambda: pl.Series(whole, dtype=pl.Int64).cast(pl.Duration("us")),
        lambda: pl.Series(whole, dtype=pl.Int64).cast(pl.Time),
        lambda: pl.Series(whole, dtype=pl.Int64).cast(pl.Decimal(38, 2)),
        lambda: pl.Series([b"\xff\0" * (n % 1000) for n in whole], dtype=pl.Binary),
        lambda: pl.Series([[n, None] for n in whole], dtype=pl.List(pl.Int64)),
        lambda: pl.Series([[["x"] * (n % 3)] for n in whole], dtype=pl.List(pl.List(pl.String))),
        lambda: pl.Series([[n, n] for n in whole], dtype=pl.Array(pl.Int64, 2)),
        lambda: pl.Series([{"a": n, "b": {"c": str(n)}} for n in whole], dtype=_STRUCT),
        lambda: pl.Series([str(n % 3) for n in whole], dtype=pl.Categorical),
        lambda: pl.Series([["a", "\u202e"][n % 2] for n in whole], dtype=pl.Enum(["a", "\u202e"])),
        lambda: pl.Series(["\0\x1b[31m\u200b" + str(n) for n in whole], dtype=pl.String),
    ]  # fmt: skip


_STRUCT = pl.Struct({"a": pl.Int64, "b": pl.Struct({"c": pl.String})})


def _parquet(rng: random.Random, data: bytes) -> bytes:
    """Columns of other types, names and lengths; written in different ways."""
    frame = pl.read_parquet(io.BytesIO(data))
    for _ in range(rng.choice([1, 1, 3])):
        if not frame.width:
            break
        name, action = rng.choice(frame.columns), rng.randrange(8)
        if action <= 3:
            frame = frame.with_columns(rng.choice(_columns(frame.height))().alias(name))
        elif action == 4:
            other = rng.choice(["", " ", f" {name}", "x" * 100_000, "a\0b", "\u202e", name.upper()])
            frame = frame if other in frame.columns else frame.rename({name: other})
        elif action == 5:
            frame = rng.choice([frame.clear(), pl.DataFrame(), frame.drop(name), frame.select(name)])
        elif action == 6:
            frame = pl.concat([frame] * (rng.choice([2, 1000]) if frame.height < MOST_ROWS // 1000 else 2))
        else:
            more = rng.choice([3, 1100]) if frame.height < 10_000 else 3
            frame = frame.with_columns(**{f"c{n}": pl.lit(n) for n in range(more)})
    content = io.BytesIO()
    frame.write_parquet(
        content,
        compression=rng.choice(["zstd", "snappy", "gzip", "lz4", "uncompressed", "brotli"]),
        statistics=rng.random() < 0.5,
        row_group_size=rng.choice([1, 7, None]) if frame.height < 1000 else None,
    )
    return content.getvalue()


def _places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key or position) of a tree."""
    found = []
    for key, value in list(tree.items()) if isinstance(tree, dict) else enumerate(tree):
        found.append((tree, key))
        if isinstance(value, dict | list):
            found += _places(value)
    return found


def _in_tree(rng: random.Random, tree: Any, values: int) -> None:
    """One to three changes; ``@@n@@`` stands for the n-th of so many values that the format writes in its own way."""
    for _ in range(rng.choice([1, 1, 3])):
        places = _places(tree)
        if not places:
            return
        container, key = rng.choice(places)
        action = rng.randrange(7)
        if action <= 2:
            container[key] = f"@@{rng.randrange(values)}@@"
        elif action == 3:
            del container[key]
        elif action == 4:
            source, other = rng.choice(places)
            container[key] = json.loads(json.dumps(source[other], default=str))
        elif action == 5:
            container[key] = [container[key]] * rng.choice([1, 2, 50])
        elif isinstance(container, dict):
            container[rng.choice(["", "x", f"{key} ", "format", "\u202e", "y" * 1000])] = container[key]
        else:
            container.insert(key, f"@@{rng.randrange(values)}@@")


def _filled(text: str, values: list[str]) -> bytes:
    return _HOLE.sub(lambda hole: values[int(hole[1])], text).encode()


def _toml(rng: random.Random, data: bytes) -> bytes:
    tree = tomllib.loads(data.decode())
    _in_tree(rng, tree, len(TOML_VALUES))
    scenarios = tree.get("scenario")
    if isinstance(scenarios, list) and all(isinstance(one, dict) for one in scenarios):
        text = "".join("[[scenario]]\n" + toml_text({key: _inline(v) for key, v in one.items()}) for one in scenarios)
        return _filled(_INLINE.sub(lambda inline: json.loads(inline[0], strict=False)[1:], text), TOML_VALUES)
    return _filled(
        _INLINE.sub(lambda inline: json.loads(inline[0], strict=False)[1:], toml_text(_lists(tree))), TOML_VALUES
    )


_INLINE = re.compile(r'"\u0001(?:[^"\\]|\\.)*"|"\\u0001(?:[^"\\]|\\.)*"')


def _lists(value: Any) -> Any:
    """The tree with every list as TOML text, which may then hold tables."""
    if isinstance(value, dict):
        return {key: _lists(inner) for key, inner in value.items()}
    return _inline(value) if isinstance(value, list) else value


def _inline(value: Any) -> str:
    """A value in TOML's form for one line, marked so that it is not quoted."""
    return "\u0001" + _on_one_line(value)


def _on_one_line(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_on_one_line(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_on_one_line, value)) + "]"
    return json.dumps(value, default=str)


def _json(rng: random.Random, data: bytes) -> bytes:
    tree = json.loads(data)
    _in_tree(rng, tree, len(JSON_VALUES))
    return _filled(json.dumps(tree), JSON_VALUES)


def _lines(rng: random.Random, data: bytes) -> bytes:
    """JSON lines, one of them changed."""
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    lines[at] = _json(rng, lines[at]) if lines[at] else rng.choice(WORDS)
    return b"\n".join(lines)


def _npz(rng: random.Random, data: bytes) -> bytes:
    """Arrays of other types, shapes and names."""
    with np.load(io.BytesIO(data)) as loaded:
        arrays = {name: loaded[name] for name in loaded.files}
    name = rng.choice(sorted(arrays))
    old = arrays[name]
    make: Sequence[Callable[[], np.ndarray]] = (
        lambda: np.array([{}, None], object),
        lambda: np.zeros(3, [("a", "i8"), ("b", "U5")]),
        lambda: np.zeros((0, 5)),
        lambda: np.array(7),
        lambda: np.array(["x" * 1000, ""]),
        lambda: np.array(["2020-01-01"], "M8[D]"),
        lambda: old.astype(complex) if old.dtype.kind in "iufb" else old,
        lambda: np.full_like(old, -1) if old.dtype.kind in "if" else old,
        lambda: np.full(old.shape, np.nan),
        lambda: np.full(old.shape, 2**62),
        lambda: old[..., None],
        lambda: old[:-1] if old.ndim else old,
        lambda: np.asfortranarray(old),
        lambda: old.astype(old.dtype.newbyteorder(">")),
    )
    arrays[name] = rng.choice(make)()
    if rng.random() < 0.2:
        del arrays[rng.choice(sorted(arrays))]
    content = io.BytesIO()
    (np.savez_compressed if rng.random() < 0.5 else np.savez)(content, **arrays)
    return content.getvalue()


def _numbers(rng: random.Random, data: bytes) -> bytes:
    """Text of numbers, some of them changed."""
    tokens = data.split()
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(tokens))
        word = rng.choice([b"0", b"1", b"-1", b"2", b"7", b"9223372036854775807", b"4611686018427387904", b"99999999"])
        tokens[at : at + rng.randint(0, 2)] = [word] * rng.choice([1, 1, 1, 0, 3])
        if not tokens:
            return b""
    return b" ".join(tokens)


_BY_FORMAT: dict[str, Callable[[random.Random, bytes], bytes]] = {
    "csv": _csv,
    "parquet": _parquet,
    "toml": _toml,
    "json": _json,
    "jsonl": _lines,
    "npz": _npz,
    "txt": _numbers,
    "gap": _numbers,
}
