"""A cast as an animated SVG: every line stands once in one tall text, and CSS scrolls it through a window.

Written here because what exists isn't kept: svg-term-cli and termtosvg had their last releases in 2018 and 2020, write a screenful for
each moment, and know nothing of `prefers-reduced-motion`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from infra.demo.narration import Said

COLUMNS, ROWS = 104, 30
WIDTH_OF_A_COLUMN, HEIGHT_OF_A_ROW = 8.43, 19
MARGIN, BAR = 18, 34
HOLD = 5.0
"""Seconds for which the last screen stays, before all begins anew."""
TOGETHER = 0.05
"""Seconds between two lines that appear as one."""
LONGEST_OUTPUT = 9
"""Lines shown of what a command printed."""
STILL = "service-b didn't notice"
"""The line that ends what is shown where nothing moves: no motion is wanted, or the viewer has none."""
CLASSES = {"": "n", "bold": "b", "bold cyan": "s", "bright_black": "o", "yellow": "t", "green": "c"}
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', 'DejaVu Sans Mono', monospace"
STYLE = """\
text{fill:#c9d1d9;white-space:pre}
.b{font-weight:bold;fill:#f0f6fc}.s{font-weight:bold;fill:#56d4dd}.o{fill:#8b949e}.t{fill:#e3b341}.c{fill:#56d364}"""


def render(said: Iterable[Said]) -> str:
    """Return the picture."""
    lines = shortened(list(said))
    width, height = round(COLUMNS * WIDTH_OF_A_COLUMN) + 2 * MARGIN, ROWS * HEIGHT_OF_A_ROW + BAR + MARGIN
    moments = _moments(lines)
    total = lines[-1].at + HOLD
    still = next((number for number, line in enumerate(lines, 1) if STILL in line.text), len(lines))
    rows = "\n".join(_row(number, line) for number, line in enumerate(lines) if line.text)
    page = len(lines) * HEIGHT_OF_A_ROW
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">
<title>scripts/demo in a terminal</title>
<style>
{STYLE}
.page{{transform:translateY({_scrolled(still)}px);animation:page {total:.2f}s step-end infinite}}
.rest{{transform:translateY({still * HEIGHT_OF_A_ROW}px);animation:rest {total:.2f}s step-end infinite}}
{_keyframes("page", [(at / total, _scrolled(count)) for at, count in moments])}
{_keyframes("rest", [(at / total, count * HEIGHT_OF_A_ROW) for at, count in moments])}
@media (prefers-reduced-motion:reduce){{
.page,.rest{{animation:none}}
}}
</style>
<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>
<circle cx="20" cy="17" r="5.5" fill="#ff5f57"/>
<circle cx="38" cy="17" r="5.5" fill="#febc2e"/>
<circle cx="56" cy="17" r="5.5" fill="#28c840"/>
<svg x="{MARGIN}" y="{BAR}" width="{width - MARGIN}" height="{ROWS * HEIGHT_OF_A_ROW}">
<g class="page" font-family="{FONT}" font-size="14" xml:space="preserve">
{rows}
<rect class="rest" width="{width}" height="{page + HEIGHT_OF_A_ROW}" fill="#0d1117"/>
</g>
</svg>
</svg>
"""


def shortened(said: Sequence[Said]) -> list[Said]:
    """Return the lines with the middle of long outputs left out, and none wider than the window."""
    kept: list[Said] = []
    printed = 0
    for line in said:
        printed = printed + 1 if line.style == "bright_black" else 0
        if printed == LONGEST_OUTPUT + 1:
            kept[-1] = Said(kept[-1].at, "     …", "bright_black")
        elif printed <= LONGEST_OUTPUT:
            text = line.text if len(line.text) <= COLUMNS else f"{line.text[: COLUMNS - 1]}…"
            kept.append(Said(line.at, text, line.style))
    return kept


def _moments(lines: Sequence[Said]) -> list[tuple[float, int]]:
    """Return when how many lines are there."""
    moments: list[tuple[float, int]] = [(0.0, 0)]
    for count, line in enumerate(lines, 1):
        if line.at - moments[-1][0] < TOGETHER and len(moments) > 1:
            moments[-1] = (moments[-1][0], count)
        else:
            moments.append((line.at, count))
    return moments


def _scrolled(count: int) -> int:
    return -max(0, count - ROWS) * HEIGHT_OF_A_ROW


def _keyframes(name: str, steps: Sequence[tuple[float, int]]) -> str:
    changes = [step for number, step in enumerate(steps) if number == 0 or step[1] != steps[number - 1][1]]
    return f"@keyframes {name}{{{''.join(f'{part:.3%}{{transform:translateY({to}px)}}' for part, to in changes)}}}"


def _row(number: int, line: Said) -> str:
    text = line.text.lstrip()
    x = (len(line.text) - len(text)) * WIDTH_OF_A_COLUMN
    place = f'x="{x:.5g}" y="{number * HEIGHT_OF_A_ROW + 14}"'
    return f'<text class="{CLASSES[line.style]}" {place}>{escape(text, quote=False)}</text>'
