"""`anneal doctor`: the machine (Python, libraries, the render child and its walls, clocks), what `anneal check` looks at, and a server."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

import yaml

from handler import __version__
from handler.cli.check import check_references, check_targets, ended, is_configured, reached
from handler.cli.check_table import Findings
from handler.cli.server_client import ServerClient, ServerUnavailable
from handler.cli.session import Session
from handler.cluster.api import Api
from handler.cluster.connect import connect
from handler.config.decryption import SOPS
from handler.config.renderer_settings import HELM, JSONNET, KUSTOMIZE, NIX
from handler.config.settings import Cluster, Target
from handler.model.advice import advice
from handler.model.errors import AccessDenied, AnnealError, ConfigInvalid, OperatorError, Problem, RenderFailed
from handler.model.numbers import many
from handler.model.render import RenderRequest
from handler.render import RENDERERS, render_tools
from handler.render.nix import nixpkgs
from handler.render.programs.program_walls import CALLS, FILES
from handler.render.sandbox import Sandbox
from handler.render.walls import SandboxWalls, decode_program_walls, probe
from handler.source.local_tree import open_local

_PACKAGES = ("click", "dulwich", "kubernetes", "urllib3", "PyYAML", "jsonschema", "Flask", "gunicorn", "rich")
_OLDEST = (3, 11)
_SKEW = 5.0  # seconds that clocks may differ: a Lease allows as much (`handler.state.lease`)
_SAMPLE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: doctor}\ndata: {a: b}\n"
_WALLS_FIX = (
    "on Linux on x86_64 or aarch64, let the container's seccomp profile allow prctl (PR_SET_NO_NEW_PRIVS and PR_SET_SECCOMP; the"
    " runtime's default does); AWS Lambda refuses it, and its virtual machine is the wall (SECURITY.md)"
)
_PROGRAM_WALLS_FIX = (
    "run on Linux 5.13 or newer with Landlock, let the container's seccomp profile allow landlock_create_ruleset and seccomp, or set"
    " `sandbox: weak` on targets whose repositories you trust as much as this machine"
)
_TOKEN = "export ANNEAL_TOKEN=VALUE, of one of its `replay.tokens` that may read"  # noqa: S105 - says where a token is found


def doctor(session: Session, target: str | None, *, server: str | None, ca_file: str, insecure_http: bool) -> int:
    """Look at this machine and its tools, at what `anneal check` looks at, and at a running server; change nothing."""
    findings = Findings(session.output)
    _machine(session, findings)
    chosen: tuple[Target, ...] = ()
    try:
        session.path  # noqa: B018 - it looks
    except ConfigInvalid as error:  # a machine may be looked at before anything is configured
        findings.warn("configuration", error.problems[0].message, error.problems[0].fix)
        _bare_cluster(session, findings)
    else:
        chosen = check_references(session, target, findings) if is_configured(session, findings) else ()
    look_at_tools(chosen, findings)
    _server(session, findings, server or "", ca_file, insecure_http=insecure_http, names=[each.name for each in chosen])
    compared: set[Cluster] = set()

    def clocks(each: Target, api: Api) -> None:
        if each.cluster not in compared:
            compared.add(each.cluster)
            _clock(api, findings)

    check_targets(session, chosen, findings, clocks)
    return ended(findings)


# --- the machine
def _machine(session: Session, findings: Findings) -> None:
    findings.good("anneal", f"{__version__} on {platform.system()} {platform.machine()}")
    findings.step("python", _python)
    findings.step("packages", _packages)
    _yaml(findings)
    if findings.step("sandbox", lambda: _sandbox(session)):
        _walls(session, findings)


def _python() -> str:
    if sys.version_info < _OLDEST:
        seen = f"is {platform.python_version()}, {'.'.join(map(str, _OLDEST))} or newer is needed"
        raise ConfigInvalid.of("python", seen, fix=f"install a newer one; this is {sys.executable}")
    return f"{platform.python_version()} ({sys.executable})"


def _packages() -> str:
    found, missing = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(
                Problem(name, "isn't installed", fix="pipx reinstall anneal-gitops; in a clone: pip install -r requirements.txt")
            )
    if missing:
        raise ConfigInvalid(*missing)
    return ", ".join(found)


def _yaml(findings: Findings) -> None:
    if hasattr(yaml, "CSafeLoader"):
        findings.good("yaml", "the C loader is there")
    else:
        findings.warn(
            "yaml", "PyYAML has no C loader: rendering is about ten times slower", "install PyYAML from a wheel, or with libyaml's headers"
        )


def _sandbox(session: Session) -> str:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="anneal-doctor-") as directory:
        (Path(directory) / "sample.yaml").write_text(_SAMPLE)
        tree, _ = open_local(Path(directory))
        rendered = RENDERERS["file"].render(tree, RenderRequest(""), session.sandbox)
    if len(rendered.manifests) != 1:
        raise RenderFailed.of("render child", f"made {len(rendered.manifests)} objects of one")
    return f"a child rendered in {(time.monotonic() - started) * 1000:.0f} ms, its start included"


def _walls(session: Session, findings: Findings) -> None:
    limits = session.sandbox.limits
    about = {"worker": os.getpid(), "memory": limits.memory}
    try:
        (found,) = session.sandbox.run("walls", about, [], SandboxWalls.read, subject="render child")
        programs, open_to_programs = _program_walls(session.sandbox)
    except AnnealError as error:
        findings.bad("walls", error.problems)
        return
    standing = [
        "seccomp" if found.seccomp else "no seccomp filter",
        *(["a uid of its own"] if os.geteuid() == 0 else []),
        *([] if "open files" in found.can else ["no descriptors"]),
        *([] if "take more memory" in found.can else [f"{limits.memory >> 20:,} MiB of memory"]),
    ]
    text = f"of a render child: {', '.join(standing)}; {programs}"
    open_to_child = f"It can {', '.join(found.can)}" if found.can else ""
    if open_to_child or open_to_programs:
        fixes = [*([_WALLS_FIX] if open_to_child else []), *([_PROGRAM_WALLS_FIX] if open_to_programs else [])]
        findings.warn("walls", ". ".join(filter(None, (text, open_to_child, open_to_programs))), "; ".join(fixes))
    else:
        findings.good("walls", text)


def _program_walls(sandbox: Sandbox) -> tuple[str, str]:
    """Return the walls of programs that stand and those that don't, and what follows for programs; empty: all stand."""
    (can,) = sandbox.run("program walls", {}, [], decode_program_walls, "render child", probe(os.getpid()), weak=True)
    lacks = sandbox.lacks
    walls = ", ".join(f"no {name}" if wall in lacks else name for wall, name in ((FILES, "Landlock"), (CALLS, "seccomp")))
    seen = "Kustomize and helm don't run here, and a slower library evaluates jsonnet; a target with `sandbox: weak` lets them"
    follows = f"{seen} {', '.join(can)}" if lacks else ""
    return f"of programs: {walls}", follows


