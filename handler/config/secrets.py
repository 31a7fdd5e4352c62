"""Secret references become values, at the last moment and only here.

Law: no text is compared with them. Who is given one (a git host, a store, a plugin) isn't quoted, and so nothing that is shown holds one.

`resolve` reads its place anew on each call, so a rotated secret is found by resolving again: `secret_rotation` does.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NoReturn, Protocol, TypeVar

from handler.config import secret_strength
from handler.config.decryption import decryption_references
from handler.config.git_settings import SecretRef, feedback_references, git_references
from handler.config.page_settings import PageToken, page_references
from handler.config.remote_secrets import Fetch, RemoteSecrets, nowhere, text_of
from handler.config.renderer_settings import chart_references
from handler.config.secret_sources import found
from handler.config.settings import ReplayToken, Settings
from handler.config.webhook_providers import providers
from handler.model.errors import Problem, SecretUnavailable

Need = Literal["git", "webhooks", "tokens", "clusters", "metrics", "decryption", "page"]
ALL: frozenset[Need] = frozenset({"git", "webhooks", "tokens", "metrics", "decryption", "page"})
RUNS: frozenset[Need] = frozenset({"git", "metrics", "decryption"})
DOOR: frozenset[Need] = frozenset({"webhooks", "tokens", "page"})
"""What a process resolves: git hosts' secrets, webhook secrets, replay tokens, Prometheus' tokens, age keys, what signs in to the page.

A cluster's kubeconfig is read apart."""
_API: frozenset[Need] = frozenset({"tokens", "page"})
Token = TypeVar("Token", ReplayToken, PageToken)
_LEAST = {"key": secret_strength.KEY, "proxy.secret": secret_strength.SHORTEST, "oidc.clientSecret": 0}
"""How many characters the page's secrets have at least; a client's secret is its provider's to make."""
_ABSENT = ("is not set", "doesn't exist", "is empty")


