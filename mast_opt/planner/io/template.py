"""An empty instance to fill in."""

from os import PathLike
from pathlib import Path

from mast_opt.core.arguments import a_flag, a_path, a_text, checked
from mast_opt.core.errors import UsageError
from mast_opt.core.fork_safety import use_tables
from mast_opt.planner.io.atomic import check_free, new_file
from mast_opt.planner.io.header import to_fields
from mast_opt.planner.io.writers import excel_template as template
from mast_opt.problems.kind.header import Header, Objective
from mast_opt.problems.registry import KindName, kind_named


@checked(kind=a_text, path=a_path, force=a_flag)
def write_template(kind: KindName, path: str | PathLike[str], *, force: bool = False) -> None:
    """Write an Excel workbook with a sheet a table: explained, checked while typing, with rows that can be solved.

    Args:
        kind: hyphenated, as in ``data-placement``.
        path: ends in ``.xlsx``.
        force: replace a file that is there.

    Raises:
        UsageError: there is no such kind, or the name does not end in ``.xlsx``.
        InputError: the file is there already or cannot be written.
    """
    use_tables("write a template")
    chosen = kind_named(kind)
    target = Path(path).absolute()
    if target.suffix.lower() != ".xlsx":
        raise UsageError(f"{path}: expected a name that ends in .xlsx")
    check_free(target, force=force)
    rules = {rule.name: rule.default for rule in chosen.tables.rules}
    policy = next(iter(chosen.policies), "")
    weights = {name: term.weight for name, term in chosen.terms.items() if "USD" not in term.unit}
    header = Header(chosen.name, f"my-{chosen.name}", Objective(weights, policy=policy), rules)
    schema, example = chosen.tables.schema, chosen.tables.example
    wide = {name: len(schema.table(name).columns) for name in example}
    rows = {name: [(*row, *[None] * (wide[name] - len(row))) for row in given] for name, given in example.items()}
    with new_file(target) as partial:
        template.write_template(partial, schema, to_fields(header), chosen.tables.rules, chosen.limits, rows)
