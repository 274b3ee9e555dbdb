"""The colours of the page, by name and theme. Charts name them as CSS variables, so that a theme is a style sheet."""

from bisect import bisect_left
from collections.abc import Mapping

from mast_opt.problems.kind.presentation import Scale


def _numbered(name: str, *colours: str) -> dict[str, str]:
    """Colours of the page that are numbered: name and number → colour."""
    return {f"{name}-{at}": colour for at, colour in enumerate(colours)}


LIGHT: Mapping[str, str] = {
    "paper": "#f6f7f9",
    "card": "#ffffff",
    "ink": "#1b2430",
    "soft": "#5b6775",
    "line": "#dfe3e8",
    "accent": "#0b62c4",
    "good": "#147a3d",
    "bad": "#b3261e",
    **_numbered("series", "#9aa8b8", "#0b62c4", "#e08600", "#7a4bc2", "#12806a", "#c2185b"),
    **_numbered("heat", "#e3f0fb", "#bcdcf5", "#8fc4ea", "#fdf0c4", "#fbc98a", "#ef8354", "#c8372d"),
    **_numbered("heat-ink", "#1b2430", "#1b2430", "#1b2430", "#1b2430", "#1b2430", "#1b2430", "#ffffff"),
    "empty": "#f0f2f5",
}
DARK: Mapping[str, str] = {
    "paper": "#10151c",
    "card": "#18202a",
    "ink": "#e8edf3",
    "soft": "#9aa7b6",
    "line": "#2b3644",
    "accent": "#6db3ff",
    "good": "#5fd08a",
    "bad": "#ff8a80",
    **_numbered("series", "#66758a", "#5aa9ff", "#ffb454", "#b795f0", "#4cc9a8", "#ff7eb0"),
    **_numbered("heat", "#1b2c3d", "#20476a", "#2a6496", "#6b5d20", "#96601f", "#b84f2c", "#e5564a"),
    **_numbered("heat-ink", "#c9d6e4", "#e8edf3", "#ffffff", "#ffffff", "#ffffff", "#ffffff", "#ffffff"),
    "empty": "#141b24",
}

SERIES = 6
_STEPS = {Scale.RATIO: (0.5, 0.75, 0.95, 1.0, 1.1, 1.3), Scale.FILL: (0.5, 0.7, 0.85, 0.95, 0.99, 1.0)}
"""Upper ends of the first six colours of heat; the seventh is above them."""


def color(name: str) -> str:
    """A colour as charts and styles name it."""
    return f"var(--{name})"


def own_color(at: int) -> str:
    """The colour of the line, flow or sort of spans at a position."""
    return color(f"series-{1 + at % (SERIES - 1)}")


def heat(value: float, scale: Scale) -> int:
    """The step of a heat map's colours for a ratio or a fill, 0 to 6."""
    return bisect_left(_STEPS[scale], value - 1e-12)


def heat_legend(scale: Scale) -> tuple[str, ...]:
    """Legend of the steps of heat in a chart."""
    ends = [f"{end:.0%}" if scale is Scale.FILL else f"{end:g}" for end in _STEPS[scale]]
    return (f"≤ {ends[0]}", *(f"≤ {end}" for end in ends[1:]), f"> {ends[-1]}")


def in_theme(text: str, theme: Mapping[str, str]) -> str:
    """The text of a drawing with every colour spelled out, for where there are no style sheets."""
    for name, value in theme.items():
        text = text.replace(color(name), value)
    return text
