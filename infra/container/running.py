"""Runs an image the way a careful operator does: as its own user, its root file system read-only, no capability, a network of its own.

The runtime is runc. Writable are /tmp and /dev/shm, in memory; no shell can be started, should the image hold one. A caller
enters the container's network; nothing of it can be reached from outside, and it reaches nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from infra.container.building import Image
from infra.container.tools import ContainerError, runc
from infra.patience import PATIENCE

SHELLS = ("dash", "bash")
_CLONE_NEWNET = 0x40000000  # setns(2)
_NOWHERE: dict[str, list[str]] = {each: [] for each in ("bounding", "effective", "permitted", "inheritable", "ambient")}
_MEMORY = ["nosuid", "nodev", "mode=1777", "size=512m"]


class Container:
    """A running container; used as a context, it is stopped by SIGTERM and, if that doesn't help, killed."""

    def __init__(self, image: Image, configuration: Path, environment: Mapping[str, str], arguments: tuple[str, ...] = ()) -> None:
        """`configuration`: the directory mounted at /etc/anneal; `environment`: added to the image's; `arguments`: instead of its own."""
        self._work = Path(tempfile.mkdtemp(prefix="anneal-container-"))
        self._name = self._work.name
        self.log = self._work / "log"
        (self._work / "config.json").write_text(json.dumps(_bundle(image, configuration, environment, arguments)))
        with self.log.open("wb") as output:
            self._process = subprocess.Popen(
                runc("run", "--bundle", str(self._work), self._name), stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ContainerError):  # it has ended, or was never made
            self.stop()
        self._process.kill()
        self._process.wait()
        subprocess.run(runc("delete", "--force", self._name), capture_output=True, check=False)
        shutil.rmtree(self._work, ignore_errors=True)

    @property
    def pid(self) -> int:
        """The id, outside, of its process 1."""
        return int(json.loads(_said(runc("state", self._name)))["pid"])

    def pids(self) -> list[int]:
        """Return the ids, outside, of all its processes."""
        return [int(each) for each in json.loads(_said(runc("ps", "--format=json", self._name)))]

    def request(self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> tuple[int, Any]:
        """Ask it at port 8080 of its own loopback; return status and JSON. Raises OSError."""
        connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=PATIENCE)
        connection.sock = self._connected()
        with contextlib.closing(connection):
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command in it, as engines run the health check."""
        return subprocess.run(runc("exec", self._name, *command), capture_output=True, text=True, check=False)

    def lines(self) -> list[dict[str, Any]]:
        """Return its log, without a line that is still being written."""
        return [json.loads(line) for line in self.log.read_text().split("\n")[:-1] if line.startswith("{")]

    def wait(self, reached: Callable[[], object]) -> None:
        """Wait until something holds. Raises ContainerError with the log: it ended, or it takes too long."""
        deadline = time.monotonic() + PATIENCE
        while not _held(reached):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise ContainerError(f"not reached; the log:\n{self.log.read_text()[-3000:]}")
            time.sleep(0.05)

    def stop(self) -> int:
        """Send process 1 the stop signal; return the exit status. Raises ContainerError if it has to be killed."""
        os.kill(self.pid, signal.SIGTERM)
        try:
            return self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            subprocess.run(runc("kill", self._name, "KILL"), capture_output=True, check=False)
            self._process.wait()
            raise ContainerError(f"SIGTERM didn't end it; the log:\n{self.log.read_text()[-3000:]}") from None

    def ended(self) -> int:
        """Wait until it has ended by itself; return the exit status."""
        return self._process.wait(PATIENCE)

    def _connected(self) -> socket.socket:
        """Connect from inside its network: a thread enters it and ends; the socket stays where it was made."""
        made: list[socket.socket | OSError] = []

        def enter() -> None:
            try:
                with Path(f"/proc/{self.pid}/ns/net").open() as namespace:
                    if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _CLONE_NEWNET):
                        raise OSError(ctypes.get_errno(), "setns")
                made.append(socket.create_connection(("127.0.0.1", 8080), timeout=PATIENCE))
            except (OSError, ContainerError) as error:
                made.append(error if isinstance(error, OSError) else OSError(str(error)))

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        (found,) = made
        if isinstance(found, OSError):
            raise found
        return found


def _held(reached: Callable[[], object]) -> bool:
    try:
        return bool(reached())
    except (OSError, ContainerError):  # it isn't made yet, or no process listens yet
        return False


def _said(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ContainerError(f"runc {command[3]}: {done.stderr.strip()}")
    return done.stdout


def _bundle(image: Image, configuration: Path, environment: Mapping[str, str], arguments: tuple[str, ...]) -> dict[str, Any]:
    """Return the runtime's configuration (OCI runtime specification 1.0), from what the image says of itself."""
    said = image.config
    user, group = (int(each) for each in said["User"].split(":"))
    mounts = [
        {"destination": "/proc", "type": "proc", "source": "proc"},
        {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=64k"]},
        {"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["noexec", *_MEMORY]},  # noqa: S108 - a mount point
        {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["noexec", *_MEMORY]},  # noqa: S108 - a mount point
        {"destination": "/etc/anneal", "type": "bind", "source": str(configuration), "options": ["bind", "ro"]},
        *({"destination": f"/usr/bin/{each}", "type": "bind", "source": "/dev/null", "options": ["bind", "ro"]} for each in SHELLS),
    ]
    process = {
        "user": {"uid": user, "gid": group},
        "args": [*said["Entrypoint"], *(arguments or said["Cmd"])],
        "env": [*said["Env"], *(f"{name}={value}" for name, value in environment.items())],
        "cwd": said["WorkingDir"] or "/",
        "capabilities": _NOWHERE,
        "noNewPrivileges": True,
    }
    namespaces = [{"type": each} for each in ("pid", "ipc", "uts", "mount", "network")]
    linux = {
        "namespaces": namespaces,
        "maskedPaths": ["/proc/kcore", "/proc/keys"],
        "readonlyPaths": ["/proc/sys", "/proc/bus"],
    }
    root = {"path": str(image.root), "readonly": True}
    return {"ociVersion": "1.0.2", "process": process, "root": root, "hostname": "anneal", "mounts": mounts, "linux": linux}
