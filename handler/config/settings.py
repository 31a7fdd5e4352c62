"""The configuration as frozen values. The JSON Schema and the loader are generated from these classes.

A field's `doc` metadata is its description in the schema. Secret *references* live here, secret values never.
Durations are seconds. Names in YAML are the camelCase of the names here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


def _doc(text: str, default: Any = ..., *, factory: Any = None, kind: str = "") -> Any:
    """Return a dataclass field whose `doc` and `kind` (a row of `forms.FORMS` or `forms.RANGES`) the loader and schema read."""
    metadata = {"doc": text, "kind": kind}
    if factory is not None:
        return field(default_factory=factory, metadata=metadata)
    if default is ...:
        return field(metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True)
class SecretRef:
    """Where a secret value is found: exactly one of `env` and `file`."""

    env: str = _doc("Name of an environment variable.", "", kind="env")
    file: str = _doc("Path of a file; a trailing newline is dropped.", "", kind="secretFile")

    def __str__(self) -> str:
        """Name the place, never the value."""
        return f"environment variable {self.env}" if self.env else f"file {self.file}"


@dataclass(frozen=True, slots=True)
class WebhookSecrets:
    """The secrets a provider may sign with: several at once, for rotation."""

    secrets: tuple[SecretRef, ...] = _doc("Accepted secrets, newest first.", factory=tuple)


@dataclass(frozen=True, slots=True)
class Webhooks:
    """Secrets by provider."""

    github: WebhookSecrets = _doc("GitHub: HMAC-SHA256 of the raw body.", factory=WebhookSecrets)
    gitlab: WebhookSecrets = _doc("GitLab: the secret token.", factory=WebhookSecrets)


@dataclass(frozen=True, slots=True)
class ReplayToken:
    """A named bearer token, bounded to targets and acts."""

    name: str = _doc("Recorded as the actor of what it does.", kind="name")
    secret: SecretRef = _doc("The token's value.")
    targets: tuple[str, ...] = _doc("Target names or globs it may touch.", kind="target", factory=lambda: ("*",))
    may: tuple[Literal["replay", "approve", "rollback"], ...] = _doc("What it may do.", factory=lambda: ("replay",))


@dataclass(frozen=True, slots=True)
class Replay:
    """Who may ask for runs over HTTP."""

    tokens: tuple[ReplayToken, ...] = _doc("Named tokens.", factory=tuple)


@dataclass(frozen=True, slots=True)
class BasicAuth:
    """HTTP basic credentials; a host's token is the password."""

    username: str = _doc("User name; GitHub tokens: x-access-token, GitLab tokens: oauth2.", kind="username")
    password: SecretRef = _doc("Password or token.")


@dataclass(frozen=True, slots=True)
class RepositoryAuth:
    """How the handler signs in to the git host."""

    basic: BasicAuth | None = _doc("User name and password or token.", None)


@dataclass(frozen=True, slots=True)
class Tls:
    """Trust for the git host."""

    ca_file: str = _doc("PEM file of the authorities to trust instead of the system's.", "", kind="file")


@dataclass(frozen=True, slots=True)
class Repository:
    """Where git is. Credentials and URL come from here, never from a payload."""

    url: str = _doc("https:// or http:// URL of the repository.", kind="url")
    aliases: tuple[str, ...] = _doc("Other URLs that webhooks may name it by.", kind="alias", factory=tuple)
    auth: RepositoryAuth = _doc("Credentials.", factory=RepositoryAuth)
    tls: Tls = _doc("TLS trust.", factory=Tls)
    webhook: WebhookSecrets = _doc("Secrets of this repository's webhook; they replace the provider's.", factory=WebhookSecrets)


@dataclass(frozen=True, slots=True)
class Revision:
    """What is deployed: exactly one of branch, tag and commit. Default: branch main."""

    branch: str = _doc("Branch name.", "", kind="ref")
    tag: str = _doc("Tag name.", "", kind="ref")
    commit: str = _doc("Full commit id.", "", kind="sha")

    @property
    def ref(self) -> str:
        """The full ref name, empty for a fixed commit."""
        if self.commit:
            return ""
        return f"refs/tags/{self.tag}" if self.tag else f"refs/heads/{self.branch or 'main'}"


@dataclass(frozen=True, slots=True)
class RendererSettings:
    """Which renderer turns the tree into documents."""

    type: str = _doc("Name of a renderer.", "file", kind="renderer")
    include: tuple[str, ...] = _doc("Globs below `path`.", kind="glob", factory=lambda: ("**/*.yaml", "**/*.yml", "**/*.json"))
    exclude: tuple[str, ...] = _doc("Globs below `path` left out again.", kind="glob", factory=tuple)


@dataclass(frozen=True, slots=True)
class KubeconfigRef:
    """Where a kubeconfig lies."""

    file: str = _doc("Path of a kubeconfig.", kind="file")


