"""After the story: what lives there, how to look around, what the transcript leaves out."""

from __future__ import annotations

import os
import shlex
import socket
import sys
import webbrowser
from collections import Counter, defaultdict
from pathlib import Path

from infra.demo.stage import LOOPBACK, ROOT
from infra.demo.walkthrough import SHOP, Walkthrough

GIT_PORT, WEB_PORT = 3000, 8080
"""The ports that the transcript shows."""


def table(demo: Walkthrough) -> None:
    """Tell what lives where."""
    voice, names = demo.voice, demo.stage.names
    voice.step("What lives there now")
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    targets = (SHOP, *(each.name for each in demo.further))
    for name in (name for target in targets for name in demo.members(target)):
        kind, *rest = name.split("/")
        kinds[rest[0] if len(rest) == 2 else "(cluster)"][kind] += 1
    rows = [
        (place, ", ".join(f"{kind} ({count})" if count > 1 else kind for kind, count in sorted(found.items())))
        for place, found in sorted(kinds.items())
    ]
    records = (f"ConfigMap/anneal-{each}: what is applied, and the history; Lease/anneal-{each}: the lock" for each in targets)
    rows += ((names.state, record) for record in records)
    width = max(len(place) for place, _ in rows)
    for place, what in rows:
        voice.say(f"{place:{width}}  {what}")
    demo.anneal("history shop")
    voice.say("", f"Everything was as announced, in {voice.seconds():.0f} s.")


def keep(demo: Walkthrough) -> None:
    """Leave everything running, and say how to look around and how to end it."""
    stage, voice = demo.stage, demo.voice
    demo.repository.deliver_pushes(stage.address, stage.secret_file, ROOT)
    environment = stage.directory / "env"
    paths = ":".join((str(ROOT / "scripts"), str(stage.kubectl.program.parent)))
    settings = {"KUBECONFIG": stage.kubeconfig, "KUBECACHEDIR": stage.directory / "kubectl-cache", "ANNEAL_CONFIG": stage.config}
    lines = [f"export {name}={shlex.quote(str(value))}" for name, value in settings.items()]
    environment.write_text("\n".join((*lines, f"export PATH={shlex.quote(paths)}:$PATH")) + "\n")
    voice.step("Everything keeps running: look around")
    page = f"http://{stage.address}/"
    rows = (
        (page, "the page: what rolls out, what is wrong and why, what will go"),
        (f"cat {stage.token_file}", "the token that it asks for"),
        (f"source {environment}", "KUBECONFIG, kubectl and anneal for your shell"),
        (f"export KUBECONFIG={stage.kubeconfig}", "or only that"),
        (f"kubectl get all -n {stage.names.front}", "the shop"),
        ("anneal status", "how the target stands, and what to do next"),
        ("anneal plan", "what a run would change now"),
        (f"git clone {demo.repository.url}", "edit, commit, push: the host sends the webhook, the cluster follows"),
        (f"curl http://{stage.address}/readyz", "the door"),
        (f"tail -f {stage.log.path}", "what anneal serve does"),
    )
    for command, meaning in rows:
        voice.say(f"{command}", f"    # {meaning}")
    voice.say("", "Ctrl-C here, or scripts/demo --down anywhere, ends it.")
    if _has_display():
        webbrowser.open(page)


def _has_display() -> bool:
    """Whether a person at this terminal has a window for a browser: one of text would take the terminal."""
    display = sys.platform == "darwin" or any(map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY")))
    return display and sys.stdout.isatty()


def goodbye(demo: Walkthrough, *, kept: bool) -> None:
    """Say what happens now."""
    more = "" if demo.stage.own else " and removing what the demo made in the cluster, which takes a while"
    hint = "" if kept else ". scripts/demo --keep leaves everything running to look around"
    print(f"\nEnding all processes{more}{hint}.", flush=True)


def normal(demo: Walkthrough) -> dict[str, str]:
    """Return what stands in the transcript for this machine's paths and ports."""
    stage = demo.stage
    return {
        str(stage.directory): "~/.cache/anneal/demo",
        str(ROOT): "anneal",
        str(Path.home()): "~",
        stage.git_address: f"{LOOPBACK}:{GIT_PORT}",
        stage.address: f"{LOOPBACK}:{WEB_PORT}",
        f"{socket.gethostname()}_": "anneal_",
    }
