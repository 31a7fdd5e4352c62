"""The control plane against itself: real servers, started and stopped."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infra.controlplane import build, controlplane, processes, servers
from infra.controlplane.pod_failures import LOG
from tests.kubectl import Kubectl

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "scripts" / "controlplane"


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SCRIPT), *arguments], capture_output=True, text=True, check=False, timeout=250, env={**os.environ, **environment}
    )


def started(directory: Path) -> list[processes.Process]:
    return processes.load(servers.Layout(directory).processes)


def silent(message: str) -> None:
    assert message


@pytest.fixture
def sleeper(tmp_path: Path) -> processes.Process:
    return processes.start("sleeper", ["/bin/sleep", "300"], tmp_path / "sleeper.log")


@pytest.fixture
def another_directory(spare_directory: Path) -> Path:
    return Path(tempfile.mkdtemp(prefix="spare-", dir=spare_directory.parent))


def test_two_control_planes_run_side_by_side_and_are_stopped_alone(spare_directory: Path, another_directory: Path) -> None:
    one, two = spare_directory, another_directory
    try:
        for directory in (one, two):
            done = run("up", "--dir", str(directory))
            assert done.returncode == 0, done.stderr
            assert done.stdout.splitlines()[-1] == f"KUBECONFIG={directory}/kubeconfig"
        programs = {process.pid: process.name for process in started(one)}
        clients = [Kubectl(controlplane.binaries() / "kubectl", directory / "kubeconfig") for directory in (one, two)]
        clients[0].run("create", "configmap", "only-in-one")
        assert clients[1].tried("get", "configmap", "only-in-one").returncode == 1

        again = run("up", "--dir", str(one))
        assert again.stdout.splitlines()[-1] == f"KUBECONFIG={one}/kubeconfig"
        assert {process.pid: process.name for process in started(one)} == programs

        assert run("down", "--dir", str(one)).returncode == 0
        assert [pid for pid in programs if processes.born(pid)] == []
        assert all(processes.alive(process) for process in started(two))
        assert clients[1]("get", "namespace", "default")["status"]["phase"] == "Active"
        assert run("down", "--dir", str(one)).returncode == 0
    finally:
        for directory in (one, two):
            controlplane.down(directory)


def test_a_control_plane_with_a_killed_process_is_replaced(spare_directory: Path) -> None:
    directory = spare_directory
    try:
        kubeconfig = controlplane.up(directory, log=silent)
        before = {process.name: process for process in started(directory)}
        os.kill(before["etcd"].pid, signal.SIGKILL)
        while processes.alive(before["etcd"]):
            time.sleep(0.01)
        assert controlplane.up(directory, log=silent) == kubeconfig
        assert not any(processes.alive(process) for process in before.values())
        assert len(started(directory)) == 5
        assert all(processes.alive(process) for process in started(directory))
    finally:
        controlplane.down(directory)
    assert not kubeconfig.exists()


def test_a_busy_control_plane_isnt_replaced(control_plane: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others use it: to end it under them because one look took too long would fail all they do."""
    layout = servers.Layout(control_plane.parent)
    if not started(layout.root):
        pytest.skip("another cluster is used")
    status, looks = controlplane.Api.status, iter((TimeoutError("the read operation timed out"), 500))

    def busy(api: controlplane.Api, path: str, body: dict[str, Any] | None = None) -> int:
        found = next(looks, None)
        if isinstance(found, OSError):
            raise found
        return found or status(api, path, body)

    monkeypatch.setattr(controlplane.Api, "status", busy)
    assert controlplane._running(layout)


def test_a_node_that_was_given_up_comes_back_with_its_address_and_is_heard_of_meanwhile(spare_directory: Path) -> None:
    """Without a Lease the Node is NotReady after ten minutes; made ready anew, it had no address, and no log could be read."""
    try:
        kubectl = Kubectl(controlplane.binaries() / "kubectl", controlplane.up(spare_directory, log=silent))
        assert kubectl("get", "lease", controlplane.NODE, "-n", "kube-node-lease")["spec"]["renewTime"]
        lost = {"type": "Ready", "status": "False", "reason": "Lost"}
        kubectl.run("patch", "node", controlplane.NODE, "--subresource=status", "-p", json.dumps({"status": {"conditions": [lost]}}))
        kubectl.run("wait", "node", controlplane.NODE, "--for=condition=Ready", "--timeout=110s")
        kubectl.run("run", "api", "--image=api:1")
        kubectl.run("wait", "pod", "api", "--for=condition=Ready", "--timeout=110s")
        assert kubectl.run("logs", "api").splitlines() == list(LOG)
    finally:
        controlplane.down(spare_directory)