# --- clusters
def _bare_cluster(session: Session, findings: Findings) -> None:
    try:
        given = session.options
        way = connect(Cluster(), kubeconfig=given.kubeconfig, context=given.context, environ=session.environ, terminal=given.terminal)
        api = Api(way)
    except AnnealError as error:
        findings.warn("cluster", str(error.problems[0].message), error.problems[0].fix)
        return
    if findings.step("cluster", lambda: reached(api)):
        _clock(api, findings)


def _clock(api: Api, findings: Findings) -> None:
    """Compare clocks; the server's `Date` has whole seconds, so up to one is no difference."""
    ahead = time.time() - api.server_time()
    if abs(ahead) > _SKEW:
        findings.warn("clock", f"differs from the API server's by {ahead:+.0f} s", "synchronize it: timedatectl set-ntp true")
    else:
        findings.good("clock", "agrees with the API server's")


# --- the server
def _server(session: Session, findings: Findings, url: str, ca_file: str, *, insecure_http: bool, names: list[str]) -> None:
    """Ask a server. `url`: empty: none is known. `names`: the targets that it should know."""
    if not url:
        findings.skip("server", "none is asked: ANNEAL_SERVER names none")
        return
    token = session.environ.get("ANNEAL_TOKEN", "").strip()
    remote: list[ServerClient] = []

    def reach() -> str:
        remote.append(ServerClient(url, token, ca_file, insecure_http=insecure_http or not token))
        return _worker(remote[0])

    if not findings.step("server", reach):
        return
    if not token:
        findings.warn("its targets", "ANNEAL_TOKEN isn't set, so they aren't asked for", _TOKEN)
        return
    try:
        _its_targets(remote[0], names, findings)
    except AccessDenied as error:
        findings.warn("its targets", error.problems[0].message, _TOKEN)


