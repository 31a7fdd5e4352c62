"""Rows of `check` about what the configuration refers to: all that `serve` and `work` resolve, and don't start without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from handler.app.external_services import fetcher
from handler.cli.check_table import Findings
from handler.cli.session import Session
from handler.config.git_settings import git_references
from handler.config.secrets import ALL, RUNS, Secrets, resolve_known
from handler.config.settings import Settings, Target
from handler.config.value_formats import duration
from handler.config.webhook_providers import providers
from handler.model.numbers import many
from handler.queues.sqs import URL, queue_url


def look(session: Session, chosen: tuple[Target, ...], findings: Findings, *, door: bool) -> None:
    """Resolve every reference, and let the session work with what there is. `door`: also what only a server needs.

    A target whose credentials are missing is told here, and keeps no other from being looked at.
    """
    settings = session.settings if door else replace(session.settings, targets=chosen)
    secrets, problems = resolve_known(settings, session.environ, needs=ALL if door else RUNS, fetch=fetcher(session.environ))
    session.secrets, session.output.mask = secrets, secrets.mask
    for subject, mine, seen in _PARTS:
        theirs = tuple(problem for problem in problems if mine(problem.subject))
        text = seen(settings, secrets)
        if theirs:
            findings.bad(subject, theirs)
        elif text and (door or subject not in _DOORS):
            findings.good(subject, text)
    if door:
        findings.step("queue", lambda: _queue(session))
    else:
        findings.skip("door", "what only `anneal serve` needs; it is looked at when no target is named")


def lacks(target: Target, secrets: Secrets) -> bool:
    """Whether what signs in to a target's git host couldn't be resolved."""
    return any(ref not in secrets.git for _, ref in git_references(target.repository))


def _webhooks(settings: Settings, _secrets: Secrets) -> str:
    """Say whose deliveries can be proven."""
    found = {name: len(getattr(settings.webhooks, name).secrets) for name in providers(type(settings.webhooks))}
    told = [f"{name}: {many(count, 'secret')}" for name, count in found.items() if count]
    told += [
        f"{target.name}: {many(len(own), 'secret')} of its own" for target in settings.targets if (own := target.repository.webhook.secrets)
    ]
    return ", ".join(told) or f"none; pushes are found by looking at git each {duration(settings.interval)}"


def _tokens(settings: Settings, _secrets: Secrets) -> str:
    return ", ".join(token.name for token in settings.replay.tokens)


def _prometheus(settings: Settings, _secrets: Secrets) -> str:
    return ", ".join(f"{each.url}{' with a token' if each.token else ''}" for each in settings.prometheus)


def _credentials(_settings: Settings, secrets: Secrets) -> str:
    count = len(secrets.git)
    return f"{many(count, 'git credential')} found" if count else "none are configured for git"


def _queue(session: Session) -> str:
    url = queue_url(session.settings, session.environ)
    named = f" ({URL})" if session.environ.get(URL) else ""
    return f"{url}{named}" if url else "none; requests wait in the server's memory, and what is lost there is found by looking at git"


_PARTS: tuple[tuple[str, Callable[[str], bool], Callable[[Settings, Secrets], str]], ...] = (
    ("webhooks", lambda path: path.startswith("webhooks.") or ".repository.webhook." in path, _webhooks),
    ("tokens", lambda path: path.startswith("replay."), _tokens),
    ("prometheus", lambda path: path.startswith("prometheus["), _prometheus),
    ("credentials", lambda path: ".repository.auth." in path, _credentials),
)
"""Row, whether a problem's path belongs to it, and what is said where nothing is wrong; empty: nothing of the kind is configured."""
_DOORS = ("webhooks", "tokens")
