"""`scripts/screenshots`: README's pictures, from the demo's own stage; `--all`: each page in both schemes and three widths, to look at."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from infra.browser.chromium import Chromium, NoChromium
from infra.browser.screenshots import IMAGES, README, everywhere, take
from infra.demo import stage
from infra.demo.cluster import Names
from infra.demo.narration import DemoFailed, Narrator
from infra.demo.opening import open_stage
from infra.demo.pictured import pictured
from infra.gobuild import BuildError
from infra.renderers import build as renderers


def main(arguments: list[str] | None = None) -> int:
    """Write the pictures and print their paths; returns 1 with the reason when there can be none."""
    given = _parser().parse_args(arguments)
    shots = everywhere() if given.all else README
    try:
        with _server(given) as (url, token), Chromium() as chromium:
            for path in take(chromium, url, token, shots, given.out):
                print(path)
    except (AssertionError, BuildError, DemoFailed, NoChromium) as failure:
        print(f"screenshots: {failure}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def _server(given: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Yield address and token of the page: of the server that is named, or of the demo's stage."""
    if given.url:
        yield given.url, given.token.read_text().strip() if given.token else ""
        return
    renderers.binaries()
    with stage.make(Names(), None, page=True) as made:
        pictured(open_stage(made, Narrator()))
        yield f"http://{made.address}", made.token


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/screenshots", description=__doc__)
    parser.add_argument("--all", action="store_true", help="every page in both colour schemes and three widths")
    parser.add_argument("--out", type=Path, default=IMAGES, metavar="DIR", help="where to, by default docs/images")
    parser.add_argument("--url", metavar="URL", help="of a server that runs, instead of the demo's stage")
    parser.add_argument("--token", type=Path, metavar="FILE", help="holds the token to sign in with at --url")
    return parser


if __name__ == "__main__":
    sys.exit(main())
