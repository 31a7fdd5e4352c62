"""The demo, run on the session's cluster as on any other: every step asserts what it shows, and nothing of it stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.controlplane import processes
from infra.demo import recording, scenes
from infra.demo.cluster import Names
from infra.demo.narration import Said, normalised
from infra.demo.repository import SHOP, declared
from tests.kubectl import Kubectl
from tests.patience import PATIENCE, until

ROOT = Path(__file__).resolve().parents[3]
STORY = (
    "service-a outlives its declaration",
    "service-a has left; service-b didn't notice",
    "one object was written, the others weren't touched",
    "0 writes:",
    "record and Lease weren't written either",
    "3 replicas, as git says",
    "the push was late, not lost",
    "every mistake in one report, each with file and line",
    "nothing was changed: not even the currency, which was right",
    "held; nothing was changed",
    "13 objects are gone, all of them declared in deploy/back",
    "all 13 objects live again, 25 in all",
    "its name follows its content: one is new, the old one is pruned",
    "the Deployment mounts the new one",
    "what each render makes anew is named, with the line of its template",
    "its pre-install hook, a Job, had ended before",
    "its pre-upgrade hook has run, as a new Job",
    "the random key wasn't rotated",
    "Everything was as announced",
)


@pytest.fixture
def cache(tmp_path: Path, renderers: Path) -> Iterator[Path]:
    """Where this test's demos live, with the tools that are built; whatever one leaves is ended."""
    (tmp_path / "anneal").mkdir()
    (tmp_path / "anneal" / "renderers").symlink_to(renderers.parents[1])
    yield tmp_path
    run_demo(tmp_path, "--down")


def environment(cache: Path, kubectl: Kubectl | None = None) -> dict[str, str]:
    path = f"{kubectl.program.parent}:{os.environ['PATH']}" if kubectl else os.environ["PATH"]
    return {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(ROOT), "PATH": path, "NO_COLOR": "1"}


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "infra.demo", *arguments]


def run_demo(cache: Path, *arguments: str, kubectl: Kubectl | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), capture_output=True, text=True, check=False, env=environment(cache, kubectl), cwd=ROOT)


def demo_directories(cache: Path) -> list[Path]:
    return sorted((cache / "anneal" / "demo").glob("run-*"))


def cluster_wide(kubectl: Kubectl, prefix: str) -> list[str]:
    return [name for name in kubectl.run("get", "namespaces,customresourcedefinitions", "-o", "name").split() if prefix in name]


def test_a_cluster_in_which_a_name_is_taken_is_refused_untouched(kubectl: Kubectl, cache: Path) -> None:
    kubectl.run("create", "namespace", "taken-shop-back")
    try:
        done = run_demo(cache, "--kubeconfig", str(kubectl.kubeconfig), "--prefix", "taken-", kubectl=kubectl)
        assert done.returncode == 1
        assert "taken-shop-back is in the cluster already" in done.stderr
        assert cluster_wide(kubectl, "taken-") == ["namespace/taken-shop-back"]
    finally:
        kubectl.run("delete", "namespace", "taken-shop-back", "--wait=false")


def test_an_ended_demo_leaves_nothing(kubectl: Kubectl, cache: Path) -> None:
    prefix = "cut-"
    arguments = command("--kubeconfig", str(kubectl.kubeconfig), "--prefix", prefix)
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(cache, kubectl)) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "objects live, each labelled" in line:
                break
        (directory,) = demo_directories(cache)
        started = processes.load(directory / "processes.json")
        assert {process.name for process in started} == {"demo", "githost", "anneal"}
        demo.send_signal(signal.SIGINT)
        demo.stdout.read()
    assert demo.returncode == 130
    assert not [process for process in started if processes.alive(process)]
    assert demo_directories(cache) == []
    assert cluster_wide(kubectl, prefix) == []


def test_the_demo_is_true_and_a_kept_one_follows_a_push_and_is_removed_whole(kubectl: Kubectl, cache: Path, tmp_path: Path) -> None:
    arguments = command("all", "--kubeconfig", str(kubectl.kubeconfig), "--prefix", "told-", "--keep")
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment(cache, kubectl)) as demo:
        assert demo.stdout is not None
        told = ""
        for line in demo.stdout:
            told += line
            if "Ctrl-C here" in line:
                break
        positions = [told.find(line) for line in STORY]
        assert -1 not in positions, f"not told: {[line for line, at in zip(STORY, positions, strict=True) if at < 0]}\n{told}"
        assert "tea-and-biscuits" not in told
        assert _signs_in(told)
        url = next(line.split()[-1] for line in told.splitlines() if "git clone " in line)
        subprocess.run(["git", "clone", "-q", url, str(tmp_path / "clone")], check=True, capture_output=True)
        assert "webhook: 202" in _push_a_title(tmp_path / "clone")
        _wait_for_title(kubectl)
        assert run_demo(cache, "--down", kubectl=kubectl).stdout == "ended: 1\n"
        demo.stdout.read()
    assert demo.returncode == 0
    assert cluster_wide(kubectl, "told-") == []
    assert demo_directories(cache) == []


