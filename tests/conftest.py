"""What every suite may ask for: a control plane, kubectl, a namespace of its own, the shared data.

One control plane serves the whole session, all of xdist's workers together: each asks for it in the same directory, the first one
starts it, and the session that made the directory stops it. `ANNEAL_TEST_KUBECONFIG` names a cluster to use instead.
"""

from __future__ import annotations

import concurrent.futures.thread
import contextlib
import gc
import os
import secrets
import shlex
import shutil
import signal
import tempfile
import threading
import weakref
import zlib
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers
from werkzeug.routing import Rule
from xdist.scheduler import LoadFileScheduling, Scheduling

from handler.config.remote_secrets import RemoteSecrets
from handler.render.sandbox import Sandbox
from infra.controlplane import controlplane as controlplanes
from infra.controlplane import processes
from infra.gitea import build as giteas
from infra.giteahost import GiteaHost
from infra.moto import Moto
from infra.prometheushost import Exporter, PrometheusHost
from infra.renderers import build as rendering
from tests.in_process import log_kept
from tests.kubectl import Kubectl
from tests.packing import SESSION
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parent.parent
PREFIX = "anneal-test-"
OWNER = "owner.json"
BROWSERS = 2
"""At most so many run at once: each takes half a gigabyte, and with its page more than a core."""
EXAMPLES = "ANNEAL_MODEL_EXAMPLES"
"""Asks for a search by chance; without it the same examples are tried each time, and no change fails by another's bad luck."""
os.environ.setdefault("PYTEST_TIMEOUT", f"{10 * PATIENCE:g}")  # a hung test ends with its stacks; none comes near but those that say so
DESCRIPTORS = 300
"""Above so many open ones, what earlier tests left open is closed: a shell's usual limit is 1,024."""
PATIENT = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}  # on a busy machine all takes long
hypothesis.settings.register_profile("patient", derandomize=EXAMPLES not in os.environ, **PATIENT)  # type: ignore[arg-type]  # by name
hypothesis.settings.load_profile("patient")
# Else it reads every module that is loaded for values to try: ten seconds in each process, and other examples in each of xdist's workers.
providers._get_local_constants = lambda: providers._local_constants  # which are none
_compile_builder = Rule._compile_builder


def _compiled_when_used(self: Rule, append_unknown: bool = True) -> Callable[..., tuple[str, str]]:
    """Compile what writes a rule's address when an address is written: never by ours, and a thousand tests make an application each."""
    return lambda _, **values: _compile_builder(self, append_unknown)(self, **values)


Rule._compile_builder = _compiled_when_used  # type: ignore[method-assign]  # Werkzeug has no switch for it


def pytest_configure(config: pytest.Config) -> None:
    """Name the directory of the session's control plane; end those that killed sessions left behind."""
    if hasattr(config, "workerinput") or not config.getoption("numprocesses"):
        os.environ.pop("COVERAGE_PROCESS_CONFIG", None)  # a test is traced, not what it starts: that would cost half of its time
    if hasattr(config, "workerinput"):
        return
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells start what runs in the background; what tests start is interrupted
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*/{OWNER}"):
        if not any(processes.alive(owner) for owner in processes.load(left)):
            _remove(left.parent)
    directory = Path(tempfile.mkdtemp(prefix=PREFIX))
    directory.chmod(0o711)  # the TMPDIR of servers: the programs that they render with are users of their own
    processes.save([processes.Process("pytest", os.getpid(), processes.born(os.getpid()))], directory / OWNER)
    os.environ[SESSION] = str(directory)
    os.environ["XDG_STATE_HOME"] = str(directory / "state")  # what a test trusts, the person who runs it doesn't
    os.environ[rendering.VARIABLE] = str(rendering.BUILD.directory / "bin")  # where `renderers` builds them, for whatever tests start
    os.environ["ANNEAL_STATUS_TIMEOUT"] = f"{PATIENCE:g}"  # those that test what hangs set their own


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the session's control plane, if a test asked for it."""
    if not hasattr(config, "workerinput") and SESSION in os.environ:
        _remove(Path(os.environ.pop(SESSION)))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what needs the control plane, so that `-m "not cluster"` leaves it out."""
    for item in items:
        if "control_plane" in getattr(item, "fixturenames", ()):
            item.add_marker("cluster")


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the programs that a collected test asks for, before the first test's time begins; with xdist, in the workers."""
    gc.collect()
    gc.freeze()  # thousands of tests, which live to the end: each full collection would look through them
    asked = {name for item in session.items for name in getattr(item, "fixturenames", ())}
    capture = session.config.pluginmanager.getplugin("capturemanager")
    if session.config.option.collectonly or capture is None:
        return
    with capture.global_and_fixture_disabled():
        if "control_plane" in asked and "ANNEAL_TEST_KUBECONFIG" not in os.environ:
            controlplanes.binaries()
        if "renderers" in asked:
            rendering.binaries()
        if "gitea" in asked:
            giteas.gitea()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say of each test that has failed how to run it alone."""
    failed = [report.nodeid for kind in ("failed", "error") for report in terminalreporter.getreports(kind)]
    for nodeid in dict.fromkeys(failed):
        terminalreporter.write_line(f"to run it alone: scripts/test {shlex.quote(nodeid.removeprefix('tests/'))}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Undo what a test has done with the process's log; close what tests have left open before it is too much."""
    with log_kept():
        done = yield
    if sum(1 for _ in Path("/dev/fd").iterdir()) > DESCRIPTORS:
        gc.collect()  # a handler's parts refer to one another, so its connections stay open until Python collects
    return done


