"""What the demo runs on: a directory with everything in it, and the processes that it started, each known by its PID.

Law: whatever is started is on record before anything else happens, so that `close`, or a later `--down`, ends just that.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from infra import ports
from infra.controlplane import controlplane
from infra.controlplane.processes import Process, alive, born, load, save, stop
from infra.demo import github
from infra.demo.cluster import Kubectl, Names, clean, refuse_taken
from infra.demo.narration import DemoFailed
from infra.demo.runs import Log
from infra.renderers import build as renderers

ROOT = Path(__file__).resolve().parents[2]
LOOPBACK = "127.0.0.1"
START_SECONDS = 60.0
STOP_SECONDS = 25.0
"""Longer than the 20 s in which `anneal serve` ends."""
FOREIGN = "cluster.json"


def home() -> Path:
    """Return the directory of all demos of this user."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "anneal" / "demo"


class Stage:
    """One demo's directory and processes. As a context it ends what it started and removes the directory."""

    def __init__(self, directory: Path, names: Names, *, own: bool, page: bool = False) -> None:
        """`own`: the cluster is the demo's; otherwise `kubeconfig` lies in the directory already and only `names` are touched.

        `page`: whether `anneal serve` has a page.
        """
        self.directory, self.names, self.own, self.page = directory, names, own, page
        self.log = Log(directory / "anneal.log")
        self.config = directory / "anneal.yaml"
        self._port = ports.keep()
        self.address = f"{LOOPBACK}:{self._port.getsockname()[1]}"
        self.git_address = ""
        self._kubectl: Kubectl | None = None
        self._server: Process | None = None
        self._record([Process("demo", os.getpid(), born(os.getpid()))])
        self.secret, _, self.token = (_new_secret(path) for path in (self.secret_file, self.page_key_file, self.token_file))

    def __enter__(self) -> Stage:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- where things are
    @property
    def processes(self) -> Path:
        """The record of what was started."""
        return self.directory / "processes.json"

    @property
    def secret_file(self) -> Path:
        """The webhook secret."""
        return self.directory / "webhook-secret"

    @property
    def page_key_file(self) -> Path:
        """What signs the page's cookies."""
        return self.directory / "page-key"

    @property
    def token_file(self) -> Path:
        """The token to sign in to the page with."""
        return self.directory / "page-token"

    @property
    def plane(self) -> Path:
        """The control plane's directory."""
        return self.directory / "controlplane"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of all parts."""
        return self.plane / "kubeconfig" if self.own else self.directory / "kubeconfig"

    @property
    def kubectl(self) -> Kubectl:
        """kubectl; of the server's own version where the control plane is the demo's, else the one on PATH if there is one."""
        if self._kubectl is None:
            found = None if self.own else shutil.which("kubectl")
            program = Path(found) if found else controlplane.binaries(log=lambda _: None) / "kubectl"
            self._kubectl = Kubectl(program, self.kubeconfig, self.directory)
        return self._kubectl

    # --- the control plane
    def begin_controlplane(self) -> subprocess.Popen[bytes]:
        """Start the control plane, built first when needed, beside everything else."""
        command = [sys.executable, "-m", "infra.controlplane.controlplane", "up", "--dir", str(self.plane)]
        with (self.directory / "controlplane.log").open("wb") as log:
            plane = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=ROOT, start_new_session=True)
        self._record([Process("controlplane", plane.pid, born(plane.pid))])
        return plane

    def await_controlplane(self, plane: subprocess.Popen[bytes], tell: Callable[[str], None]) -> str:
        """Return when the control plane is ready, with the last line it said; `tell` hears the others.

        Raises:
            DemoFailed: with its words.

        """
        log, shown, ended = self.directory / "controlplane.log", 0, False
        while not ended:
            ended = plane.poll() is not None
            said = [line for line in log.read_text(errors="replace").splitlines() if not line.startswith("KUBECONFIG=")]
            for line in said[shown:]:
                tell(line)
            shown = len(said)
            time.sleep(0.05)
        if plane.returncode:
            raise DemoFailed("\n".join(said[-20:]))
        return said[-1] if said else "the control plane runs"

    # --- git host and handler
    def start_githost(self) -> None:
        """Start the git host on a free port."""
        log = self.directory / "githost.log"
        self._start("githost", [sys.executable, "-m", "infra.githost", "--root", str(self.directory / "git"), "--create", "shop"], log)
        for line in self._appearing(log):
            if line.startswith("GITHOST="):
                self.git_address = line.partition("://")[2].strip().rstrip("/")
                return

    def start_anneal(self, config: str) -> float:
        """Write the configuration and start `anneal serve`; returns the seconds until it was ready for webhooks."""
        self.config.write_text(config)
        mark, began = self.log.mark(), time.monotonic()
        command = [sys.executable, "-P", "-m", "handler", "serve", "--config", str(self.config), "--bind", self.address]
        self._server = self._start("anneal", command, self.log.path)
        self.log.wait(mark, lambda line: line.message == "listening", "anneal serve to listen", self.serving)
        self._await_ready()
        return time.monotonic() - began

    def _await_ready(self) -> None:
        """Return when the door says that webhooks are taken. Raises DemoFailed."""
        deadline = time.monotonic() + START_SECONDS
        while not github.ready(self.address):
            if time.monotonic() > deadline or not self.serving():
                raise DemoFailed(f"anneal serve doesn't get ready on {self.address}")
            time.sleep(0.02)

    def stop_anneal(self) -> float:
        """Stop `anneal serve` by SIGTERM and return the seconds it took."""
        began = time.monotonic()
        if self._server:
            stop([self._server], patience=STOP_SECONDS)
        self._server = None
        return time.monotonic() - began

    def serving(self) -> bool:
        """Whether `anneal serve` runs."""
        return self._server is not None and alive(self._server)

    def environment(self) -> dict[str, str]:
        """Return the environment of our own programs: this checkout's code and tools, loopback past any proxy."""
        direct = {name: ",".join(filter(None, (os.environ.get(name), LOOPBACK, "localhost"))) for name in ("NO_PROXY", "no_proxy")}
        paths = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        return {**renderers.environment(), **direct, "PYTHONPATH": paths, "ANNEAL_CONFIG": str(self.config), "LOGNAME": "demo"}

    def anneal(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run an `anneal` command against this demo's configuration."""
        command = [sys.executable, "-P", "-m", "handler", *arguments]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, cwd=self.directory, env=self.environment()
        )

    # --- the end
    def close(self) -> None:
        """End every process, clean a cluster that isn't ours, remove the directory."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the end is short and must be reached
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end(self.directory)
        self._port.close()

    def _start(self, name: str, command: list[str], log: Path) -> Process:
        with log.open("ab") as output:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.directory,
                env=self.environment(),
                start_new_session=True,
            )
        process = Process(name, child.pid, born(child.pid))
        self._record([process])
        return process

    def _record(self, more: list[Process]) -> None:
        save([*load(self.processes), *more], self.processes)

    def _appearing(self, log: Path) -> Iterator[str]:
        """Yield the lines of a log again and again until the caller has found what it looks for. Raises DemoFailed."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            yield from log.read_text().splitlines()
            time.sleep(0.02)
        raise DemoFailed(f"{log.name}: not ready after {START_SECONDS:.0f} s:\n{log.read_text()[-2000:]}")