def test_the_control_plane_listens_on_loopback_and_its_secrets_are_0600(control_plane: Path) -> None:
    directory = control_plane.parent
    pids = {process.pid for process in started(directory)}
    if not pids:
        pytest.skip("another cluster is used")
    listening = {address for pid in pids for address in _listening(pid)}
    assert len(listening) >= 6
    assert {address.rpartition(":")[0] for address in listening} == {"0100007F"}
    for path in ("kubeconfig", "data/tokens.csv", "data/serviceaccount.key", "data/certs/apiserver.key"):
        assert stat.S_IMODE((directory / path).stat().st_mode) == 0o600, path


def _listening(pid: int) -> list[str]:
    """Return the listening TCP addresses of a process, as /proc/net/tcp writes them (0100007F:1F90)."""
    inodes = set()
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a busy server closes one connection after the other
            inodes.add(str(link.readlink()))
    rows = [row.split() for name in ("tcp", "tcp6") for row in Path(f"/proc/net/{name}").read_text().splitlines()[1:]]
    return [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes]


def test_pods_run_jobs_complete_and_versions_are_told(kubectl: Kubectl, namespace: str) -> None:
    kubectl.run("create", "deployment", "web", "--image=web", "--replicas=2", "-n", namespace)
    kubectl.run("create", "job", "once", "--image=once", "-n", namespace)
    kubectl.run("rollout", "status", "deployment/web", "-n", namespace, "--timeout=110s")
    kubectl.run("wait", "--for=condition=complete", "job/once", "-n", namespace, "--timeout=110s")
    version = kubectl("version")
    assert version["serverVersion"]["gitVersion"] == version["clientVersion"]["gitVersion"] == build.VERSION


def test_the_token_is_needed_and_rbac_decides(kubectl: Kubectl, tmp_path: Path) -> None:
    stranger = tmp_path / "kubeconfig"
    stranger.write_text(kubectl.kubeconfig.read_text().replace("token: ", "token: wrong"))
    refused = Kubectl(kubectl.program, stranger).tried("get", "--raw", "/api/v1/namespaces/default/configmaps")
    assert "Unauthorized" in refused.stderr or "provide credentials" in refused.stderr
    assert "Forbidden" in kubectl.tried("get", "configmaps", "--as=somebody").stderr


def test_without_go_the_control_plane_says_what_to_install(tmp_path: Path) -> None:
    path = tmp_path / "bin"
    path.mkdir()
    (path / "python3.11").symlink_to(sys.executable)
    for name in ("bash", "dirname"):
        (path / name).symlink_to(shutil.which(name) or name)
    done = run("up", "--dir", str(tmp_path / "run"), PATH=str(path), XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert "Install Go 1.26 or newer" in done.stderr
    assert "Traceback" not in done.stderr


def test_assets_that_lack_a_program_are_refused_by_name(tmp_path: Path) -> None:
    done = run("up", "--dir", str(tmp_path / "run"), KUBEBUILDER_ASSETS=str(tmp_path))
    assert done.returncode == 1
    assert "etcd, kube-apiserver, kubectl can't be run there" in done.stderr


def test_assets_that_are_given_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    built = controlplane.binaries()
    for name in build.ASSETS:
        (tmp_path / name).symlink_to(built / name)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    programs = build.tools(silent).programs
    assert controlplane.binaries() == tmp_path
    assert programs["etcd"] == tmp_path / "etcd"
    assert programs["kwok"] == built / "kwok"


def test_a_directory_with_other_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "precious").write_text("mine")
    done = run("up", "--dir", str(tmp_path))
    assert done.returncode == 1
    assert "holds other files" in done.stderr
    assert run("down", "--dir", str(tmp_path)).returncode == 0
    assert (tmp_path / "data" / "precious").read_text() == "mine"


