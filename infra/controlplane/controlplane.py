"""A real Kubernetes control plane on loopback: etcd, API server, controller-manager, scheduler and kwok with one fake Node.

`up` gives a fresh cluster in a directory of its own, `down` ends exactly that one. Nothing survives a start but the programs in the
cache, so a crashed instance is never repaired, only replaced. Linux, standard library only: `scripts/controlplane` runs it with any
Python 3.11, and tests, demo and bench import it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import shutil
import socket
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from infra.controlplane import processes, servers
from infra.controlplane.build import ControlPlaneError, Log, Tools, cache, kubectl_directory, locked, tools
from infra.controlplane.servers import LOOPBACK, Layout
from infra.gobuild import report

START_TRIES = 3
READY_SECONDS = 180.0
BUSY_SECONDS = 60.0
"""In which an API server that runs says that it is ready: others may be using it, and the machine is busy with them."""
NODE = "node-0"


class Ended(ControlPlaneError):
    """A server has ended while starting: a port was taken meanwhile, or it gave up on another that a busy machine starts slowly."""


def binaries(*, log: Log = report) -> Path:
    """Return the directory that holds kubectl of the server's own version, built first when needed."""
    return kubectl_directory(log)


def up(directory: Path, *, log: Log = report) -> Path:
    """Make sure a control plane runs in `directory` and return its kubeconfig; one that runs already is left as it is.

    Ready means: /readyz, the Node is Ready, the default service account exists. Raises ControlPlaneError with the last lines of
    the log that explains it.
    """
    layout = _claimed(directory)
    with locked(layout.lock, waiting=lambda: log(f"another command works on {layout.root}: waiting for it")):
        if _running(layout):
            return layout.kubeconfig
        _end(layout)
        programs = tools(log)
        for attempt in range(1, START_TRIES + 1):
            try:
                return _start(layout, programs, log)
            except Ended as failure:
                _end(layout)
                if attempt == START_TRIES:
                    raise
                log(f"starting again: {str(failure).partition(';')[0]}")
            except BaseException:
                _end(layout)
                raise
    raise AssertionError("the last attempt has returned or raised")


def down(directory: Path) -> None:
    """End the control plane in `directory`; returns when every process has ended. Nothing there is nothing to do."""
    layout = Layout(Path(directory).resolve())
    if layout.lock.exists():
        with locked(layout.lock):
            _end(layout)


def _claimed(directory: Path) -> Layout:
    """Return the layout of a directory that is new, empty or ours already; another's is refused."""
    layout = Layout(Path(directory).resolve())
    layout.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    found = set(layout.root.iterdir())  # one look: another command may be claiming it
    if found and layout.lock not in found:
        raise ControlPlaneError(f"{layout.root} holds other files; give a directory that is new or empty")
    return layout


def _running(layout: Layout) -> bool:
    """Tell whether every server of the record runs and the API server is ready, which it may not say at once."""
    started, deadline = processes.load(layout.processes), time.monotonic() + BUSY_SECONDS
    if len(started) != 5 or not layout.kubeconfig.exists():
        return False
    while all(processes.alive(process) for process in started):
        with contextlib.suppress(OSError):
            if Api(layout).status("/readyz") == 200:
                return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return False


def _end(layout: Layout) -> None:
    """Stop what the record names and forget the instance; logs stay until the next start.

    An API server whose etcd has gone doesn't end by itself for seconds, and nothing of it is kept: it is killed.
    """
    processes.stop(processes.load(layout.processes)[::-1], patience=0.1)
    for path in (layout.kubeconfig, layout.processes):
        path.unlink(missing_ok=True)
    shutil.rmtree(layout.data, ignore_errors=True)


def _start(layout: Layout, programs: Tools, log: Log) -> Path:
    """Start everything from nothing and wait until it is ready."""
    began = time.monotonic()
    for directory in (layout.certificate.parent, layout.log("x").parent):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    ports, instance = servers.free_ports(), Instance(layout, programs)
    token = servers.write_credentials(layout)
    log("starting etcd and kube-apiserver")
    instance.start("etcd", servers.etcd(layout, ports))
    instance.start("kube-apiserver", servers.kube_apiserver(layout, ports))
    instance.wait(lambda: layout.certificate.exists() and layout.certificate.with_suffix(".key").exists())
    servers.write_private(layout.kubeconfig, servers.kubeconfig(ports["kube-apiserver"], layout.certificate.read_bytes(), token))
    api = Api(layout)
    instance.wait(lambda: api.status("/readyz") == 200)
    log("starting kube-controller-manager, kube-scheduler and kwok")
    instance.start("kube-controller-manager", servers.kube_controller_manager(layout, ports))
    instance.start("kube-scheduler", servers.kube_scheduler(layout, ports))
    instance.start("kwok", servers.kwok(layout, ports, programs.stages))
    instance.wait(lambda: api.status("/api/v1/nodes", _node()) in (201, 409))
    instance.wait(lambda: _serves(layout, ports["kwok"]))
    log("waiting for the node and the default service account")
    instance.wait(lambda: _node_ready(api) and api.status("/api/v1/namespaces/default/serviceaccounts/default") == 200)
    log(f"control plane ready in {time.monotonic() - began:.1f} s: {programs.programs['kube-apiserver'].parent}")
    return layout.kubeconfig