def _new_secret(path: Path) -> str:
    path.touch(mode=0o600)
    path.write_text(made := secrets.token_hex(16))
    return made


def make(names: Names, kubeconfig: str | None, *, page: bool = False) -> Stage:
    """Make a directory for a demo. `kubeconfig`: the text of a foreign cluster's, or None for a control plane of its own.

    `page`: whether `anneal serve` has a page.

    Raises:
        DemoFailed: the foreign cluster holds one of the demo's names already.

    """
    home().mkdir(parents=True, exist_ok=True, mode=0o700)
    directory = Path(tempfile.mkdtemp(prefix="run-", dir=home()))
    stage = Stage(directory, names, own=kubeconfig is None, page=page)
    if kubeconfig is not None:
        try:
            _prepare_foreign(stage, kubeconfig)
        except BaseException:
            stage.close()
            raise
    return stage


def _prepare_foreign(stage: Stage, kubeconfig: str) -> None:
    stage.kubeconfig.touch(mode=0o600)
    stage.kubeconfig.write_text(kubeconfig)
    refuse_taken(stage.kubectl, stage.names)
    facts = {"kubectl": str(stage.kubectl.program), "prefix": stage.names.prefix}
    (stage.directory / FOREIGN).write_text(json.dumps(facts))  # from here on, what bears the names is ours


def end(directory: Path) -> None:
    """End a demo's processes but this one, clean its foreign cluster, and remove its directory.

    Raises:
        DemoFailed: something in a foreign cluster couldn't be deleted; the directory stays, for another try.

    """
    started = [process for process in load(directory / "processes.json") if process.pid != os.getpid()]
    plane = [process for process in started if process.name == "controlplane"]
    _stop_groups(plane)
    stop([process for process in started[::-1] if process not in plane], patience=STOP_SECONDS)
    if (directory / "controlplane").is_dir():
        controlplane.down(directory / "controlplane")
    if (directory / FOREIGN).exists():
        facts = json.loads((directory / FOREIGN).read_text())
        left = clean(Kubectl(Path(facts["kubectl"]), directory / "kubeconfig", directory), Names(facts["prefix"]))
        if left:
            raise DemoFailed("\n".join((*left, "scripts/demo --down tries again")))
    shutil.rmtree(directory, ignore_errors=True)


def _stop_groups(processes: list[Process]) -> None:
    """Interrupt a control plane that is being built or started, with the compilers it runs; they share its process group."""
    for process in processes:
        if alive(process):
            os.killpg(process.pid, signal.SIGINT)
            deadline = time.monotonic() + 10
            while alive(process) and time.monotonic() < deadline:
                time.sleep(0.05)
    stop(processes)


def down() -> int:
    """End every demo of this user, kept or left behind; returns how many there were."""
    found = sorted(home().glob("run-*/processes.json"))
    for record in found:
        demo = [process for process in load(record) if process.name == "demo"]
        stop(demo, patience=180.0)  # it ends what it started, and may have a cluster to clean
        if record.parent.is_dir():
            end(record.parent)
    return len(found)
