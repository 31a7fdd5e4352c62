"""The configuration's part about the page, as frozen values: who may sign in, by which way, and who sees and does what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from handler.config.git_settings import SecretRef
from handler.config.settings_shape import doc as _doc

Role = Literal["viewer", "operator"]


@dataclass(frozen=True, slots=True)
class PageProxy:
    """A proxy in front that signs people in, such as oauth2-proxy; its headers count beside its secret alone."""

    secret: SecretRef | None = _doc("What the proxy sends with each request: other senders of its headers don't know it.", None)
    secret_header: str = _doc("Header that carries the secret.", "X-Anneal-Proxy", kind="header")
    user_header: str = _doc("Header that names who is asking.", "X-Forwarded-Email", kind="header")
    groups_header: str = _doc("Header that lists their groups, separated by commas.", "X-Forwarded-Groups", kind="header")


@dataclass(frozen=True, slots=True)
class PageOidc:
    """A provider of OpenID Connect that people sign in at."""

    issuer: str = _doc("Its issuer, as its tokens name it.", kind="issuer")
    client_id: str = _doc("Id under which it knows this page.", kind="clientId")
    client_secret: SecretRef | None = _doc("Secret of that id; a public client has none.", None)
    scopes: tuple[str, ...] = _doc("What is asked of it.", kind="scope", factory=lambda: ("openid", "email", "groups"))
    user_claim: str = _doc("Claim that names who signs in.", "email", kind="claim")
    groups_claim: str = _doc("Claim that lists their groups.", "groups", kind="claim")
    ca_file: str = _doc("Authority that signs its certificate (PEM); empty: the system's.", "", kind="file")


@dataclass(frozen=True, slots=True)
class PageToken:
    """A token that a person signs in with."""

    name: str = _doc("The person: recorded as the actor of what is done.", kind="name")
    secret: SecretRef = _doc("The token's value.")
    groups: tuple[str, ...] = _doc("The person's groups.", kind="person", factory=tuple)


@dataclass(frozen=True, slots=True)
class RoleBinding:
    """A row of the table of roles: who may see which targets, and act on them."""

    role: Role = _doc("viewer sees; operator acts, too.")
    groups: tuple[str, ...] = _doc("Groups that have it.", kind="person", factory=tuple)
    users: tuple[str, ...] = _doc("People who have it, as they are named at sign-in.", kind="person", factory=tuple)
    targets: tuple[str, ...] = _doc("Target names or globs.", kind="target", factory=lambda: ("*",))
    logs: tuple[str, ...] = _doc("Those of them whose container logs may be read.", kind="target", factory=tuple)


@dataclass(frozen=True, slots=True)
class PageSettings:
    """The page. Without this block there is none."""

    url: str = _doc("Where browsers reach it; http on this machine alone.", kind="pageUrl")
    key: SecretRef = _doc("Signs cookies and forms; at least 32 characters, the same for all replicas.")
    proxy: PageProxy | None = _doc("A proxy in front that signs people in.", None)
    oidc: PageOidc | None = _doc("OpenID Connect.", None)
    tokens: tuple[PageToken, ...] = _doc("Tokens that people sign in with.", factory=tuple)
    roles: tuple[RoleBinding, ...] = _doc("Who sees and does what; who is in no row sees nothing.", factory=tuple)


def page_references(page: PageSettings | None) -> Iterator[tuple[str, SecretRef]]:
    """Yield the secrets of the page, each with its path below `page`."""
    if page is None:
        return
    yield "key", page.key
    if page.proxy and page.proxy.secret:
        yield "proxy.secret", page.proxy.secret
    if page.oidc and page.oidc.client_secret:
        yield "oidc.clientSecret", page.oidc.client_secret
    yield from ((f"tokens[{token.name}].secret", token.secret) for token in page.tokens)
