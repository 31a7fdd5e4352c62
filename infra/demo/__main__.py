"""`scripts/demo`: a real git host, a real control plane, a sample shop, and every promise shown on it.

Everything runs on loopback and is ended at the end, whatever happens. `--keep` leaves it running to look around.
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from infra.controlplane import controlplane
from infra.demo import ending, recording, scenes, stage
from infra.demo.cluster import Names
from infra.demo.narration import DemoFailed, Narrator
from infra.demo.opening import open_stage
from infra.demo.stage import ROOT, Stage
from infra.gobuild import BuildError
from infra.renderers import build as renderers


def main(arguments: list[str] | None = None) -> int:
    """Run the demo; returns 0 when everything was as announced, 1 when not, 130 when interrupted."""
    given = _parser().parse_args(arguments)
    if given.list:
        print(scenes.listing())
        return 0
    try:
        chosen = scenes.chosen(given.scene)
    except scenes.UnknownScene as unknown:
        print(f"demo: {unknown}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started us with it ignored
    signal.signal(signal.SIGTERM, _interrupt)
    voice = Narrator()
    try:
        if given.down:
            print(f"ended: {stage.down()}")
            return 0
        if any(scene.tools for scene in chosen):
            renderers.binaries()
        with _stage(given) as made:
            return _run(made, voice, chosen, given)
    except (DemoFailed, BuildError) as failure:
        print(f"\ndemo: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\ndemo: interrupted; everything it had started is ended", file=sys.stderr)
        return 130


def _run(made: Stage, voice: Narrator, chosen: Sequence[scenes.Scene], given: argparse.Namespace) -> int:
    """Play the scenes on a stage; a failure shows the log's last lines while they are there."""
    try:
        demo = open_stage(made, voice)
        scenes.play(demo, chosen)
        ending.table(demo)
    except DemoFailed:
        print("\nthe last lines of anneal serve:", *made.log.tail(), sep="\n  ", file=sys.stderr)
        raise
    if given.record:
        written = recording.save(voice.said, ending.normal(demo), ROOT)
        print("\nwritten:", *(str(path.relative_to(ROOT)) for path in written))
    if given.keep:
        ending.keep(demo)
        _until_interrupted()
    ending.goodbye(demo, kept=given.keep)
    return 0


def _until_interrupted() -> None:
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return


def _stage(given: argparse.Namespace) -> Stage:
    """Make the stage that is asked for. Raises DemoFailed."""
    if given.kubeconfig is None and given.context is None:
        return stage.make(Names(), None, page=given.keep)
    prefix = given.prefix or f"demo-{secrets.token_hex(2)}-"
    return stage.make(Names(prefix), _kubeconfig(given.kubeconfig, given.context), page=given.keep)


def _kubeconfig(file: Path | None, context: str | None) -> str:
    """Return a kubeconfig that holds one context alone. Raises DemoFailed."""
    kubectl = shutil.which("kubectl") or str(controlplane.binaries() / "kubectl")
    command = [kubectl, "config", "view", "--raw", "--minify", "--flatten", *([f"--context={context}"] if context else [])]
    environment = {**os.environ, **({"KUBECONFIG": str(file.resolve())} if file else {})}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if done.returncode:
        raise DemoFailed(f"kubectl config view: {done.stderr.strip()}")
    return done.stdout


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _file(text: str) -> Path:
    if not Path(text).is_file():
        raise argparse.ArgumentTypeError(f"there is no file {text}")
    return Path(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", nargs="*", metavar="SCENE", help="play these alone, with what they need; by default the base scenes")
    parser.add_argument("--list", action="store_true", help="list the scenes")
    parser.add_argument(
        "--keep", action="store_true", help="leave everything running, with the page open, until Ctrl-C or scripts/demo --down"
    )
    parser.add_argument("--down", action="store_true", help="end the demos that run, and what killed ones left behind")
    parser.add_argument("--record", action="store_true", help="write the transcript, the recording and its picture below docs/")
    parser.add_argument("--kubeconfig", type=_file, metavar="F", help="use this cluster, in namespaces that the demo makes and removes")
    parser.add_argument("--context", metavar="C", help="context of the kubeconfig")
    parser.add_argument("--prefix", metavar="P", help="begin the names in that cluster with this instead of demo-<random>-")
    return parser


if __name__ == "__main__":
    sys.exit(main())
