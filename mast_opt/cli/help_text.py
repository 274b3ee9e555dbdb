"""The text of a command's help, so that it reads well in a terminal of any width."""

import textwrap


def reflowed(text: str) -> str:
    """The help of a command with a paragraph a line, for the terminal to wrap; indented lines stay as they are."""
    lines: list[str] = []
    for line in text.splitlines():
        flows = line and not line.startswith(" ")
        if flows and lines and lines[-1] and not lines[-1].startswith(" "):
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    return "\n".join(lines)


def entry(words: str, indent: int = 2) -> str:
    """A line of a list in a command's help, wrapped for a terminal of 80 columns with what follows further in."""
    return textwrap.fill(
        words, 78, initial_indent=" " * indent, subsequent_indent=" " * (indent + 4), break_on_hyphens=False
    )