class Instance:
    """The servers of one start: started, recorded, and watched while we wait for them."""

    def __init__(self, layout: Layout, programs: Tools) -> None:
        self.layout, self.programs = layout, programs
        self.started: list[processes.Process] = []

    def start(self, name: str, arguments: list[str]) -> None:
        """Start one server and put it on record at once."""
        self.started.append(processes.start(name, [str(self.programs.programs[name]), *arguments], self.layout.log(name)))
        processes.save(self.started, self.layout.processes)

    def wait(self, condition: Callable[[], bool]) -> None:
        """Return when the condition holds; a server that ends meanwhile, or too long a wait, raises with its log's last lines."""
        deadline = time.monotonic() + READY_SECONDS
        while True:
            for process in self.started:
                if not processes.alive(process):
                    raise Ended(self._failure(process.name, "ended while starting"))
            try:
                if condition():
                    return
            except OSError:
                pass  # the port isn't open yet
            if time.monotonic() > deadline:
                raise ControlPlaneError(self._failure(self.started[-1].name, f"was not ready after {READY_SECONDS:.0f} s"))
            time.sleep(0.05)

    def _failure(self, name: str, what: str) -> str:
        path = self.layout.log(name)
        lines = path.read_text(errors="replace").splitlines()
        return f"{name} {what}; the last lines of {path}:\n  " + "\n  ".join(lines[-15:])


class Api:
    """The few requests that starting takes, over verified TLS and past any proxy of the environment."""

    def __init__(self, layout: Layout) -> None:
        text = layout.kubeconfig.read_text()
        self.server = text.partition("server: ")[2].split()[0]
        self.token = text.partition("token: ")[2].partition("}")[0]
        trust = ssl.create_default_context(cafile=str(layout.certificate))
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trust))

    def status(self, path: str, body: dict[str, Any] | None = None) -> int:
        """Return the HTTP status of a GET, or of a POST when there is a body."""
        return self.call(path, body)[0]

    def call(self, path: str, body: dict[str, Any] | None = None) -> tuple[int, bytes]:
        """Return status and body; raises OSError without an answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        try:
            request = urllib.request.Request(self.server + path, data, headers)  # noqa: S310 - our own https address
            with self.opener.open(request, timeout=10) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read()


def _serves(layout: Layout, port: int) -> bool:
    """Tell whether our kwok can be asked for logs: where another has its port, it goes on without. Raises Ended, OSError."""
    if "address already in use" in layout.log("kwok").read_text(errors="replace"):
        raise Ended(f"kwok's port {port} was taken before it listened")
    trust = ssl.create_default_context(cafile=str(layout.certificate))
    with socket.create_connection((LOOPBACK, port), timeout=5) as plain, trust.wrap_socket(plain, server_hostname=LOOPBACK):
        return True


def _node() -> dict[str, Any]:
    """Return the one fake Node: room for everything a demo, a test or a bench starts.

    Both addresses, or kwok forgets the one it knows whenever it makes the Node ready anew.
    """
    room = {"cpu": "256", "memory": "1Ti", "pods": "20000", "ephemeral-storage": "10Ti"}
    addresses = [{"type": "InternalIP", "address": LOOPBACK}, {"type": "Hostname", "address": NODE}]
    labels = {"kubernetes.io/hostname": NODE, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "type": "kwok"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": NODE, "labels": labels, "annotations": {"kwok.x-k8s.io/node": "fake"}},
        "status": {"capacity": room, "allocatable": room, "addresses": addresses},
    }


def _node_ready(api: Api) -> bool:
    """Tell whether the Node is Ready and no taint keeps pods away."""
    status, body = api.call(f"/api/v1/nodes/{NODE}")
    if status != 200:
        return False
    node = json.loads(body)
    conditions = {condition["type"]: condition["status"] for condition in node["status"].get("conditions", ())}
    return conditions.get("Ready") == "True" and not node["spec"].get("taints")


def main(arguments: list[str] | None = None) -> int:
    """Run `scripts/controlplane`."""
    parser = argparse.ArgumentParser(prog="scripts/controlplane", description=__doc__.partition("\n\n")[0])
    parser.add_argument("command", choices=("up", "down", "binaries"), help="binaries prints the directory of kubectl")
    parser.add_argument("--dir", type=Path, default=cache() / "run" / "default", help="the instance (default: %(default)s)")
    given = parser.parse_args(arguments)
    try:
        if given.command == "down":
            down(given.dir)
            return 0
        line = f"KUBECONFIG={up(given.dir)}" if given.command == "up" else str(binaries())
    except ControlPlaneError as error:
        report("")
        sys.stderr.write(f"controlplane: {error}\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("\ncontrolplane: interrupted; what had been started is stopped\n")
        return 130
    if sys.stderr.isatty():
        sys.stderr.write("\n")
    print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())
