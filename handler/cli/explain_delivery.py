"""`anneal explain-delivery`: what the door would answer to a captured payload, and why. It asks no target's cluster and no git host.

Law: it goes the door's own way (`handler.web.delivery_decision`), so that what it says is what happens. It never prints a secret.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import click

from handler.app.external_services import fetcher
from handler.cli import reports
from handler.cli.session import Session
from handler.config.secrets import Accepted, resolve_all
from handler.config.settings import Settings
from handler.model.errors import BadPayload, BadSignature, TooLarge
from handler.model.event import Event
from handler.model.target_matching import repository_key
from handler.triggers import Webhook, payload
from handler.web.delivery_decision import DeliveryDecision, bounded, judge, watch
from handler.web.request_body import require_json

UNVERIFIED = "not looked at: --headers FILE gives the request's headers"
HOLDS = "holds"
_FOREIGN = "its repository's webhook has another secret than the one that signed this"


@dataclass(frozen=True, slots=True)
class CapturedDelivery:
    """A delivery as it was captured. `headers`: None when they weren't; `guessed`: no flag named the provider."""

    provider: str
    trigger: Webhook
    body: bytes
    headers: Mapping[str, str] | None
    guessed: bool


def explain_delivery(session: Session, file: str, provider: str | None, headers: str | None) -> int:
    """Say what the door would answer to the webhook payload in FILE (- for standard input): which targets, and why."""
    settings = session.settings
    if provider is not None and provider not in session.webhooks:
        raise click.UsageError(f"--provider {provider}: known are {', '.join(session.webhooks)}")
    captured = _captured(session, file, provider, headers)
    verdict = _unverified(captured, settings) if captured.headers is None else _verified(session, captured, captured.headers)
    _print(session, captured, verdict)
    return reports.DONE_CODE


def _captured(session: Session, file: str, provider: str | None, headers: str | None) -> CapturedDelivery:
    cap = session.settings.webhooks.max_body
    body = _bytes(file, cap + 1)
    sent = _headers(_bytes(headers, cap).decode("latin-1")) if headers else None  # as WSGI reads them
    if len(body) > cap:
        raise TooLarge.of("body", f"is larger than {cap} bytes", fix="webhooks.maxBody sets the limit")
    name = provider or _provider(body, session.webhooks)
    return CapturedDelivery(name, session.webhooks[name], body, sent, guessed=not provider)


def _bytes(path: str, most: int) -> bytes:
    try:
        with click.open_file(path, "rb") as file:
            return bytes(file.read(most))
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from None


def _headers(text: str) -> dict[str, str]:
    """Read `Name: value` lines; a name that occurs twice is joined by a comma, as WSGI servers do."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        name, colon, value = line.strip().partition(":")
        if not colon and name:
            raise click.UsageError(f"--headers, line {number}: expected `Name: value`")
        key = name.strip().lower()
        if key:
            found[key] = f"{found[key]},{value.strip()}" if key in found else value.strip()
    return found


def _provider(body: bytes, triggers: Mapping[str, Webhook]) -> str:
    document = payload.read(body)
    found = [name for name, trigger in triggers.items() if trigger.shape(document) is not None]
    if len(found) != 1:
        raise click.UsageError(f"the payload's shape doesn't show the provider: name it with --provider {'|'.join(found or triggers)}")
    return found[0]


def _unverified(captured: CapturedDelivery, settings: Settings) -> DeliveryDecision:
    """Read without proof, as if the sender might speak for every target. Raises BadPayload."""
    trigger = captured.trigger
    named = trigger.shape(payload.read(captured.body))
    if named is None:
        fix = "give the request's headers with --headers, or name another --provider"
        raise BadPayload.of("payload", f"its shape doesn't say which {captured.provider} event it is", fix=fix)
    event = trigger.read(named, captured.body)
    return bounded(event, watch(settings.targets), frozenset(target.name for target in settings.targets))


def _verified(session: Session, captured: CapturedDelivery, headers: Mapping[str, str]) -> DeliveryDecision:
    require_json(headers.get("content-type", ""), headers.get("content-encoding", ""))
    fetch = fetcher(session.environ)
    secrets = resolve_all(_signing(session.settings, captured.provider), session.environ, needs={"webhooks"}, fetch=fetch)
    accepted = secrets.webhook(captured.provider)
    try:
        return judge(captured.trigger, headers, captured.body, accepted, watch(session.settings.targets))
    except BadSignature as refusal:
        raise _explained(refusal, captured.provider, accepted) from None


def _explained(refusal: BadSignature, provider: str, accepted: tuple[Accepted, ...]) -> BadSignature:
    if notes := getattr(refusal, "__notes__", ()):
        return BadSignature.of("signature", f"holds, but it is {'; '.join(notes)}: answered 401")
    if not accepted:
        return BadSignature.of("signature", f"no secret is configured for {provider}: answered 401", fix=f"add webhooks.{provider}.secrets")
    fix = "FILE and the headers must be exactly what was sent; signatures that carry a time hold for five minutes"
    return BadSignature.of("signature", f"none of the configured secrets ({len(accepted)} for {provider}) proves it: answered 401", fix=fix)


def _signing(settings: Settings, provider: str) -> Settings:
    return replace(settings, webhooks=type(settings.webhooks)(**{provider: getattr(settings.webhooks, provider)}))


def _print(session: Session, captured: CapturedDelivery, verdict: DeliveryDecision) -> None:
    matched = [decision for decision in verdict.decisions if decision.matched]
    ignored = [decision for decision in verdict.decisions if not decision.matched]
    proven = captured.headers is not None
    status = 202 if matched else 200
    output, event = session.output, verdict.event
    if output.as_json:
        rows = {
            "matched": [{"target": each.target, "reason": each.reason, "hint": each.change.after} for each in matched],
            "ignored": [{"target": each.target or None, "reason": each.reason} for each in ignored],
            "foreign": [{"target": name, "reason": _FOREIGN} for name in verdict.foreign],
        }
        facts = {"provider": captured.provider, "guessed": captured.guessed, "verified": proven, "status": status}
        output.document({**facts, "event": _facts(event), **rows})
        return
    output.line(f"provider: {captured.provider}{', as the shape of the payload shows' if captured.guessed else ''}")
    output.line(f"signature: {HOLDS if proven else UNVERIFIED}", "good" if proven else "warn")
    output.line(f"event: {_said(event)}")
    for each in matched:
        output.line(f"✓ {each.target}: {each.reason}", "good")
    for each in ignored:
        output.line(f"- {each.target + ': ' if each.target else ''}{each.reason}", "dim")
    for name in verdict.foreign:
        output.line(f"- {name}: {_FOREIGN}", "dim")
    output.line(f"{'the' if proven else 'with a good signature the'} answer is {status}: {len(matched)} to run")


def _said(event: Event) -> str:
    where = next((f" of {key}" for key in map(repository_key, event.urls) if key), "")
    number = f" {event.pull_request}" if event.pull_request else ""
    return f"{event.kind}{number}{where}{f' by {event.actor}' if event.actor else ''}"


def _facts(event: Event) -> dict[str, Any]:
    """Return an event without its URLs, which may hold credentials."""
    repository = sorted({key for key in map(repository_key, event.urls) if key})
    known = {"kind": event.kind, "delivery": event.delivery, "actor": event.actor, "repository": repository, "changes": event.changes}
    return known | {"pullRequest": event.pull_request or None, "comment": event.comment}