def test_the_directory_lock_decides_between_two_commands_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of one test run start theirs together: each looks, and the first one's lock may come between two looks."""
    layout, look = servers.Layout(tmp_path), Path.iterdir

    def listed(path: Path) -> Iterator[Path]:
        layout.lock.touch()
        return look(path)

    monkeypatch.setattr(Path, "iterdir", listed)
    assert controlplane._claimed(tmp_path).root == tmp_path


def test_a_server_that_ends_shows_the_last_lines_of_its_log(spare_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "etcd", lambda _layout, _ports: ["--data-dir=/dev/null/nowhere"])
    with pytest.raises(build.ControlPlaneError, match=r"(?s)etcd ended while starting.*/dev/null/nowhere"):
        controlplane.up(spare_directory, log=silent)
    assert started(spare_directory) == []


@pytest.mark.parametrize(("server", "other"), [("etcd", "peer"), ("kwok", "kube-apiserver")])
def test_a_port_that_was_taken_meanwhile_is_another_one_next_time(
    spare_directory: Path, monkeypatch: pytest.MonkeyPatch, server: str, other: str
) -> None:
    free, chosen = servers.free_ports, []

    def taken_first() -> dict[str, int]:
        ports = free()
        chosen.append(ports)
        return {**ports, server: ports[other]} if len(chosen) == 1 else ports

    monkeypatch.setattr(servers, "free_ports", taken_first)
    try:
        controlplane.up(spare_directory, log=silent)
        assert len(chosen) == 2
    finally:
        controlplane.down(spare_directory)


def test_a_recycled_pid_is_not_killed(tmp_path: Path, sleeper: processes.Process) -> None:
    layout = servers.Layout(tmp_path / "run")
    layout.root.mkdir()
    layout.lock.touch()
    processes.save([replace(sleeper, born="boot:1")], layout.processes)
    try:
        controlplane.down(layout.root)
        assert processes.alive(sleeper)
        assert not layout.processes.exists()
    finally:
        processes.stop([sleeper])
    assert not processes.alive(sleeper)


def test_a_child_whose_first_thread_has_ended_is_waited_for(sleeper: processes.Process, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a program with threads /proc may say Z while others of them still end; its parent can't reap it before they have."""
    monkeypatch.setattr(processes, "born", lambda pid: "")
    assert processes.alive(sleeper)
    processes.stop([sleeper])
    assert not Path(f"/proc/{sleeper.pid}").exists(), "it is still a zombie"


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    deaf = processes.start("deaf", ["/bin/sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done"], tmp_path / "log")
    while "ready" not in (tmp_path / "log").read_text():
        time.sleep(0.01)
    processes.stop([deaf], patience=0.1)
    assert not processes.alive(deaf)


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"name": "x"}]', '{"a": 1}'])
def test_an_unreadable_record_is_an_empty_one(tmp_path: Path, text: str) -> None:
    (tmp_path / "processes.json").write_text(text)
    assert processes.load(tmp_path / "processes.json") == []


def test_the_stages_make_nodes_ready_and_pods_run() -> None:
    stages = (build.ensure_built(silent) / "stages.yaml").read_text()
    names = [line.partition(":")[2].strip() for line in stages.splitlines() if line.startswith("  name:")]
    assert names == [Path(stage).stem for stage in build.STAGES]


def test_a_record_round_trips(tmp_path: Path, sleeper: processes.Process) -> None:
    processes.save([sleeper], tmp_path / "record")
    try:
        assert processes.load(tmp_path / "record") == [sleeper]
        assert json.loads((tmp_path / "record").read_text())[0]["pid"] == sleeper.pid
    finally:
        processes.stop([sleeper])


def test_where_there_is_no_proc_ps_knows_a_process_again() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        token = processes._started_by_ps(child.pid)
        assert token
        assert processes._started_by_ps(child.pid) == token
        child.kill()
    assert processes._started_by_ps(child.pid) == ""
