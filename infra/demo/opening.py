"""Before the first push: git host, shop, and what needs no cluster yet, while the control plane comes up."""

from __future__ import annotations

import re
import subprocess

from infra.demo.configuration import USUAL, configuration
from infra.demo.narration import Narrator
from infra.demo.repository import Repository, declared
from infra.demo.stage import Stage
from infra.demo.walkthrough import Walkthrough, milliseconds

BROKEN = ("deploy/front/web.yaml", "deploy/front/web-config.yaml", "deploy/back/cache.yaml")


def open_stage(stage: Stage, voice: Narrator) -> Walkthrough:
    """Start everything, and show that; returns with `anneal serve` running on a branch that holds only the namespaces.

    Raises:
        DemoFailed: something doesn't start, or isn't as announced.

    """
    voice.title("Anneal: git push, and the cluster follows")
    voice.title("Everything below is real: git host, webhooks, anneal serve, Kubernetes. What has a ✓ was checked.")
    plane = stage.begin_controlplane() if stage.own else None
    stage.start_githost()
    demo = Walkthrough(stage, Repository(stage.directory, stage.git_address, stage.names), voice)
    stage.config.write_text(configuration(stage, demo.repository, USUAL))
    without_cluster(demo)
    start(demo, plane)
    return demo


def without_cluster(demo: Walkthrough) -> None:
    """Render the shop, and refuse a broken one: neither needs a cluster."""
    repository, voice = demo.repository, demo.voice
    voice.step("Without a cluster: what git declares" + (" (a real control plane is starting meanwhile)" if demo.stage.own else ""))
    voice.say(f"A git host with the sample shop: {repository.url}, and this anneal.yaml:")
    voice.output(demo.stage.config.read_text())
    repository.copy(["deploy/namespaces.yaml"])
    repository.commit("Two namespaces")
    repository.push()
    repository.copy()
    shop = repository.commit("The whole shop")
    repository.offer()
    rendered = demo.anneal(f"render shop --commit {shop.sha}", show=9)
    count = len(re.findall(r"^kind: ", rendered, re.MULTILINE))
    voice.check(count == declared() and "tea-and-biscuits" not in rendered, f"{count} objects, and no Secret's value is shown")
    repository.replace(BROKEN[0], "  replicas: 3\n", "  replicas: 3\n  replicas: 5\n")
    repository.replace(BROKEN[1], "  name: web\n", "")
    repository.replace(BROKEN[2], "          image: docker.io", "        image: docker.io")
    broken = repository.commit("Three mistakes")
    repository.offer()
    voice.say("The same with three mistakes:")
    refused = demo.anneal(f"render shop --commit {broken.sha}", code=1)
    voice.check(all(re.search(rf"{file}:\d+", refused) for file in BROKEN), "every mistake in one report, each with file and line")
    repository.forget()


def start(demo: Walkthrough, plane: subprocess.Popen[bytes] | None) -> None:
    """Wait for the control plane that is starting, if any, and start the handler."""
    stage, voice = demo.stage, demo.voice
    voice.step("anneal serve")
    if plane:
        ready, _, _ = stage.await_controlplane(plane, lambda line: progress(voice, line)).partition(":")
        voice.say(f"{ready}: etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kwok")
    mark = stage.log.mark()
    seconds = demo.serve(USUAL)
    voice.timing(f"ready for webhooks on http://{stage.address} after {milliseconds(seconds)}")
    line = stage.log.wait(mark, lambda line: line.message == "run", "the start-up tick", stage.serving)
    voice.check(
        line.outcome == "applied" and line.counts.get("created") == 2, "it has looked at the branch at once: its two namespaces are there"
    )


def progress(voice: Narrator, line: str) -> None:
    """Tell how far the control plane is; without a terminal, only of its build, which takes minutes."""
    if voice.lively or line.startswith("building"):
        voice.waiting(line)
