"""`anneal doctor`: the ground that everything else stands on: Python, libraries, the render child, clusters, git hosts, clocks, secrets."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path

import yaml

from handler import __version__
from handler.cli import reports, rights
from handler.cli.findings import Findings
from handler.cli.options import command
from handler.cli.session import Session
from handler.cluster.access import Rule, allowed
from handler.cluster.api import Api
from handler.cluster.connect import connect
from handler.config.secrets import resolve_all
from handler.config.settings import Cluster, Settings, Target
from handler.model.errors import AccessDenied, AnnealError, ConfigInvalid, Problem, RenderFailed
from handler.model.render import RenderRequest
from handler.model.words import many
from handler.render import RENDERERS
from handler.render.walls import Walls
from handler.source import open_local
from handler.stores import fetcher

_PACKAGES = ("click", "dulwich", "kubernetes", "urllib3", "PyYAML", "jsonschema", "Flask", "gunicorn", "rich")
_OLDEST = (3, 11)
_SKEW = 5.0
"""Seconds that clocks may differ: a Lease allows as much (`handler.state.lease`)."""
_SAMPLE = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: doctor}\ndata: {a: b}\n"
_WALLS_FIX = (
    "on Linux on x86_64 or aarch64, let the container's seccomp profile allow prctl (PR_SET_NO_NEW_PRIVS and PR_SET_SECCOMP; the"
    " runtime's default does); AWS Lambda refuses it, and its virtual machine is the wall (SECURITY.md)"
)


@command()
def doctor(session: Session) -> int:
    """Examine this machine, its tools and what it reaches; change nothing."""
    findings = Findings(session.output)
    findings.good("anneal", f"{__version__} on {platform.system()} {platform.machine()}")
    findings.step("python", _python)
    findings.step("packages", _packages)
    _yaml(findings)
    if findings.step("sandbox", lambda: _sandbox(session)):
        _walls(session, findings)
    settings = _settings(session, findings)
    if settings is None:
        _bare_cluster(session, findings)
    else:
        findings.step("secrets", lambda: _secrets(settings, session))
        _hosts(session, findings)
        _clusters(session, settings, findings)
    findings.document()
    return reports.FAILED if findings.failed else reports.DONE_CODE


# --- the machine
def _python() -> str:
    if sys.version_info < _OLDEST:
        seen = f"is {platform.python_version()}, {'.'.join(map(str, _OLDEST))} or newer is needed"
        raise ConfigInvalid.of("python", seen, fix=f"install a newer one; this is {sys.executable}")
    return f"{platform.python_version()} ({sys.executable})"


def _packages() -> str:
    """Return what is installed. Raises ConfigInvalid naming each library that isn't."""
    found, missing = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            missing.append(Problem(name, "isn't installed", fix="pip install -r requirements.txt"))
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
    """Render one object in a child, as a run would."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="anneal-doctor-") as directory:
        (Path(directory) / "sample.yaml").write_text(_SAMPLE)
        tree, _ = open_local(Path(directory))
        rendered = RENDERERS["file"].render(tree, RenderRequest(""), session.sandbox)
    if len(rendered.manifests) != 1:
        raise RenderFailed.of("render child", f"made {len(rendered.manifests)} objects of one")
    return f"a child rendered in {(time.monotonic() - started) * 1000:.0f} ms, its start included"


def _walls(session: Session, findings: Findings) -> None:
    """Say what keeps a child in here; it has tried to get out."""
    limits = session.sandbox.limits
    about = {"worker": os.getpid(), "memory": limits.memory}
    try:
        (found,) = session.sandbox.run("walls", about, [], Walls.read, subject="render child")
    except AnnealError as error:
        findings.bad("walls", error.problems)
        return
    standing = [
        "seccomp" if found.seccomp else "no seccomp filter",
        *(["a uid of its own"] if os.geteuid() == 0 else []),
        *([] if "open files" in found.can else ["no descriptors"]),
        *([] if "take more memory" in found.can else [f"{limits.memory >> 20:,} MiB of memory"]),
    ]
    text = f"of a render child: {', '.join(standing)}"
    if found.can:
        findings.warn("walls", f"{text}. It can {', '.join(found.can)}", _WALLS_FIX)
    else:
        findings.good("walls", text)


# --- what is configured
def _settings(session: Session, findings: Findings) -> Settings | None:
    """Return the configuration; where there is none, that is worth a word only."""
    try:
        path = session.path
    except ConfigInvalid as error:
        findings.warn("configuration", error.problems[0].message, error.problems[0].fix)
        return None
    good = findings.step("configuration", lambda: f"{path}: {many(len(session.settings.targets), 'target')}")
    return session.settings if good else None


def _secrets(settings: Settings, session: Session) -> str:
    """Resolve all, the door's too. Raises SecretUnavailable with each that is missing, empty or short."""
    found = resolve_all(settings, session.environ, fetch=fetcher(session.environ))
    session.output.mask = found.mask
    webhooks = sum(map(len, found.webhooks.values()))
    tokens, signing_in = many(len(found.tokens), "replay token"), many(len(found.git), "git credential")
    return f"{webhooks} for webhooks, {tokens}, {signing_in}; none is short"