@dataclass(frozen=True, slots=True)
class Cluster:
    """Which cluster. Order: flag, this, KUBECONFIG, ~/.kube/config, in-cluster."""

    kubeconfig: KubeconfigRef | None = _doc("A kubeconfig.", None)
    context: str = _doc("Context of the kubeconfig; empty: its current one.", "")
    in_cluster: bool = _doc("Use the pod's own service account.", False)
    server: str = _doc("Pin: refuse any other API server address.", "", kind="server")


@dataclass(frozen=True, slots=True)
class Impersonate:
    """Whose rights a target's LISTs and writes have."""

    service_account: str = _doc("namespace/name of a ServiceAccount.", kind="serviceAccount")


@dataclass(frozen=True, slots=True)
class IgnoreSelect:
    """Which objects a rule is for; empty parts match everything. Globs."""

    group: str = _doc("API group; empty: any, `core`: the core group.", "")
    kind: str = _doc("Kind.", "")
    name: str = _doc("Name.", "")
    namespace: str = _doc("Namespace.", "")


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """Fields that others may own."""

    select: IgnoreSelect = _doc("Which objects.", factory=IgnoreSelect)
    paths: tuple[str, ...] = _doc("JSON pointers (RFC 6901); `*` stands for any list index or key.", kind="pointer", factory=tuple)


@dataclass(frozen=True, slots=True)
class HoldAbove:
    """A plan that deletes more than both waits for approval."""

    count: int = _doc("Deletions.", 10, kind="count")
    fraction: float = _doc("Share of the live members, 0 to 1.", 0.3, kind="fraction")


@dataclass(frozen=True, slots=True)
class Prune:
    """What may be deleted."""

    enabled: bool = _doc("Delete what git no longer declares.", True)
    kinds: tuple[str, ...] = _doc(
        "Opt-in for Namespace, CustomResourceDefinition, PersistentVolume, PersistentVolumeClaim.", kind="guardedKind", factory=tuple
    )
    hold_above: HoldAbove = _doc("When to wait for approval.", factory=HoldAbove)
    allow_empty: bool = _doc("Accept a render without any object.", False)


@dataclass(frozen=True, slots=True)
class Recreate:
    """Which kinds may be deleted and created again when an immutable field changes."""

    kinds: tuple[str, ...] = _doc("Kinds, e.g. Deployment.apps; finished Jobs always may.", kind="groupKind", factory=tuple)


@dataclass(frozen=True, slots=True)
class Target:
    """One path of one repository on one cluster."""

    name: str = _doc("Unique; a DNS label of at most 56 characters.", kind="name")
    repository: Repository = _doc("Where git is.")
    namespaces: tuple[str, ...] = _doc("Whitelist of namespaces; `*` only when written.", kind="whitelist")
    revision: Revision = _doc("Branch, tag or commit.", factory=lambda: Revision(branch="main"))
    path: str = _doc("Directory of the repository; empty: its root.", "", kind="path")
    renderer: RendererSettings = _doc("How documents are made.", factory=RendererSettings)
    cluster: Cluster = _doc("Which cluster.", factory=Cluster)
    namespace: str = _doc("For objects that name none; empty: such objects are refused.", "", kind="namespace")
    cluster_scoped: tuple[str, ...] = _doc(
        "Cluster-scoped kinds it may declare, e.g. Namespace, ClusterRole.rbac.authorization.k8s.io.", kind="groupKind", factory=tuple
    )
    impersonate: Impersonate | None = _doc("Whose rights it has.", None)
    adopt: Literal["never", "unowned"] = _doc("Whether objects that exist already are taken over.", "unowned")
    ignore: tuple[IgnoreRule, ...] = _doc("Fields that others may own.", factory=tuple)
    prune: Prune = _doc("What may be deleted.", factory=Prune)
    recreate: Recreate = _doc("What may be recreated.", factory=Recreate)
    drift: Literal["correct", "report", "ignore"] = _doc("What a drift run does.", "correct")
    validate: Literal["server", "none"] = _doc("Dry-run new objects before the first write.", "server")


@dataclass(frozen=True, slots=True)
class Settings:
    """A whole configuration."""

    targets: tuple[Target, ...] = _doc("What is deployed where.")
    installation: str = _doc("Name of this installation; two of them refuse each other's targets.", "default", kind="name")
    state_namespace: str = _doc("Where states and Leases live, in each target's cluster.", "anneal-system", kind="namespace")
    webhooks: Webhooks = _doc("Webhook secrets by provider.", factory=Webhooks)
    replay: Replay = _doc("Who may ask for runs.", factory=Replay)
    interval: float = _doc("Tick: how often heads are looked at.", 300.0, kind="duration")
    drift_interval: float = _doc("How often live is compared although git didn't move.", 1800.0, kind="duration")
    lease_duration: float = _doc("How long a Lease holds without renewal.", 15.0, kind="duration")

    def target(self, name: str) -> Target | None:
        """Return a target by name."""
        return next((target for target in self.targets if target.name == name), None)
