"""Secret references become values, at the last moment and only here. A value is masked wherever it might be printed.

`resolve` reads its place anew on each call, so a rotated secret is found by resolving again.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import NoReturn

from handler.config.git import SecretRef
from handler.config.masking import Mask
from handler.config.settings import ReplayToken, Settings, Target, Webhooks
from handler.model.errors import Problem, SecretUnavailable

SHORTEST = 16
"""Characters that a webhook secret or replay token has at least: nobody should find it by trying."""
LARGEST = 65_536
PROVIDERS = tuple(each.name for each in fields(Webhooks) if each.name != "max_body")
_FIX = "make one with `openssl rand -hex 32`"


class Secret:
    """A secret value that shows itself to nobody who doesn't ask by name. No dataclass: `asdict` would look inside."""

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
class Credentials:
    """What signs in to a git host."""

    username: str
    password: Secret


@dataclass(frozen=True, slots=True)
class Accepted:
    """A webhook secret and the targets that a delivery signed with it may run."""

    secret: Secret
    targets: frozenset[str]


@dataclass(frozen=True, slots=True, repr=False)
class Secrets:
    """Every resolved secret of a configuration, as one snapshot.

    `webhooks`: by provider; `tokens`: replay tokens; `passwords`: by target name.
    """

    webhooks: Mapping[str, tuple[Accepted, ...]] = field(default_factory=dict)
    tokens: tuple[tuple[ReplayToken, Secret], ...] = ()
    passwords: Mapping[str, Credentials] = field(default_factory=dict)
    masking: Mask = field(default_factory=Mask)

    def __repr__(self) -> str:
        return "Secrets(***)"

    def webhook(self, provider: str) -> tuple[Accepted, ...]:
        """Return the secrets a provider's deliveries may be signed with; none: refuse all of them."""
        return self.webhooks.get(provider, ())

    def token(self, candidate: bytes) -> ReplayToken | None:
        """Return the replay token that was presented; every token is compared, whatever matches."""
        found = [token for token, secret in self.tokens if secret.matches(candidate)]
        return found[0] if found else None

    def credentials(self, target: str) -> Credentials | None:
        """Return what signs in to a target's git host, None for an anonymous one."""
        return self.passwords.get(target)

    def mask(self, text: str) -> str:
        """Replace every secret of this snapshot, however it is encoded, by `***`."""
        return self.masking(text)


def resolve(ref: SecretRef, environ: Mapping[str, str]) -> Secret:
    """Read a secret from its environment variable or file.

    Raises:
        SecretUnavailable: it is missing, empty, unreadable or not text; names the place, never the value.
    """
    value, problem = _from_environment(ref.env, environ) if ref.env else _from_file(Path(ref.file))
    if problem:
        raise SecretUnavailable.of(str(ref), problem)
    if not value.strip():
        raise SecretUnavailable.of(str(ref), "is empty")
    return Secret(value)


def _from_environment(name: str, environ: Mapping[str, str]) -> tuple[str, str]:
    value = environ.get(name)
    if value is None:
        return "", "is not set"
    return ("", "is not UTF-8 text") if any("\ud800" <= char <= "\udfff" for char in value) else (value, "")


def _from_file(path: Path) -> tuple[str, str]:
    """Read a regular file: a pipe or device could block or never end. Returns (value, problem)."""
    try:
        if not path.is_file():
            return "", "is not a file" if path.exists() else "doesn't exist"
        with path.open("rb") as stream:
            raw = stream.read(LARGEST + 1)
    except OSError as error:
        return "", f"can't be read: {error.strerror}"
    if len(raw) > LARGEST:
        return "", f"is larger than {LARGEST} bytes"
    try:
        return raw.decode().removesuffix("\n").removesuffix("\r"), ""
    except UnicodeDecodeError:  # it holds the bytes, so it must not become anyone's __context__
        return "", "is not UTF-8 text"


def resolve_all(settings: Settings, environ: Mapping[str, str], *, door: bool = True) -> Secrets:
    """Resolve everything a process needs, or refuse to start.

    Args:
        settings: the configuration.
        environ: where `env` references are looked up.
        door: also webhook secrets and replay tokens; a CLI or worker that serves no door leaves them out.

    Raises:
        SecretUnavailable: with every missing, empty or short secret; names their places, never the values.
    """
    reader = _Reader(environ)
    passwords = dict(reader.passwords(settings.targets))
    webhooks = {name: tuple(reader.webhook(settings, name)) for name in PROVIDERS} if door else {}
    tokens = tuple(reader.tokens(settings)) if door else ()
    if reader.problems:
        raise SecretUnavailable(*reader.problems)
    values = [secret.reveal() for secret in reader.known.values() if secret]
    signed = [(each.username, each.password.reveal()) for each in passwords.values()]
    return Secrets(webhooks, tokens, passwords, Mask.of(values, signed))


@dataclass(slots=True)
class _Reader:
    """Reads each reference once and notes what is wrong with it, with the path of who asked first."""

    environ: Mapping[str, str]
    known: dict[SecretRef, Secret | None] = field(default_factory=dict)
    short: set[SecretRef] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def read(self, ref: SecretRef, subject: str, *, strong: bool) -> Secret | None:
        """Return a secret; None after noting why there is none."""
        if ref not in self.known:
            self.known[ref] = self._resolved(ref, subject)
        secret = self.known[ref]
        if secret and strong and not is_strong(secret):
            if ref not in self.short:
                self.problems.append(Problem(subject, f"{ref} is shorter than {SHORTEST} characters", fix=_FIX))
            self.short.add(ref)
            return None
        return secret

    def _resolved(self, ref: SecretRef, subject: str) -> Secret | None:
        try:
            return resolve(ref, self.environ)
        except SecretUnavailable as error:
            self.problems.extend(Problem(subject, f"{problem.subject} {problem.message}") for problem in error.problems)
            return None

    def passwords(self, targets: tuple[Target, ...]) -> Iterator[tuple[str, Credentials]]:
        """Yield (target name, credentials) of every target that signs in."""
        for target in targets:
            basic = target.repository.auth.basic
            subject = f"targets[{target.name}].repository.auth.basic.password"
            password = self.read(basic.password, subject, strong=False) if basic else None
            if basic and password:
                yield target.name, Credentials(basic.username, password)

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
            if secret:
                yield Accepted(secret, frozenset(names))

    def tokens(self, settings: Settings) -> Iterator[tuple[ReplayToken, Secret]]:
        """Yield the replay tokens; two with the same value couldn't be told apart."""
        seen: list[tuple[str, Secret]] = []
        for token in settings.replay.tokens:
            subject = f"replay.tokens[{token.name}].secret"
            secret = self.read(token.secret, subject, strong=True)
            twin = next((name for name, other in seen if secret and other.matches(secret.reveal().encode())), "")
            if twin:
                self.problems.append(Problem(subject, f"{token.secret} has the same value as the token {twin}", fix=_FIX))
            if secret:
                seen.append((token.name, secret))
                yield token, secret


def is_strong(secret: Secret) -> bool:
    """Whether a webhook secret or replay token is long enough; surrounding whitespace doesn't count."""
    return len(secret.reveal().strip()) >= SHORTEST
