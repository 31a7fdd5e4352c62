"""`anneal init`: writes a first anneal.yaml that loads, and says what to do at the git host."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path

import click

from handler.cli import reports
from handler.cli.options import command
from handler.cli.session import Session
from handler.config.load import parse
from handler.model.errors import ConfigInvalid

_TEMPLATE = """\
# Anneal's configuration. Every field and its default: the JSON Schema handler/config/schema.json, `anneal check` tells what is wrong.
apiVersion: anneal.dev/v1alpha1
kind: Config
stateNamespace: anneal-system        # states and Leases live there, in each target's cluster

webhooks:
  {provider}:
    secrets:
      - env: {variable}    # at least 16 characters; two entries while you rotate

interval: 5m                         # how often heads are looked at, should a webhook be lost
driftInterval: 30m                   # how often live is compared although git didn't move

targets:
  - name: {name}
    repository:
      url: {url}
      # auth: {{basic: {{username: {user}, password: {{env: GIT_TOKEN}}}}}}    # a private repository; read access is enough
    revision: {{branch: {branch}}}
    path: {path}
    namespaces: [{namespaces}]       # it touches no other
    namespace: {namespace}           # for objects that name none
    clusterScoped: [Namespace]       # cluster-scoped kinds it may declare
    # cluster: {{kubeconfig: {{file: kubeconfig}}, context: prod}}    # default: KUBECONFIG, ~/.kube/config, the pod's own account
    prune:
      enabled: true                  # what git no longer declares is deleted ...
      holdAbove: {{count: 10, fraction: 0.3}}    # ... but more than both waits for `anneal approve`
    drift: correct                   # what others change is brought back; or report, or ignore
    # wait: {{timeout: 5m}}            # a commit counts once all is healthy; only then what it dropped is deleted
    # rollback: {{onFailure: true}}    # a release that fails goes back to the one before, which is pinned
"""

_STEPS = {
    "github": """\
At GitHub: the repository's Settings, Webhooks, Add webhook
  Payload URL    https://<where anneal serve is reached>/webhooks/github
  Content type   application/json
  Secret         the value of {variable}
  Events         just the push event
or: gh api repos/{slug}/hooks -f name=web -f 'events[]=push' -F active=true \\
      -f config[url]=https://<host>/webhooks/github -f config[content_type]=json -f config[secret]="${variable}"
""",
    "gitlab": """\
At GitLab: the project's Settings, Webhooks, Add new webhook
  URL            https://<where anneal serve is reached>/webhooks/gitlab
  Secret token   the value of {variable}
  Trigger        Push events (and Tag push events for a target that follows a tag)
  SSL            keep verification enabled
""",
}
_USERS = {"github": "x-access-token", "gitlab": "oauth2"}


@dataclass(frozen=True, slots=True)
class _Answers:
    """What was given by flags or typed at the prompts."""

    name: str
    url: str
    branch: str
    path: str
    namespaces: tuple[str, ...]
    provider: str

    @property
    def variable(self) -> str:
        """The environment variable of the webhook's secret."""
        return f"{self.provider.upper()}_WEBHOOK_SECRET"

    @property
    def slug(self) -> str:
        """The repository's path on its host."""
        return self.url.partition("://")[2].partition("/")[2].removesuffix(".git")


@command()
@click.option("--name", help="The target's name.")
@click.option("--repository", help="https:// URL of the repository.")
@click.option("--branch", default="main", show_default=True, help="The branch it follows.")
@click.option("--path", help="Directory of the manifests in the repository; empty: its root.")
@click.option("-n", "--namespace", "namespaces", multiple=True, help="A namespace it may touch; the first is the default.")
@click.option("--provider", type=click.Choice(sorted(_STEPS)), help="Whose webhooks are sent.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init(session: Session, *, force: bool, **given: object) -> int:
    """Write a first anneal.yaml (or the file that --config names), and say how to set up the webhook."""
    path = Path(session.named or "anneal.yaml")
    if path.exists() and not force:
        raise ConfigInvalid.of(str(path), "is there already", fix="pass --force to replace it, or --config FILE to write another")
    answers = _asked(given)
    text = _written(answers)
    try:
        with path.open("w" if force else "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ConfigInvalid.of(str(path), f"can't be written: {error.strerror}") from None
    _tell(session, path, answers)
    return reports.DONE_CODE


def _asked(given: dict[str, object]) -> _Answers:
    """Complete the flags by prompts; where nobody can be asked, what is missing is a mistake of usage."""

    def text(flag: str, question: str, default: str | None = None) -> str:
        value = given[flag]
        if value is not None:
            return str(value)
        if not sys.stdin.isatty():
            if default is None:
                raise click.UsageError(f"--{flag} is needed where nobody can be asked")
            return default
        return str(click.prompt(question, default=default, type=str))

    url = text("repository", "Repository (https:// URL)")
    name = text("name", "Target name", url.rstrip("/").rpartition("/")[2].removesuffix(".git").lower() or "app")
    namespaces = given["namespaces"]
    chosen = tuple(map(str, namespaces)) if isinstance(namespaces, tuple) and namespaces else ()
    if not chosen:
        chosen = tuple(text("namespace", "Namespace", name).replace(",", " ").split())
    path = text("path", "Directory of the manifests", "deploy")
    provider = text("provider", "Webhooks come from (github, gitlab)", "gitlab" if "gitlab" in url else "github")
    if provider not in _STEPS:
        raise click.UsageError(f"webhooks from {provider!r}: expected github or gitlab")
    return _Answers(name, url, str(given["branch"]), path, chosen, provider)


def _written(answers: _Answers) -> str:
    """Return the file's text. Raises ConfigInvalid when an answer isn't what it must be."""
    text = _TEMPLATE.format(
        provider=answers.provider,
        variable=answers.variable,
        name=_scalar(answers.name),
        url=_scalar(answers.url),
        user=_USERS[answers.provider],
        branch=_scalar(answers.branch),
        path=_scalar(answers.path),
        namespaces=", ".join(map(_scalar, answers.namespaces)),
        namespace=_scalar(answers.namespaces[0]),
    )
    parse(text, "anneal.yaml")
    return text


def _scalar(text: str) -> str:
    """Write a text as YAML that can be nothing else: JSON's quotes unless it is plainly a word."""
    bare = text.replace("-", "").replace("/", "").replace(".", "").replace(":", "", 1)
    plain = (
        bare.isascii()
        and bare.isalnum()
        and bare[0].isalpha()
        and text.lower() not in ("yes", "no", "on", "off", "true", "false", "null", "y", "n")
    )
    return text if plain and not text.endswith(":") else json.dumps(text)


def _tell(session: Session, path: Path, answers: _Answers) -> None:
    """Print what comes next."""
    steps = _STEPS[answers.provider].format(variable=answers.variable, slug=answers.slug)
    secret = f'export {answers.variable}="$(openssl rand -hex 32)"'
    if session.output.as_json:
        session.output.document(
            {"file": str(path), "target": answers.name, "secret": secret, "webhook": steps, "next": f"anneal check -c {path}"}
        )
        return
    session.output.line(f"wrote {path}", "good")
    session.output.line(f"\n1. Make the webhook's secret:\n     {secret}")
    session.output.line("\n2. " + steps)
    session.output.line(f"3. Look at everything without changing anything:\n     anneal check -c {path}\n     anneal plan -c {path}")
    session.output.line(f"\n4. Serve:\n     anneal serve -c {path} --bind 0.0.0.0:8080")