def _signs_in(told: str) -> bool:
    """Sign in to the page as the demo says; whether it then shows the shop. The output holds no token."""
    page = next(line.strip() for line in told.splitlines() if line.strip().startswith("http://") and line.strip().endswith("/"))
    file = Path(next(line.split()[-1] for line in told.splitlines() if line.strip().startswith("cat ")))
    assert file.stat().st_mode & 0o077 == 0
    token = file.read_text()
    assert token not in told
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    form = urllib.parse.urlencode({"token": token}).encode()
    with browser.open(urllib.request.Request(f"{page}ui/login", form, {"Origin": page.rstrip("/")}), timeout=PATIENCE) as answer:
        return b'id="row-shop"' in answer.read()


def _push_a_title(clone: Path) -> str:
    file = clone / "deploy" / "front" / "web-config.yaml"
    file.write_text(file.read_text().replace("kettles", "saucers"))
    identity = ("-c", "user.name=anneal", "-c", "user.email=anneal@example.invalid")
    subprocess.run(["git", *identity, "commit", "-q", "-a", "-m", "Saucers"], cwd=clone, check=True)
    return subprocess.run(["git", "push", "origin", "main"], cwd=clone, check=True, capture_output=True, text=True).stderr


def _wait_for_title(kubectl: Kubectl) -> None:
    until(lambda: "saucers" in json.dumps(kubectl("get", "configmap", "web", "-n", "told-shop-front")["data"]), "the push never arrived")


def test_a_scene_is_played_with_what_it_needs_in_the_order_of_the_table() -> None:
    assert [scene.name for scene in scenes.chosen(["held", "drift"])] == ["push", "drift", "held"]
    assert scenes.chosen(["all"]) == list(scenes.SCENES)
    assert scenes.chosen([]) == [scene for scene in scenes.SCENES if scene.base]


def test_an_unknown_scene_is_refused_with_the_known_ones_before_anything_starts(cache: Path) -> None:
    done = run_demo(cache, "prune", "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"there is no scene nowhere; there are {', '.join(scene.name for scene in scenes.SCENES)}, all" in done.stderr
    done = run_demo(cache, "--kubeconfig", "/nowhere/config")
    assert (done.returncode, "argument --kubeconfig: there is no file /nowhere/config" in done.stderr) == (2, True)
    assert demo_directories(cache) == []
    assert run_demo(cache, "--list").stdout.splitlines()[0].split() == ["push", "a", "push", "deploys", "the", "whole", "shop"]


def test_the_transcript_names_neither_paths_nor_ports_of_this_machine() -> None:
    known = {"/somewhere/me/.cache/anneal/demo/run-x": "~/.cache/anneal/demo", "/somewhere/me": "~", "127.0.0.1:40001": "127.0.0.1:3000"}
    text = "/somewhere/me/.cache/anneal/demo/run-x/anneal.yaml and /somewhere/me/y at http://127.0.0.1:40001/shop.git"
    assert normalised(text, known) == "~/.cache/anneal/demo/anneal.yaml and ~/y at http://127.0.0.1:3000/shop.git"


def test_a_recording_is_one_run_in_three_forms_without_what_is_this_machines(tmp_path: Path) -> None:
    said = [
        Said(0.1, " 1 A scene", "bold cyan"),
        Said(9.0, "   $ ls /somewhere/me", "bold"),
        Said(9.0, "     a < b", "bright_black"),
        Said(9.0, "", ""),
    ]
    written = recording.save(said, {"/somewhere/me": "~"}, tmp_path)
    transcript, cast, picture = (path.read_text() for path in written)
    assert transcript == " 1 A scene\n   $ ls ~\n     a < b\n\n"
    assert recording.transcript(cast) == transcript
    assert "a &lt; b</text>" in picture
    assert "somewhere" not in cast + picture
    times = [json.loads(line)[0] for line in cast.splitlines()[1:]]
    assert times == sorted(times)
    assert times[1] - times[0] <= recording.LONGEST


def test_a_prefix_reaches_every_name_that_the_shop_has_in_a_cluster() -> None:
    names = Names("p-")
    texts = [path.read_text() for path in sorted(SHOP.rglob("*.yaml"))]
    beside = [path.read_text() for path in sorted(SHOP.parent.rglob("*.yaml")) if not path.is_relative_to(SHOP)]
    assert any("shop-front" in text for text in beside)
    for text in (*texts, *beside):
        fitted = names.fitted(text)
        for name in ("shop-front", "shop-back", "shop.example.com"):
            assert fitted.count(f"p-{name}") == text.count(name)
    assert declared() == sum(text.count("\nkind: ") for text in texts) == 27