def _hosts(session: Session, findings: Findings) -> None:
    """Ask each git host once for what a target follows."""
    seen: set[str] = set()
    for target in session.all_or(None):
        if target.repository.url not in seen:
            seen.add(target.repository.url)
            findings.step(f"git {target.repository.url}", lambda target=target: _head(session, target))  # type: ignore[misc]  # mypy can't type a default


def _head(session: Session, target: Target) -> str:
    started = time.monotonic()
    source = session.handler.source(target)
    head = source.head(target.revision)
    if not head.ref:
        source.fetch(head.commit, target.path)  # nobody was asked yet
    return f"{head.ref or 'its commit'} is {head.commit[:12]}, answered in {(time.monotonic() - started) * 1000:.0f} ms"


# --- clusters
def _bare_cluster(session: Session, findings: Findings) -> None:
    """Look at the cluster that flags and environment name, when nothing is configured."""
    try:
        given = session.options
        way = connect(Cluster(), kubeconfig=given.kubeconfig, context=given.context, environ=session.environ, terminal=given.terminal)
        api = Api(way)
    except AnnealError as error:
        findings.warn("cluster", str(error.problems[0].message), error.problems[0].fix)
        return
    if findings.step("cluster", lambda: _version(api)):
        _clock(api, findings)


def _clusters(session: Session, settings: Settings, findings: Findings) -> None:
    """Look at each cluster once: server, clock, and what the handler may do in the state namespace."""
    seen: set[Cluster] = set()
    for target in settings.targets:
        if target.cluster in seen:
            continue
        seen.add(target.cluster)
        api: list[Api] = []

        def look(target: Target = target, api: list[Api] = api) -> str:
            api.append(session.handler.api(target, impersonated=False))
            return _version(api[0])

        if findings.step(f"cluster of {target.name}", look):
            _clock(api[0], findings)
            findings.step("state", lambda target=target, api=api: _state(settings, target, api[0]))  # type: ignore[misc]  # mypy can't type a default


def _version(api: Api) -> str:
    version = (api.get("/version") or {}).get("gitVersion", "?")
    return f"{api.connection.host} ({api.connection.source}) is Kubernetes {version}"


def _clock(api: Api, findings: Findings) -> None:
    """Compare clocks; the server's `Date` has whole seconds, so up to one is no difference."""
    ahead = time.time() - api.server_time()
    if abs(ahead) > _SKEW:
        findings.warn("clock", f"differs from the API server's by {ahead:+.0f} s", "synchronize it: timedatectl set-ntp true")
    else:
        findings.good("clock", "agrees with the API server's")


def _state(settings: Settings, target: Target, api: Api) -> str:
    """Ask whether state and Lease can be kept. Raises AccessDenied with what is missing."""
    rules = [
        Rule(verb, g.group, g.resource, g.namespace, name)
        for g in rights.own_grants(settings, target)
        for verb in g.verbs
        for name in g.names or ("",)
    ]
    missing = [rule for rule, has in zip(rules, allowed(api, rules), strict=True) if not has]
    if missing:
        raise AccessDenied(*_denied(target, missing))
    return f"may be kept in namespace {settings.state_namespace}"


def _denied(target: Target, missing: Sequence[Rule]) -> list[Problem]:
    fix = f"an administrator can grant it: anneal rbac {target.name} | kubectl apply -f -"
    return [Problem("handler", f"may not {rule}", fix=fix if rule is missing[-1] else "") for rule in missing]
