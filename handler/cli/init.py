"""`anneal init`: writes a first anneal.yaml that loads, and says the next commands and what to set up at the git host.

Law: no cluster and no git host is asked; the checkout that it runs in suggests answers. The file is written whole, once everything is
answered, or not at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from pathlib import Path

from handler.cli import init_hosts, reports, trust
from handler.cli.init_manifests import manifests
from handler.cli.init_questions import Answers, answered, checkout_of, name_of, questions, split
from handler.cli.session import Session
from handler.config.git_settings import token_user
from handler.config.load import parse
from handler.model.advice import advice, flow, together, word
from handler.model.errors import ConfigInvalid
from handler.source.checkout import checkout_around
from handler.web import BIND

_FILE = "anneal.yaml"
_ALWAYS = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
"""Namespaces that every cluster has."""
_TEMPLATE = """\
# Anneal's configuration. Every field and its default: docs/configuration.md in Anneal's repository; `anneal check` says what is wrong.
apiVersion: anneal.dev/v1alpha1
kind: Config
installation: {installation}    # this file's own: by it one Anneal knows its records on a cluster; another anneal.yaml has another{before}
stateNamespace: anneal-system        # states and Leases live there, in each target's cluster

{webhooks}
interval: 5m                         # how often heads are looked at, should a webhook be lost
driftInterval: 30m                   # how often live is compared although git didn't move

targets:
  - name: {name}
    repository:
      url: {url}
      {auth}
    revision: {{branch: {branch}}}
    path: {path}{exclude}
    namespaces: [{namespaces}]              # it touches no other
    namespace: {namespace}                  # for objects that name none
    clusterScoped: [Namespace]       # cluster-scoped kinds it may declare
    # cluster: {{kubeconfig: {{file: kubeconfig}}, context: prod}}    # default: KUBECONFIG, ~/.kube/config, the pod's own account
    prune:
      enabled: true                  # what git no longer declares is deleted ...
      holdAbove: {{count: 10, fraction: 0.3}}    # ... but more than both waits for `anneal approve`
    drift: correct                   # what others change is brought back; or report, or ignore
    # wait: {{timeout: 5m}}            # a commit counts once all is healthy; only then what it dropped is deleted
    # rollback: {{onFailure: true}}    # a release that fails goes back to the one before, which is pinned
"""
_WEBHOOKS = """\
webhooks:
  {provider}:
    secrets:
      - env: {variable}    # at least 16 characters; two entries while you rotate
"""
_NO_WEBHOOKS = "# webhooks: {github: {secrets: [{env: GITHUB_WEBHOOK_SECRET}]}}    # without them git is looked at each `interval`\n"


def init(session: Session, *, force: bool, namespaces: tuple[str, ...], **flags: str | None) -> int:
    """Write a first anneal.yaml (or the file that --config or ANNEAL_CONFIG names), and say what comes next."""
    path = Path(session.named or session.environ.get("ANNEAL_CONFIG") or _FILE)
    _refuse(path, force)
    given = {name.replace("_", "-"): value for name, value in flags.items()} | {"namespace": " ".join(namespaces) or None}
    checkout = checkout_around(Path())
    answers = answered(questions((*session.webhooks, init_hosts.NONE), checkout), given, session.output)
    checkout = checkout_of(checkout, answers)
    beside = checkout is not None and path.parent.resolve() == (checkout.root / answers["path"]).resolve()
    names = _installation(session, path, answers["repository"])
    text = _written(answers, path.name if beside else "", *names)
    parse(text, path.name, providers=session.webhooks)
    known = _ALWAYS | (manifests(checkout.root / answers["path"]).declared if checkout else set())
    lacking = [each for each in split(answers["namespace"]) if each not in known]
    _write(path, text, force)
    _print_next(session, path, answers, lacking, trusted=trust.remember(path, session.read, session.environ))
    return reports.DONE_CODE


def _installation(session: Session, path: Path, repository: str) -> tuple[str, str]:
    """Return a new installation's name, and the one before: what the file that is replaced has deployed stays this configuration's."""
    own = f"{name_of(repository)[:49]}-{secrets.token_hex(3)}"
    if not path.exists():
        return own, ""
    try:
        known = session.read(path) if _is_named(session) or trust.trusts(path, session.read, session.environ) else None
    except ConfigInvalid:
        known = None
    if known is None:
        return own, ""
    return (own, known.installation) if known.is_shared else (known.installation, known.installation_from)


def _refuse(path: Path, force: bool) -> None:
    """Raise ConfigInvalid, before anything is asked, where the file can't be written."""
    if path.is_dir():
        raise ConfigInvalid.of(str(path), "is a directory", fix=advice("anneal init -c {path}", path / _FILE))
    if path.exists() and not force:
        raise ConfigInvalid.of(str(path), "is there already; to replace it:", fix=advice("anneal init -c {path} --force", path))
    if not path.parent.is_dir():
        raise ConfigInvalid.of(str(path.parent), "there is no such directory", fix=advice("mkdir -p {path}", path.parent))