class Secret:
    """A secret value, masked in `str` and `repr`; `reveal` returns it. No dataclass: `asdict` would look inside."""

    __slots__ = ("_value",)
    _value: str

    def __init__(self, value: str) -> None:
        object.__setattr__(self, "_value", value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a Secret doesn't change")

    def __repr__(self) -> str:
        return "Secret(***)"

    def __str__(self) -> str:
        return "***"

    def __reduce__(self) -> NoReturn:
        """Refuse pickling and copying: a secret is resolved where it is needed, never sent there."""
        raise TypeError("a Secret can't be pickled or copied")

    def reveal(self) -> str:
        """Return the value, for the one call that needs it."""
        return self._value

    def matches(self, candidate: bytes) -> bool:
        """Compare in constant time; digests hide the length, too."""
        return hmac.compare_digest(hashlib.sha256(candidate).digest(), hashlib.sha256(self._value.encode()).digest())


@dataclass(frozen=True, slots=True)
class Accepted:
    """A webhook secret and the targets that a delivery signed with it may run."""

    secret: Secret
    targets: frozenset[str]


@dataclass(frozen=True, slots=True)
class PageSecrets:
    """What signs people in to the page. `key` signs cookies; `proxy`, `oidc`: the proxy's secret, the client's; None: not configured."""

    key: Secret
    proxy: Secret | None = None
    oidc: Secret | None = None
    tokens: tuple[tuple[PageToken, Secret], ...] = ()

    def token(self, candidate: bytes) -> tuple[PageToken, Secret] | None:
        """Return the token that was presented; every token is compared, whatever matches."""
        found = [(token, secret) for token, secret in self.tokens if secret.matches(candidate)]
        return found[0] if found else None


@dataclass(frozen=True, slots=True, repr=False)
class Secrets:
    """Every resolved secret of a configuration, as one snapshot.

    `webhooks`: by provider; `tokens`: replay tokens; `git`: passwords, keys and passphrases of git hosts and chart sources; `metrics`:
    tokens for Prometheus; `decryption`: age keys; `page_secrets`: what signs in to the page, None: there is none; `known`: all of them.
    """

    webhooks: Mapping[str, tuple[Accepted, ...]] = field(default_factory=dict)
    tokens: tuple[tuple[ReplayToken, Secret], ...] = ()
    git: Mapping[SecretRef, Secret] = field(default_factory=dict)
    metrics: Mapping[SecretRef, Secret] = field(default_factory=dict)
    known: Mapping[SecretRef, Secret] = field(default_factory=dict)
    decryption: Mapping[SecretRef, Secret] = field(default_factory=dict)
    page_secrets: PageSecrets | None = None

    def __repr__(self) -> str:
        return "Secrets(***)"

    def webhook(self, provider: str) -> tuple[Accepted, ...]:
        """Return the secrets a provider's deliveries may be signed with; none: refuse all of them."""
        return self.webhooks.get(provider, ())

    def token(self, candidate: bytes) -> ReplayToken | None:
        """Return the replay token that was presented; every token is compared, whatever matches."""
        found = [token for token, secret in self.tokens if secret.matches(candidate)]
        return found[0] if found else None

    def page(self) -> PageSecrets | None:
        """Return what signs people in to the page; None: there is no page."""
        return self.page_secrets

    def read(self, ref: SecretRef) -> Secret:
        """Return what signs in to a git host or a Prometheus, or an age key. Raises SecretUnavailable: nothing that was resolved here."""
        found = self.git.get(ref) or self.metrics.get(ref) or self.decryption.get(ref)
        if not found:
            raise SecretUnavailable.of(str(ref), "is no git host's secret of this configuration, no Prometheus's and no age key")
        return found

    def again(self, ref: SecretRef) -> Secret:
        """Return the same: a snapshot asks no store."""
        return self.read(ref)


def api_needs(settings: Settings) -> frozenset[Need]:
    """Return what the function resolves that answers tokens and people: for a page it makes plans, so it needs what runs need."""
    return _API | RUNS if settings.page else _API


class Accepting(Protocol):
    """What the door accepts: a snapshot, or secrets that are renewed as their files change."""

    def webhook(self, provider: str) -> tuple[Accepted, ...]:
        """Return the secrets a provider's deliveries may be signed with; none: refuse all of them."""

    def token(self, candidate: bytes) -> ReplayToken | None:
        """Return the replay token that was presented."""

    def page(self) -> PageSecrets | None:
        """Return what signs people in to the page; None: there is no page."""


class Reading(Protocol):
    """Where the secrets of git hosts and Prometheus and age keys are read, whenever they are needed."""

    def read(self, ref: SecretRef) -> Secret:
        """Return the present value. Raises SecretUnavailable."""

    def again(self, ref: SecretRef) -> Secret:
        """Return the value after one was refused: its place is asked even if it was asked lately. Raises SecretUnavailable."""


def resolve(ref: SecretRef, environ: Mapping[str, str], fetch: Fetch = nowhere) -> Secret:
    """Read a secret. Raises SecretUnavailable with its place, never the value: it is missing, empty, unreadable or not text."""
    value, problem = found(ref, environ, fetch)
    if problem:
        raise SecretUnavailable.of(str(ref), problem)
    if not value.strip():
        raise SecretUnavailable.of(str(ref), "is empty")
    return Secret(value)


def resolve_all(settings: Settings, environ: Mapping[str, str], *, needs: Collection[Need] = ALL, fetch: Fetch = nowhere) -> Secrets:
    """Resolve everything a process needs. Raises SecretUnavailable with the place of every missing, empty or short secret, never values."""
    secrets, problems = resolve_known(settings, environ, needs=needs, fetch=fetch)
    if problems:
        raise SecretUnavailable(*problems)
    return secrets


def resolve_known(
    settings: Settings, environ: Mapping[str, str], *, needs: Collection[Need] = ALL, fetch: Fetch = nowhere
) -> tuple[Secrets, tuple[Problem, ...]]:
    """Resolve what can be, as `resolve_all` does; return it with what is wrong with the rest."""
    remote = RemoteSecrets(references(settings, needs), fetch, settings.secrets_interval)
    return renewed(settings, environ, {}, needs=needs, fetch=remote)


def references(settings: Settings, needs: Collection[Need] = ALL) -> Iterator[SecretRef]:
    """Yield every reference of a configuration that these needs resolve."""
    yield from _of_targets(settings, needs)
    if "metrics" in needs:
        yield from (each.token for each in settings.prometheus if each.token)
    if "webhooks" in needs:
        for provider in providers(type(settings.webhooks)):
            yield from getattr(settings.webhooks, provider).secrets
    if "tokens" in needs:
        yield from (token.secret for token in settings.replay.tokens)
    if "page" in needs:
        yield from (ref for _, ref in page_references(settings.page))


def _of_targets(settings: Settings, needs: Collection[Need]) -> Iterator[SecretRef]:
    for target in settings.targets:
        if "git" in needs:
            yield from (ref for _, ref in (*git_references(target.repository), *feedback_references(target.repository)))
            yield from (ref for _, ref in chart_references(target.charts))
        if "decryption" in needs:
            yield from (ref for _, ref in decryption_references(target.decryption))
        if "clusters" in needs:
            elsewhere = target.revision.promoted.cluster if target.revision.promoted else None
            yield from (each.kubeconfig for each in (target.cluster, elsewhere) if each and each.kubeconfig)
        if "webhooks" in needs:
            yield from target.repository.webhook.secrets


def renewed(
    settings: Settings, environ: Mapping[str, str], before: Mapping[SecretRef, Secret], *, needs: Collection[Need], fetch: Fetch
) -> tuple[Secrets, tuple[Problem, ...]]:
    """Resolve everything anew; what has no usable value now keeps the one it had `before`. Returns also what is wrong."""
    reader = _Reader(environ, before, fetch)
    git = dict(reader.git(settings)) if "git" in needs else {}
    metrics = dict(reader.metrics(settings)) if "metrics" in needs else {}
    decryption = dict(reader.decryption(settings)) if "decryption" in needs else {}
    webhooks = {name: tuple(reader.webhook(settings, name)) for name in providers(type(settings.webhooks))} if "webhooks" in needs else {}
    tokens = tuple(reader.tokens(settings)) if "tokens" in needs else ()
    page = reader.page(settings) if "page" in needs else None
    known = {ref: secret for ref, secret in reader.known.items() if secret}
    return Secrets(webhooks, tokens, git, metrics, known, decryption, page), tuple(reader.problems)


@dataclass(slots=True)
class _Reader:
    """Reads each reference once and notes what is wrong with it, with the path of the setting that asked first."""

    environ: Mapping[str, str]
    before: Mapping[SecretRef, Secret]
    fetch: Fetch
    known: dict[SecretRef, Secret | None] = field(default_factory=dict)
    short: set[SecretRef] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def read(self, ref: SecretRef, subject: str, *, strong: bool, least: int = 0) -> Secret | None:
        """Return a secret; the one before, or None, after noting why there is no other. `least`: characters that it has."""
        # `strong` ones stand in lists, where a version that isn't there (AWSPREVIOUS before the first rotation) is just absent.
        if ref not in self.known:
            self.known[ref] = self._resolved(ref, subject, needed=not strong, made=strong or least > 0)
        secret, least = self.known[ref], least or (secret_strength.SHORTEST if strong else 0)
        if secret and not secret_strength.is_long(secret.reveal(), least):
            if ref not in self.short:
                short = f"{ref} is shorter than {least} characters"
                self.problems.append(Problem(subject, short, fix=secret_strength.NEW))
            self.short.add(ref)
            return self._kept(ref)
        return secret

    def _resolved(self, ref: SecretRef, subject: str, *, needed: bool, made: bool) -> Secret | None:
        try:
            if not needed and ref.remote and text_of(ref, self.fetch) is None:
                return None
            return resolve(ref, self.environ, self.fetch)
        except SecretUnavailable as error:
            way_out = secret_strength.way_out(ref, made=made) if str(error).endswith(_ABSENT) else ""
            self.problems += [Problem(subject, f"{each.subject} {each.message}", fix=each.fix or way_out) for each in error.problems]
            return self._kept(ref)

    def _kept(self, ref: SecretRef) -> Secret | None:
        self.known[ref] = self.before.get(ref)
        return self.known[ref]

    def git(self, settings: Settings) -> Iterator[tuple[SecretRef, Secret]]:
        """Yield what signs in to git hosts and chart sources."""
        for target in settings.targets:
            hosts = (*git_references(target.repository), *feedback_references(target.repository))
            ours = [(f"repository.{place}", ref) for place, ref in hosts]
            ours += [(f"charts{place}", ref) for place, ref in chart_references(target.charts)]
            for place, ref in ours:
                secret = self.read(ref, f"targets[{target.name}].{place}", strong=False)
                if secret:
                    yield ref, secret

    def metrics(self, settings: Settings) -> Iterator[tuple[SecretRef, Secret]]:
        """Yield what signs in to Prometheus."""
        for each in settings.prometheus:
            secret = self.read(each.token, f"prometheus[{each.url}].token", strong=False) if each.token else None
            if each.token and secret:
                yield each.token, secret

    def decryption(self, settings: Settings) -> Iterator[tuple[SecretRef, Secret]]:
        """Yield age keys."""
        for target in settings.targets:
            for place, ref in decryption_references(target.decryption):
                secret = self.read(ref, f"targets[{target.name}].decryption.{place}", strong=False)
                if secret:
                    yield ref, secret

    def webhook(self, settings: Settings, provider: str) -> Iterator[Accepted]:
        """Yield the secrets of a provider: its own for targets without any, then each repository's."""
        shared = getattr(settings.webhooks, provider).secrets
        wanted: dict[SecretRef, tuple[str, set[str]]] = {ref: (f"webhooks.{provider}.secrets", set()) for ref in shared}
        for target in settings.targets:
            own = target.repository.webhook.secrets
            for ref in own or shared:
                wanted.setdefault(ref, (f"targets[{target.name}].repository.webhook.secrets", set()))[1].add(target.name)
        for ref, (subject, names) in wanted.items():
            secret = self.read(ref, subject, strong=True)
            if secret and provider == "gitlab" and not secret_strength.can_sign(secret.reveal()):
                broken = f"{ref} begins with {secret_strength.SIGNING}, but no base64 follows"
                self.problems.append(Problem(subject, broken, fix=secret_strength.WHOLE))
                secret = self._kept(ref)
            if secret:
                yield Accepted(secret, frozenset(names))

    def tokens(self, settings: Settings) -> Iterator[tuple[ReplayToken, Secret]]:
        """Yield the replay tokens."""
        return self._tokens(settings.replay.tokens, "replay")

    def page(self, settings: Settings) -> PageSecrets | None:
        """Return what signs in to the page; None: there is none, or its key is missing."""
        found: dict[str, Secret | None] = {}
        for place, ref in page_references(settings.page):
            if not place.startswith("tokens"):
                found[place] = self.read(ref, f"page.{place}", strong=False, least=_LEAST[place])
        tokens = tuple(self._tokens(settings.page.tokens, "page")) if settings.page else ()
        key = found.get("key")
        return PageSecrets(key, found.get("proxy.secret"), found.get("oidc.clientSecret"), tokens) if key else None

    def _tokens(self, listed: Collection[Token], where: str) -> Iterator[tuple[Token, Secret]]:
        """Yield tokens; two with the same value couldn't be distinguished."""
        first: dict[str, Token] = {}
        for token in listed:
            subject = f"{where}.tokens[{token.name}].secret"
            secret = self.read(token.secret, subject, strong=True)
            twin = first.setdefault(secret.reveal(), token) if secret else token
            if twin is not token:
                same = f"{token.secret} has the same value as the token {twin.name}"
                self.problems.append(Problem(subject, same, fix=secret_strength.NEW))
                for each in (twin, token):  # neither may speak for the other
                    self._kept(each.secret)
        for token in listed:
            secret = self.known[token.secret]
            if secret:
                yield token, secret