_left: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """What threads that a test left behind say, on a busy machine in the next test, isn't in that one's `caplog`; pools stay in use."""
    captured = item.config.pluginmanager.getplugin("logging-plugin").caplog_handler
    captured.filters[:] = [lambda _: threading.current_thread() not in _left]
    before = {*threading.enumerate()}
    try:
        return (yield)
    finally:
        _left.update({*threading.enumerate()} - before - {*concurrent.futures.thread._threads_queues})


class _FewBrowsers(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
    """Whole files go to workers, those of tests/page to as many as there may be browsers."""

    def _split_scope(self, nodeid: str) -> str:
        file = str(super()._split_scope(nodeid))
        return f"tests/page {zlib.crc32(file.encode()) % BROWSERS}" if file.startswith("tests/page/") else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> Scheduling | None:
    """Hand out files, with few browsers, where files are asked for."""
    return _FewBrowsers(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.fixture(scope="session")
def control_plane() -> Path:
    """The kubeconfig of the session's cluster."""
    given = os.environ.get("ANNEAL_TEST_KUBECONFIG")
    return Path(given) if given else controlplanes.up(Path(os.environ[SESSION]) / "run")


@pytest.fixture
def spare_directory() -> Path:
    """A directory for a control plane of the test's own; it is stopped with the session, however that ends."""
    return Path(tempfile.mkdtemp(prefix="spare-", dir=os.environ[SESSION]))


@pytest.fixture
def kubeconfig(control_plane: Path) -> Path:
    """The kubeconfig of the session's cluster, under the name that commands use."""
    return control_plane


@pytest.fixture(scope="session")
def kubectl(control_plane: Path) -> Kubectl:
    """kubectl against the session's cluster."""
    return Kubectl(controlplanes.binaries() / "kubectl", control_plane)


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """The session's render child."""
    with Sandbox() as running:
        yield running


@pytest.fixture(scope="session")
def renderers() -> Path:
    """The directory of kustomize, helm and sops: a test that runs them, or `anneal` with them, asks for it; ANNEAL_TOOLS names it."""
    return rendering.binaries()


@pytest.fixture
def namespace(kubectl: Kubectl) -> Iterator[str]:
    """A namespace of the test's own; its deletion is not waited for."""
    name = f"t-{secrets.token_hex(5)}"
    kubectl.create_namespace(name)
    yield name
    kubectl.leave_namespaces(name)


@pytest.fixture(scope="session")
def moto() -> Iterator[Moto]:
    """The session's server of Amazon's services; what a test makes there another may see."""
    with Moto() as server:
        yield server


@pytest.fixture
def waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of a store's secret waits until it has answered, however busy the machine is; a handler goes on after 3 seconds."""
    monkeypatch.setattr(RemoteSecrets.renew, "__defaults__", (PATIENCE,))
    monkeypatch.setattr("handler.config.remote_secrets.START", PATIENCE)


@pytest.fixture
def aws(moto: Moto, monkeypatch: pytest.MonkeyPatch) -> Moto:
    """The same, emptied, and the only AWS that this process's environment knows."""
    moto.reset()
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in moto.environment.items():
        monkeypatch.setenv(name, value)
    return moto


@pytest.fixture(scope="session")
def exporter() -> Iterator[Exporter]:
    """What the session's Prometheus scrapes; each test has its own names."""
    with Exporter() as served:
        yield served


@pytest.fixture(scope="session")
def prometheus(exporter: Exporter) -> Iterator[PrometheusHost]:
    """The session's Prometheus, which has scraped once."""
    with PrometheusHost(exporter.address) as host:
        host.wait("up", 1.0)
        yield host


@pytest.fixture(scope="session")
def gitea() -> Iterator[GiteaHost]:
    """The session's Gitea; each test has people, organizations and repositories of its own names there."""
    with GiteaHost() as host:
        yield host


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Recorded webhooks and real manifests that lie beside the checkout."""
    directory = ROOT.parent / "shared" / "data"
    if not directory.is_dir():
        pytest.skip("../shared/data (recorded webhooks, kube-prometheus) is not beside this checkout")
    return directory


def _remove(directory: Path) -> None:
    """End what a session has left, and remove it; another session may be at it, too, and what root has left stays."""
    with contextlib.suppress(FileNotFoundError, PermissionError):
        for instance in directory.iterdir():
            controlplanes.down(instance)
    shutil.rmtree(directory, ignore_errors=True)