def _worker(remote: ServerClient) -> str:
    try:
        worker = remote.worker()
    except ServerUnavailable as error:
        fix = advice("see whether `anneal serve` runs there: curl -i {}/readyz", remote.url)
        raise ServerUnavailable(*(Problem(each.subject, each.message, fix=each.fix or fix) for each in error.problems)) from error
    if worker != "ok":
        fix = "its log says why the worker process ended; it is started again by itself, or with `anneal serve`"
        raise ServerUnavailable.of(
            "server", f"{remote.url} is there and takes deliveries, but its worker is {worker}: nothing runs", fix=fix
        )
    return f"{remote.url} is ready, its worker too"


def _its_targets(remote: ServerClient, names: list[str], findings: Findings) -> None:
    """Note its version, and which of these targets it doesn't show. Raises AnnealError."""
    shown, version, after = set(), "", ""
    while True:
        page = remote.get("api", "targets", **({"after": after} if after else {}))
        version = str(page.get("version") or "unknown")
        shown |= {str(row.get("target")) for row in page.get("targets") or () if isinstance(row, dict)}
        if not isinstance(page.get("next"), str) or page["next"] <= after:
            break
        after = page["next"]
    missing = [name for name in names if name not in shown]
    seen = f"version {version}, {many(len(shown), 'target')}"
    if missing:
        fix = "restart it with this configuration, or let the token's `targets` name them"
        findings.warn("its targets", f"{seen}; it doesn't show {', '.join(missing)}", fix)
    elif version != __version__:
        findings.warn("its targets", f"{seen}; this is {__version__}", "install the same version on both sides")
    else:
        findings.good("its targets", seen)


def look_at_tools(targets: Iterable[Target], findings: Findings) -> None:
    """Note version and path of each program; what is missing is a warning only where one of these targets needs it."""
    targets = tuple(targets)
    needs = {target.name: target.programs for target in targets}
    for name in (KUSTOMIZE, HELM, JSONNET, NIX, SOPS):
        try:
            found = render_tools.find(name)
        except OperatorError as error:
            problem = error.problems[0]
            needed_by = [target for target, programs in needs.items() if name in programs]
            if needed_by:
                findings.warn(name, f"{problem.message}; needed by {', '.join(needed_by)}", problem.fix)
            else:
                findings.skip(name, problem.message)
        else:
            findings.good(name, f"{found.version} ({found.path})")
    for target in targets:
        _look_at_directories(target, findings)


def _look_at_directories(target: Target, findings: Findings) -> None:
    for name, path in nixpkgs.paths(target.renderer.nix_path).items():
        try:
            nixpkgs.locate(name, path)
        except OperatorError as error:
            problem = error.problems[0]
            findings.warn(problem.subject, f"{problem.message}; needed by {target.name}", problem.fix)
