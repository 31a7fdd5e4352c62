"""The image, built by Buildah from the Dockerfile as it is, and run by runc: as its user, read-only, without capabilities, as process 1."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.container import building
from infra.container.building import Image
from infra.container.replay import HOOK, configure, memory
from infra.container.running import Container
from infra.container.tools import missing
from infra.renderers import build as rendering
from tests.fakes.signed_webhooks import github_headers, github_push

pytestmark = [pytest.mark.timeout(1200), pytest.mark.skipif(bool(missing()), reason=missing() or "it can be built")]
NOBODY = "65532"


@pytest.fixture(scope="module")
def image() -> Image:
    return building.built("container")


@pytest.fixture
def configuration(tmp_path: Path) -> Path:
    place = tmp_path / "etc"
    place.mkdir()
    configure(place)
    return place


@pytest.fixture
def container(image: Image, configuration: Path) -> Iterator[Container]:
    """A container that is ready."""
    with Container(image, configuration, {"HOOK": HOOK}) as running:
        running.wait(lambda: running.request("GET", "/readyz")[0] == 200)
        yield running


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def role(container: Container, wanted: str) -> int:
    """Return the id, outside, of the process whose command line holds this."""
    (found,) = [pid for pid in container.pids() if wanted.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")]
    return found


def _is_private(pid: int) -> bool:
    """Whether no other process of its user may read its memory: /proc gives one that may be read to that user."""
    return Path(f"/proc/{pid}/environ").stat().st_uid == 0


def test_the_image_says_how_it_is_run(image: Image) -> None:
    said = image.config
    assert (said["User"], said["WorkingDir"], said["StopSignal"]) == (f"{NOBODY}:{NOBODY}", "/", "SIGTERM")
    assert (said["Entrypoint"], said["Cmd"], list(said["ExposedPorts"])) == (["anneal"], ["serve"], ["8080/tcp"])
    assert said["Healthcheck"]["Test"] == ["CMD", "python", "-m", "handler.web.healthcheck"]
    assert "ANNEAL_BIND=0.0.0.0:8080" in said["Env"]
    labels = {name.removeprefix("org.opencontainers.image.") for name in said["Labels"]}
    assert {"title", "description", "licenses", "version", "revision", "created", "base.name", "base.digest"} <= labels


def test_no_file_of_the_image_is_writable_by_its_user(image: Image) -> None:
    ours = [image.root / "opt" / "anneal", *(image.root / "opt" / "anneal").rglob("*")]
    loose = [each for each in ours if not each.is_symlink() and (each.stat().st_uid != 0 or each.stat().st_mode & 0o022)]
    assert loose == []
    assert not list((image.root / "opt" / "anneal" / "bin").glob("pip*")), "what is installed stays as it was locked"


def test_both_images_hold_the_programs_that_render_as_they_are_built_here(image: Image, renderers: Path) -> None:
    for each in (image, building.built("function")):
        (place,) = [value for name, _, value in (line.partition("=") for line in each.config["Env"]) if name == rendering.VARIABLE]
        for name in ("kustomize", "helm", "sops"):
            program = each.root / place.lstrip("/") / name
            assert (program.stat().st_uid, program.stat().st_mode & 0o7777) == (0, 0o755)
            assert program.read_bytes() == (renderers / name).read_bytes(), "one list of flags, wherever they are built"


def test_the_programs_that_render_start_in_the_container(container: Container) -> None:
    versions = dict(re.findall(r"^\t(?:\S+ )?(\S+) (v\S+)", (rendering.MODULE / "go.mod").read_text(), re.MULTILINE))
    kustomize, helm = container.run("kustomize", "version"), container.run("helm", "version", "--template", "{{.Version}}")
    assert (kustomize.stdout.strip(), helm.stdout.strip()) == (versions["sigs.k8s.io/kustomize/kustomize/v5"], versions["helm.sh/helm/v3"])
    found = container.run(
        "python",
        "-c",
        "from handler.render.render_tools import find; print(find('helm').path, find('kustomize').path)",
    )
    assert found.stdout.split() == ["/opt/anneal/tools/helm", "/opt/anneal/tools/kustomize"], found


def test_it_serves_a_signed_push_as_an_ordinary_user_without_any_right(container: Container) -> None:
    body = github_push()
    signed = github_headers(body, HOOK)
    assert container.request("POST", "/webhooks/github", body, signed | {"X-Hub-Signature-256": "sha256=" + "0" * 64})[0] == 401
    code, answer = container.request("POST", "/webhooks/github", body, signed)
    assert (code, [row["target"] for row in answer["matched"]]) == (202, ["shop"])
    container.wait(lambda: any(line["message"] == "run" and line["run"] == answer["run"] for line in container.lines()))
    for pid in container.pids():
        said = status(pid)
        assert set(said["Uid"].split() + said["Gid"].split()) == {NOBODY}
        assert {said[each] for each in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
        assert said["NoNewPrivs"] == "1"
    container.wait(lambda: all(_is_private(pid) for pid in container.pids()))  # the render server may just have begun
    assert HOOK not in container.log.read_text()


def test_render_children_in_the_image_are_behind_every_sandbox_wall(container: Container) -> None:
    walls = next(line for line in container.run("anneal", "doctor").stdout.splitlines() if line.startswith("walls "))
    seen = "walls          ok       of a render child: seccomp, no descriptors, 1,024 MiB of memory; of programs: Landlock, seccomp"
    assert walls == seen


def test_the_container_writes_only_to_tmpfs_and_starts_no_shell(container: Container) -> None:
    for place in ("/", "/opt/anneal", "/etc/anneal", "/var/tmp", "/home"):
        done = container.run("python", "-c", f"open('{place}/x', 'w')")
        assert done.returncode == 1, place
        assert "Read-only file system" in done.stderr or "Permission denied" in done.stderr
    kept = container.run("python", "-c", "import os; print([os.path.join(at, name) for at, _, names in os.walk('/tmp') for name in names])")
    assert kept.stdout.count("worker.sock") == 1, kept
    assert kept.stdout.count(",") == 0, "the socket is all that lies in /tmp"
    assert container.run("sh", "-c", "true").returncode != 0


def test_the_images_health_check_fails_with_a_dead_worker(image: Image, container: Container) -> None:
    check = image.config["Healthcheck"]["Test"][1:]
    assert container.run(*check).returncode == 0
    worker = _worker(container)
    os.kill(worker, signal.SIGSTOP)
    done = container.run(*check)
    os.kill(worker, signal.SIGCONT)
    assert done.returncode == 1
    assert "unreachable" in done.stderr


def test_pid_1_replaces_a_killed_worker_and_leaves_no_zombie(container: Container) -> None:
    worker, renders = _worker(container), role(container, "handler.render.child")
    os.kill(worker, signal.SIGKILL)
    container.wait(lambda: worker not in container.pids())
    container.wait(lambda: container.request("GET", "/readyz")[0] == 200)
    container.wait(lambda: renders not in container.pids())  # an orphan: process 1 has become its parent, and reaped it
    assert [pid for pid in container.pids() if status(pid)["State"].startswith("Z")] == []
    assert len(memory(container)) == 5, "supervisor, worker, render server, gunicorn's arbiter, web"


def test_sigterm_ends_the_container_with_0(container: Container) -> None:
    pids = container.pids()
    assert container.stop() == 0
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    assert [line["message"] for line in container.lines()].count("a process ended") == 2
    assert not [line for line in container.lines() if line["level"] == "error"]


def test_sigterm_ends_the_container_before_it_serves(image: Image, configuration: Path) -> None:
    """A signal without a handler doesn't reach process 1; here reading the kubeconfig waits for a writer that never comes."""
    os.mkfifo(configuration / "kubeconfig", 0o644)
    environ = {"HOOK": HOOK, "KUBECONFIG": "/etc/anneal/kubeconfig"}
    with Container(image, configuration, environ, ("history",)) as waiting:
        waiting.wait(lambda: b"/bin/anneal" in Path(f"/proc/{waiting.pid}/cmdline").read_bytes())  # before, it is runc
        waiting.wait(lambda: int(status(waiting.pid)["SigCgt"], 16) & 1 << (signal.SIGTERM - 1))
        assert waiting.stop() == 128 + signal.SIGTERM


def test_the_function_image_holds_the_entry_points_and_their_runtime(configuration: Path) -> None:
    function = building.built("function")
    assert function.config["Entrypoint"] == ["python", "-m", "awslambdaric"]
    assert function.config["Cmd"] == ["handler.functions.worker"]
    assert function.config["User"] == f"{NOBODY}:{NOBODY}"
    program = "import awslambdaric.bootstrap as runtime, sys; print(runtime._get_handler('handler.functions.worker'))"
    asked = Image(function.root, function.config | {"Entrypoint": ["python", "-c", program], "Cmd": []})
    with Container(asked, configuration, {}) as ran:
        assert ran.ended() == 0, ran.log.read_text()
        assert "Functions.worker" in ran.log.read_text()


def _worker(container: Container) -> int:
    """Return the id, outside, of the worker: the supervisor's child that was forked and became no other program."""
    first = container.pid
    (found,) = [pid for pid in container.pids() if status(pid)["PPid"] == str(first) and b"handler.web" not in _command(pid)]
    return found


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()
