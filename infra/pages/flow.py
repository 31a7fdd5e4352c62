"""The picture of the flow in README, as SVG for dark and for light pages, out of one layout. `python -m infra.pages.flow` writes both.

No font is loaded, for an image in a page is shown without its surroundings; widths are estimated by letters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
TITLE = "The way of a push"
ABOUT = "A push is received, looked at, planned and written; it may end after each of the first three."


@dataclass(frozen=True, slots=True)
class Lane:
    """One row of boxes. `exits`: how a push may end after it; `note`: what holds there."""

    name: str
    steps: tuple[str, ...]
    exits: str
    note: str


LANES = (
    Lane("receive", ("git push", "verify", "match targets", "queue"), "202: what runs, and why", "a lost webhook is found by the tick"),
    Lane(
        "look",
        ("read the record", "ask the git host for the head"),
        "nothing new: done, one request",
        "the payload is a hint, the git host decides",
    ),
    Lane("plan", ("fetch", "render", "plan", "dry-run", "guards"), "refused, or held for a person", "nothing has been written yet"),
    Lane("write", ("lock", "apply in stages", "wait until healthy", "prune", "record"), "", "waiting is optional; the commit moves last"),
)


@dataclass(frozen=True, slots=True)
class Theme:
    """Colours of a page's background, boxes, lines and letters; `mark`: of lanes and arrows."""

    page: str
    box: str
    line: str
    text: str
    quiet: str
    mark: str


THEMES = {
    "dark": Theme(page="#0d1117", box="#161b22", line="#3d444d", text="#f0f6fc", quiet="#9198a1", mark="#4493f8"),
    "light": Theme(page="#ffffff", box="#f6f8fa", line="#d1d9e0", text="#1f2328", quiet="#59636e", mark="#0969da"),
}
WIDTH, TOP, LEFT, PITCH = 880, 20, 96, 92  # of the picture; PITCH: from lane to lane
BOX, GAP, LETTER, PADDING, SMALL = 38, 26, 7.8, 14, 6.7  # BOX: a box's height; LETTER, SMALL: a letter's width
HEAD = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8Z"/></marker>'
)
FONT = "-apple-system, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif"


def _width(text: str, letter: float = LETTER) -> float:
    return round(len(text) * letter + 2 * PADDING)


def _box(x: float, y: float, text: str) -> str:
    wide = _width(text)
    middle = f'x="{x + wide / 2:g}" y="{y + BOX / 2 + 5:g}"'
    return (
        f'<rect class="box" x="{x:g}" y="{y:g}" width="{wide:g}" height="{BOX}" rx="8"/><text class="step" {middle}>{escape(text)}</text>'
    )


def _arrow(path: str, kind: str = "arrow") -> str:
    return f'<path class="{kind}" d="{path}" marker-end="url(#head)"/>'


def _lane(lane: Lane, y: float) -> Iterator[str]:
    """Yield a lane's name, its boxes with arrows between, its end on the right, and its note below."""
    middle = y + BOX / 2
    yield f'<text class="lane" x="16" y="{middle + 5:g}">{escape(lane.name)}</text>'
    x: float = LEFT
    for number, step in enumerate(lane.steps):
        if number:
            yield _arrow(f"M{x - GAP:g} {middle:g}H{x - 3:g}")
        yield _box(x, y, step)
        x += _width(step) + GAP
    yield f'<text class="note" x="{LEFT}" y="{y + BOX + 19:g}">{escape(lane.note)}</text>'
    if lane.exits:
        wide = _width(lane.exits, SMALL)
        start = WIDTH - 16 - wide
        yield _arrow(f"M{x - GAP:g} {middle:g}H{start - 3:g}", "arrow aside")
        yield f'<rect class="aside" x="{start:g}" y="{y + 4:g}" width="{wide:g}" height="{BOX - 8}" rx="{(BOX - 8) / 2:g}"/>'
        yield f'<text class="exit" x="{start + wide / 2:g}" y="{middle + 5:g}">{escape(lane.exits)}</text>'


def _down(lane: Lane, y: float, following: Lane) -> str:
    """Return the arrow from the last box of a lane to the first of the one below."""
    *before, last = lane.steps
    start = LEFT + sum(_width(step) + GAP for step in before) + _width(last) / 2
    end, turn = LEFT + _width(following.steps[0]) / 2, y + PITCH - 24
    curve = (
        f"M{start:g} {y + BOX:g}V{turn - 8:g}Q{start:g} {turn:g} {start - 8:g} {turn:g}H{end + 8:g}Q{end:g} {turn:g} {end:g} {turn + 8:g}"
    )
    return _arrow(f"{curve}V{y + PITCH - 3:g}")


def _style(theme: Theme) -> str:
    rules = {
        "text": f"font-family: {FONT}; font-size: 14px; fill: {theme.text}",
        ".step, .exit": "text-anchor: middle",
        ".lane": f"font-weight: 600; fill: {theme.mark}",
        ".note": f"font-size: 12.5px; font-style: italic; fill: {theme.quiet}",
        ".exit": f"font-size: 12.5px; fill: {theme.quiet}",
        ".box": f"fill: {theme.box}; stroke: {theme.line}",
        ".aside": f"fill: none; stroke: {theme.line}; stroke-dasharray: 4 3",
        ".arrow": f"fill: none; stroke: {theme.mark}; stroke-width: 1.5",
        "#head path": f"fill: {theme.mark}",
    }
    return "\n".join(f"{name} {{ {rule} }}" for name, rule in rules.items())


def svg(theme: Theme) -> str:
    """Draw all lanes in the colours of a theme."""
    height = TOP + PITCH * len(LANES) - (PITCH - BOX) + 34
    tops = [TOP + PITCH * number for number in range(len(LANES))]
    arrows = [_down(lane, y, below) for lane, y, below in zip(LANES, tops, LANES[1:], strict=False)]
    lanes = [part for lane, y in zip(LANES, tops, strict=True) for part in _lane(lane, y)]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        f"<title>{TITLE}</title>",
        f"<desc>{ABOUT}</desc>",
        f"<style>\n{_style(theme)}\n</style>",
        f"<defs>{HEAD}</defs>",
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="{theme.page}"/>',
        *arrows,
        *lanes,
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def write(directory: Path = IMAGES) -> None:
    """Write both pictures."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, theme in THEMES.items():
        (directory / f"flow-{name}.svg").write_text(svg(theme), encoding="utf-8")


if __name__ == "__main__":
    write()
