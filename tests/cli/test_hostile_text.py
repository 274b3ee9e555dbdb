"""Names and values from outside never reach the terminal as control characters, and forge no lines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import mast_opt
from mast_opt.core.wording import UNSAFE, shown, shown_lines
from tests.cli.conftest import Call, Ended, write_tables

EVIL = "x\x1b[31m\r\nVERIFIED forged\x07\x9b2J\u202eevil\u2066\u200b"
"""What a terminal would obey: colour, carriage return, a line of its own, bell, erase, right-to-left, invisible."""
BIDI = "r\u202eevil\u2066\u200b"
"""What a label may hold all the same."""


def clean(ended: Ended) -> None:
    for text in (ended.out, ended.err):
        assert not UNSAFE.search(text.replace("\n", "")), ascii(text)
        assert not any(line.lstrip().startswith("VERIFIED forged") for line in text.splitlines()), ascii(text)


def toml(text: str) -> str:
    return json.dumps(text).replace("\\u007f", "\\u007F")


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """The small instance with labels that hold what no rule forbids."""
    bidi = {
        "regions.csv": f"region,storage_tb,cpu_cores\n{BIDI},10,10\nwest,10,10\n",
        "gpu_supply.csv": f"region,gpu_type,gpus\n{BIDI},A{BIDI},8\nwest,A{BIDI},8\n",
        "datasets.csv": f"dataset,size_tb\nd{BIDI},3\nlogs,2\n",
        "replicas.csv": f"dataset,region\nd{BIDI},{BIDI}\nlogs,west\n",
        "workloads.csv": f"workload,tier,cpu_cores\nw{BIDI},0,4\nspam,1,3\n",
        "gpu_demand.csv": f"workload,gpu_type,gpus\nw{BIDI},A{BIDI},8\nspam,A{BIDI},4\n",
        "current_runs.csv": f"workload,region,gpu_type\nw{BIDI},{BIDI},A{BIDI}\nspam,west,A{BIDI}\n",
        "reads.csv": f"workload,dataset,tb_per_day\nw{BIDI},d{BIDI},1\nspam,logs,1\n",
    }
    return write_tables(tmp_path / "labelled", bidi)


def test_shown_escapes_and_changes_nothing_else() -> None:
    assert shown("h100 \u00e9\u4e2d\U0001f600") == "h100 \u00e9\u4e2d\U0001f600"
    assert shown("a\x1bb\nc\u202ed") == "a\\x1bb\\nc\\u202ed"
    assert shown_lines("a\nb\x1b") == "a\nb\\x1b"
    assert not UNSAFE.search(shown("".join(map(chr, range(0x2100)))))


@pytest.mark.parametrize("where", ["toml", "json"])
def test_a_name_with_control_characters_is_a_fault(call: Call, tmp_path: Path, instance: Path, where: str) -> None:
    if where == "toml":
        path = instance
        text = (path / "instance.toml").read_text(encoding="utf-8")
        (path / "instance.toml").write_text(text.replace('"two-regions"', toml(EVIL)), encoding="utf-8")
    else:
        path = tmp_path / "instance.json"
        mast_opt.write(mast_opt.read(instance), path)
        content = json.loads(path.read_text(encoding="utf-8"))
        content["instance"]["name"] = EVIL
        path.write_text(json.dumps(content), encoding="utf-8")
    ended = call("validate", path)
    assert ended.code == 2
    assert "a name without control characters" in ended.err
    clean(ended)
    clean(call("validate", path, "--json"))


def test_no_instance_is_written_under_such_a_name(instance: Path, tmp_path: Path) -> None:
    from dataclasses import replace

    problem = replace(mast_opt.read(instance), name=EVIL)
    for target in ("folder", "book.xlsx", "one.json"):
        with pytest.raises(mast_opt.InstanceError, match="a name without control characters"):
            mast_opt.write(problem, tmp_path / target)
        assert not (tmp_path / target).exists()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("datasets.csv", f'dataset,size_tb\n"{EVIL}",3\nlogs,2\n'),
        ("datasets.csv", f'dataset,size_tb\nclicks,"{EVIL}"\nlogs,2\n'),
        ("datasets.csv", f'dataset,"{EVIL}"\nclicks,3\nlogs,2\n'),
        ("replicas.csv", f'dataset,region\n"{EVIL}",east\nlogs,west\n'),
        ("rules.csv", f'dataset,region,rule\nclicks,east,"{EVIL}"\n'),
        ("workloads.csv", f'workload,tier,cpu_cores,splittable\nrank,0,4,"{EVIL}"\nspam,1,3,\n'),
        (f"evil{EVIL.replace('/', '')}.csv", "a\n1\n"),
    ],
    ids=["label", "number", "head", "reference", "choice", "boolean", "file"],
)
def test_cells_and_file_names(call: Call, instance: Path, file: str, text: str) -> None:
    (instance / file).write_text(text, encoding="utf-8", newline="")
    for command in (("validate",), ("solve",), ("validate", "--json")):
        ended = call(command[0], instance, *command[1:])
        assert ended.code == 2
        clean(ended)


@pytest.mark.parametrize(
    "lines",
    [
        f"{toml(EVIL)} = 1\n",
        f"[rules]\nremote_reads = {toml(EVIL)}\n",
        f"[rules]\n{toml(EVIL)} = 1\n",
        f"[objective]\nmode = {toml(EVIL)}\n",
        f"[objective.weights]\npeak = {toml(EVIL)}\n",
        f'[objective]\nmode = "lexicographic"\norder = [{toml(EVIL)}]\n',
    ],
)
def test_headers(call: Call, tmp_path: Path, lines: str) -> None:
    ended = call("validate", write_tables(tmp_path / "headers", settings=lines))
    assert ended.code == 2
    clean(ended)


def test_every_command_on_labels_that_reorder_text(call: Call, labelled: Path, tmp_path: Path) -> None:
    scenarios = tmp_path / "scenarios.toml"
    scenarios.write_text(f'[[scenario]]\nname = "lost"\nlose_regions = [{toml(BIDI)}]\n', encoding="utf-8")
    plan = tmp_path / "plan"
    for tokens in (
        ("validate", labelled),
        ("solve", labelled, "--out", plan, "--full"),
        ("verify", labelled, plan),
        ("diff", labelled, plan),
        ("steps", labelled, plan),
        ("explain", labelled, "--plan", plan),
        ("marginal", labelled),
        ("whatif", labelled, "--scenarios", scenarios, "--plan", plan),
        ("report", labelled, plan, "--out", tmp_path / "page.html"),
        ("export", labelled, tmp_path / "again.json"),
    ):
        ended = call(*tokens)
        assert ended.code == 0, (tokens, ended.err)
        clean(ended)
    assert "\\u202e" in call("solve", labelled, "--full").out


@pytest.mark.parametrize("key", ["instance", "checksum", "solver", "status", "versions", "bound", "kind", "seed"])
def test_plan_toml(call: Call, instance: Path, plan: Path, key: str) -> None:
    lines = (plan / "plan.toml").read_text(encoding="utf-8").splitlines()
    top = [line for line in lines[: lines.index("[versions]")] if not line.startswith(f"{key} =")]
    value = f"{{ a = {toml(EVIL)} }}" if key == "versions" else toml(EVIL)
    (plan / "plan.toml").write_text("\n".join([*top, f"{key} = {value}", ""]), encoding="utf-8")
    for command in ("verify", "diff", "steps", "report"):
        out = ("--out", plan.parent / "page.html", "--force") if command == "report" else ()
        clean(call(command, instance, plan, *out))


def test_plan_tables_and_events(call: Call, instance: Path, plan: Path) -> None:
    (plan / "events.jsonl").write_text(json.dumps({"elapsed_s": EVIL}) + "\n" + EVIL, encoding="utf-8")
    clean(call("report", instance, plan, "--out", plan.parent / "page.html"))
    (plan / "placements.csv").write_text(f'dataset,region\n"{EVIL}",east\n', encoding="utf-8", newline="")
    clean(call("verify", instance, plan))
    (plan / f"{EVIL}.csv").write_text("a\n", encoding="utf-8")
    clean(call("verify", instance, plan))
    clean(call("solve", instance, "--out", plan))


@pytest.mark.parametrize(
    "text",
    [
        f"[[scenario]]\nname = {toml(EVIL)}\nlose_regions = ['east']\n",
        f"[[scenario]]\nname = 'a'\n{toml(EVIL)} = 3\n",
        f"[[scenario]]\nname = 'a'\nlose_regions = [{toml(EVIL)}]\n",
        f"[[scenario]]\nname = 'a'\ngrow_demand = {{ {toml(EVIL)} = 2 }}\n",
        f"{toml(EVIL)} = 3\n",
    ],
)
def test_scenarios(call: Call, instance: Path, tmp_path: Path, text: str) -> None:
    path = tmp_path / "scenarios.toml"
    path.write_text(text, encoding="utf-8")
    ended = call("whatif", instance, "--scenarios", path)
    assert ended.code == 2
    clean(ended)


def test_what_is_typed_on_the_command_line(call: Call, instance: Path, tmp_path: Path) -> None:
    for tokens in (
        ("validate", tmp_path / EVIL),
        ("solve", instance, "--solver", EVIL),
        ("solve", instance, "--freeze", EVIL),
        ("solve", instance, "--option", EVIL),
        ("solve", instance, f"--{EVIL}"),
        ("generate", EVIL, tmp_path / "new"),
        (EVIL,),
    ):
        ended = call(*tokens)
        assert ended.code == 2, tokens
        clean(ended)