def _written(answers: Answers, excluded: str, installation: str, before: str) -> str:
    """Return the file's text. `excluded`: its own name, where it lies among the manifests; `before`: the installation before, if any."""
    provider, namespaces = answers["provider"], split(answers["namespace"])
    webhooks = _WEBHOOKS.format(provider=provider, variable=init_hosts.variable(provider)) if provider != init_hosts.NONE else _NO_WEBHOOKS
    return _TEMPLATE.format(
        installation=flow(installation),
        before=advice("\ninstallationFrom: {yaml}    # each target's next run takes its record over from there", before) if before else "",
        webhooks=webhooks,
        name=flow(answers["name"]),
        url=flow(answers["repository"]),
        auth=_auth(answers),
        branch=flow(answers["branch"]),
        path=flow("" if answers["path"] == "." else answers["path"]),
        exclude=advice("\n    renderer: {yaml}     # this file, should it be committed", {"exclude": [excluded]}) if excluded else "",
        namespaces=", ".join(map(flow, namespaces)),
        namespace=flow(namespaces[0]),
    )


def _auth(answers: Answers) -> str:
    if "ssh-key" in answers:
        key, known = (str(Path(answers[flag]).expanduser()) for flag in ("ssh-key", "known-hosts"))
        return advice("auth: {yaml}", {"ssh": {"privateKey": {"file": key}, "knownHosts": known}})
    token = answers.get("token-env")
    password = {"env": token or "GIT_TOKEN"}
    basic = advice("auth: {yaml}", {"basic": {"username": token_user(answers["repository"]), "password": password}})
    return f"{basic}    # read access is enough" if token else f"# {basic}    # a private repository; read access is enough"


def _write(path: Path, text: str, force: bool) -> None:
    """Write the file whole: what was there stays until then. Raises ConfigInvalid."""
    part = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        with part.open("x", encoding="utf-8") as made:  # through no link that lies there
            made.write(text)
        _refuse(path, force)  # the person had time to write one
        part.replace(path)
    except OSError as error:
        raise ConfigInvalid.of(str(path), f"can't be written: {error.strerror}") from None
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


def _print_next(session: Session, path: Path, answers: Answers, spaces: list[str], *, trusted: bool) -> None:
    """Say what comes next. `spaces`: the namespaces that may be missing; `trusted`: the file counts where it lies."""
    provider, token = answers["provider"], answers.get("token-env", "")
    config = _config_flag(session, path) if trusted else advice(" -c {path}", path)
    commands = _next(provider, config)
    secret = advice("read -rs {}; export {}", token, token) if token and token not in session.environ else ""
    url = f"https://HOST/webhooks/{provider}"
    steps = (
        ""
        if provider == init_hosts.NONE
        else init_hosts.of(provider).steps.format(
            url=url,
            secret=init_hosts.variable(provider),
            body=word(json.dumps({"repository": answers["repository"], "ref": f"refs/heads/{answers['branch']}"})),
        )
    )
    if session.output.as_json:
        found = {"file": str(path), "target": answers["name"], "token": secret, "namespaces": spaces, "next": commands, "webhook": steps}
        session.output.document(found)
        return
    output = session.output
    output.line(f"wrote {path}", "good")
    place = "its root" if answers["path"] in ("", ".") else answers["path"]
    output.line(f"Target {answers['name']} follows {answers['branch']} of {answers['repository']}, {place}", hang=2)
    if secret:
        output.lines(f"\nFirst, the token that may read the repository, pasted:\n  {secret}")
    if spaces:
        output.lines(together("\n  ", ("\nIf the cluster lacks them:", *(advice("kubectl create namespace {}", each) for each in spaces))))
    output.lines("\nNext:\n" + "\n".join(f"  {each}" for each in commands))
    if steps:
        output.lines(advice("\nWithout a webhook, git is looked at each minute:\n  anneal run --trigger interval{text}", config))
        output.lines(f"\n`anneal serve` listens on {BIND}, in plain HTTP: put a proxy with TLS", whole=False)
        output.lines(
            f"in front, and let https://HOST/webhooks/ lead to it. Then, at {init_hosts.of(provider).title}:\n{steps.rstrip()}", whole=False
        )


def _is_named(session: Session) -> bool:
    return bool(session.named or session.environ.get("ANNEAL_CONFIG"))


def _config_flag(session: Session, path: Path) -> str:
    here = session.named is None or (str(path) == _FILE and "ANNEAL_CONFIG" not in session.environ)
    return advice("" if here else " -c {path}", *([] if here else [path]))


def _next(provider: str, config: str) -> list[str]:
    if provider == init_hosts.NONE:
        return [advice("anneal check{text}", config), advice("anneal run --trigger interval{text}", config)]
    variable = init_hosts.variable(provider)
    return [
        advice('export {}="$(openssl rand -hex 32)"', variable),
        advice("anneal check{text}", config),
        advice("anneal serve{text}", config),
    ]
