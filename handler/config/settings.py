"""The configuration as frozen values. The JSON Schema and the loader are generated from these classes.

A field's `doc` is its description in the schema. Durations are seconds. Names in YAML are the camelCase of the names here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NewType

from handler.config.cluster_settings import Cluster as Cluster  # noqa: PLC0414 - it is imported from here
from handler.config.cluster_settings import Eks as Eks  # noqa: PLC0414 - it is imported from here
from handler.config.decryption import SOPS, Decryption
from handler.config.feedback_settings import PullRequestSettings
from handler.config.git_settings import Repository, Revision, SecretRef, Verify, WebhookSecrets
from handler.config.page_settings import PageSettings
from handler.config.post_build import PostBuild
from handler.config.renderer_settings import ChartSource, RendererSettings
from handler.config.settings_shape import doc as _doc
from handler.config.trigger_settings import TriggerSettings
from handler.model.instance import Instance
from handler.model.names import DEFAULT_INSTALLATION, STATE_NAMESPACE


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """Secrets by provider: each is a path, `/webhooks/<provider>`."""

    github: WebhookSecrets = _doc("GitHub: HMAC-SHA256 of the raw body.", factory=WebhookSecrets)
    gitlab: WebhookSecrets = _doc("GitLab: the secret token; one that begins with whsec_ is a signing token.", factory=WebhookSecrets)
    gitea: WebhookSecrets = _doc("Gitea and Forgejo: HMAC-SHA256 of the raw body.", factory=WebhookSecrets)
    bitbucket: WebhookSecrets = _doc("Bitbucket Cloud and Data Center: HMAC-SHA256 of the raw body.", factory=WebhookSecrets)
    azuredevops: WebhookSecrets = _doc("Azure DevOps: the password of its basic authentication; any user name.", factory=WebhookSecrets)
    generic: WebhookSecrets = _doc("Anything that can sign: HMAC-SHA256 of the raw body in X-Signature-256.", factory=WebhookSecrets)
    max_body: int = _doc("Bytes that the body of a request may have.", 5 * 1024 * 1024, kind="body")
    trusted_proxies: tuple[str, ...] = _doc(
        "Networks of ingresses and proxies in front: what they deliver is bounded by the address that they name, not by theirs.",
        kind="network",
        factory=tuple,
    )


@dataclass(frozen=True, slots=True)
class MetricsSettings:
    """Where Prometheus scrapes; besides, a token that may `metrics` can, at /metrics."""

    bind: str = _doc("host:port of an own, unprotected listener for /metrics; empty: none.", "", kind="bind")


Tool = Literal["flux", "argocd", "helm", "kapp", "kluctl", "kubernixos", "cli-utils", "fleet"]
"""What else deploys to clusters, and can be named by `adopt`: `plan/ownership.py` knows each by its marks."""
ApplySetId = NewType("ApplySetId", str)
"""By its id `adopt` names another ApplySet: kubectl's, or another target's that is no sibling."""
Owner = Tool | ApplySetId
Act = Literal["replay", "approve", "rollback", "read", "metrics"]


@dataclass(frozen=True, slots=True)
class ReplayToken:
    """A named bearer token, bounded to targets and acts."""

    name: str = _doc("Recorded as the actor of what it does.", kind="name")
    secret: SecretRef = _doc("The token's value.")
    targets: tuple[str, ...] = _doc("Target names or globs it may touch.", kind="target", factory=lambda: ("*",))
    may: tuple[Act, ...] = _doc("What it may do.", factory=lambda: ("replay",))


@dataclass(frozen=True, slots=True)
class ReplaySettings:
    """Who may ask for runs over HTTP."""

    tokens: tuple[ReplayToken, ...] = _doc("Named tokens.", factory=tuple)


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
class RecreateSettings:
    """Which kinds may be deleted and created again when an immutable field changes."""

    kinds: tuple[str, ...] = _doc("Kinds, e.g. Deployment.apps; finished Jobs always may.", kind="groupKind", factory=tuple)


@dataclass(frozen=True, slots=True)
class Wait:
    """How long a run waits until what it applied is healthy. Written, even empty: a commit is recorded when all of it is."""

    timeout: float = _doc("How long one wait may take in all, over restarts of the handler.", 300.0, kind="duration")
    progress_timeout: float = _doc("How long nothing may change meanwhile.", 300.0, kind="duration")


@dataclass(frozen=True, slots=True)
class EvidenceSettings:
    """What of a failure is kept."""

    logs: Literal["live", "record"] = _doc(
        "live: logs of containers are only read by `anneal status --logs`; record: a log's masked end stands in record and messages.",
        "live",
    )


@dataclass(frozen=True, slots=True)
class HealthCheckExpr:
    """How objects of one kind stand, in CEL: an entry of Flux' `healthCheckExprs`. Asked in this order: inProgress, failed, current."""

    api_version: str = _doc("apiVersion of the kind; only its group counts.", kind="groupVersion")
    current: str = _doc("CEL: true where the object is healthy.", kind="cel")
    kind: str = _doc("Kind; empty: each kind of the group that has no entry of its own.", "", kind="kindName")
    in_progress: str = _doc("CEL: true while the object is on its way.", "", kind="cel")
    failed: str = _doc("CEL: true where the object won't get there by itself.", "", kind="cel")

    @property
    def group(self) -> str:
        """The API group; empty: the core group."""
        return self.api_version.rpartition("/")[0]

    def __str__(self) -> str:
        return f"{self.kind}.{self.group}".strip(".") if self.kind else f"any kind of {self.group or 'the core group'}"


@dataclass(frozen=True, slots=True)
class Rollback:
    """What becomes of a rollout that fails."""

    on_failure: bool = _doc("Apply the last healthy commit again, and pin it.", False)


@dataclass(frozen=True, slots=True)
class PrometheusSettings:
    """A Prometheus that checks of rollouts may ask. What isn't listed is never asked: a URL in git is no reason to send a request."""

    url: str = _doc("Its address, as checks name it; a check without `url` asks the first one.", kind="metricsUrl")
    token: SecretRef | None = _doc("Bearer token.", None)
    ca_file: str = _doc("Authority that signs its certificate (PEM); empty: the system's.", "", kind="file")


@dataclass(frozen=True, slots=True)
class Target:
    """One path of one repository on one cluster."""

    name: str = _doc("Unique; a DNS label of at most 56 characters.", kind="name")
    repository: Repository = _doc("Where git is.")
    namespaces: tuple[str, ...] = _doc("Whitelist of namespaces; `*` only when written.", kind="whitelist")
    revision: Revision = _doc(
        "Branch, tag, range of versions or commit, or what other targets have proven.", factory=lambda: Revision(branch="main")
    )
    path: str = _doc("Directory of the repository; empty: its root.", "", kind="path")
    renderer: RendererSettings = _doc("How documents are made.", factory=RendererSettings)
    post_build: PostBuild | None = _doc("Variables that are written into the objects once they are rendered, as Flux' postBuild.", None)
    charts: tuple[ChartSource, ...] = _doc("Where Helm charts that git doesn't hold may come from.", factory=tuple)
    decryption: Decryption | None = _doc("How files that SOPS has encrypted are decrypted; without it they are refused.", None)
    sandbox: Literal["strict", "weak"] = _doc(
        "weak: run programs such as kustomize and helm also where the kernel offers no walls for files and sockets, as on AWS Lambda.",
        "strict",
    )
    cluster: Cluster = _doc("Which cluster.", factory=Cluster)
    namespace: str = _doc("For objects that name none; empty: such objects are refused.", "", kind="namespace")
    cluster_scoped: tuple[str, ...] = _doc(
        "Cluster-scoped kinds it may declare, e.g. Namespace, ClusterRole.rbac.authorization.k8s.io.", kind="groupKind", factory=tuple
    )
    impersonate: Impersonate | None = _doc("Whose rights it has.", None)
    adopt: Literal["never", "unowned"] | tuple[Owner, ...] = _doc(
        "Whether objects that exist already are taken over; a list: what is unowned, too, and what these tools, or ApplySets by id, have.",
        "unowned",
        kind="applySet",
    )
    compat: Literal["none", "kubernixos", "locutus"] = _doc(
        "kubernixos: every object carries the label `kubernixos`, the first 62 hex digits of the sha256 of all of them, as Kubernixos' do; "
        "locutus: what git no longer declares stays: only steps delete.",
        "none",
    )
    ignore: tuple[IgnoreRule, ...] = _doc("Fields that others may own.", factory=tuple)
    prune: Prune = _doc("What may be deleted.", factory=Prune)
    recreate: RecreateSettings = _doc("What may be recreated.", factory=RecreateSettings)
    exclusive: tuple[str, ...] = _doc(
        "Namespaces under total control: a drift run deletes what lives there and git doesn't declare, once orphanGrace has passed.",
        kind="namespace",
        factory=tuple,
    )
    orphan_grace: float = _doc("How long such an object is shown before it is deleted.", 3600.0, kind="duration")
    drift: Literal["correct", "report", "ignore"] = _doc("What a drift run does.", "correct")
    validate: Literal["server", "none"] = _doc("Dry-run new objects before the first write.", "server")
    wait: Wait | None = _doc("Wait until everything is healthy, and fail where it isn't; without it only stages wait.", None)
    health_check_exprs: tuple[HealthCheckExpr, ...] = _doc(
        "How objects of kinds stand whose status nothing else knows, in CEL; stands above the installation's entry for the same kind.",
        factory=tuple,
    )
    rollout: str = _doc("Path of a Rollout in the repository, from its root: in which order, under which checks.", "", kind="rollout")
    rollback: Rollback = _doc("What becomes of a rollout that fails.", factory=Rollback)
    evidence: EvidenceSettings = _doc("What of a failure is kept.", factory=EvidenceSettings)
    verify: Verify | None = _doc("Whose signature a commit must carry; without it any commit of the revision counts.", None)
    renamed_from: str = _doc("The name that it had before: its next run takes over the record and the objects of that.", "", kind="name")
    depends_on: tuple[str, ...] = _doc(
        "Targets that must have what git says, and be healthy, before this one brings something new.",
        kind="dependency",
        factory=tuple,
    )
    pull_requests: PullRequestSettings | None = _doc("How its plans on pull requests are judged; without it no server judges them.", None)
    trigger: TriggerSettings | None = _doc("What makes it run beside pushes and the clock: objects of the cluster, each an instance.", None)
    suspend: bool = _doc("Neither webhooks nor the schedule run it; `anneal suspend` does the same without a new configuration.", False)

    @property
    def instance(self) -> Instance | None:
        """The object that it is an instance for; None: it is configured (`handler.config.instance_target`)."""
        return None

    @property
    def prunes_undeclared(self) -> bool:
        """Whether what git no longer declares goes; Locutus leaves that to steps."""
        return self.prune.enabled and self.compat != "locutus"

    @property
    def is_template(self) -> bool:
        """Whether its instances run, and not it itself."""
        return self.instance is None and self.trigger is not None and self.trigger.resource is not None

    @property
    def has_commit_statuses(self) -> bool:
        """Whether its git host shows how its runs end; an instance's object shows it itself."""
        feedback = self.repository.feedback
        return feedback is not None and feedback.status and not self.is_template and self.instance is None

    @property
    def plans_pull_requests(self) -> bool:
        """Whether it is planned on pull requests to the branch that it follows."""
        feedback, follows = self.repository.feedback, self.revision.ref.startswith("refs/heads/")
        return feedback is not None and feedback.pull_requests and follows and not self.is_template and self.instance is None

    @property
    def adopts(self) -> tuple[Owner, ...]:
        """The tools and ApplySets whose objects it takes over."""
        return self.adopt if isinstance(self.adopt, tuple) else ()

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that its renders may run; of `auto`, which the tree decides, no renderer's is known."""
        return (*self.renderer.programs, *((SOPS,) if self.decryption else ()))


@dataclass(frozen=True, slots=True)
class SqsSettings:
    """A FIFO queue of Amazon SQS; its redrive policy names its dead-letter queue."""

    url: str = _doc("URL of the queue; the environment variable ANNEAL_QUEUE_URL stands above it.", kind="queueUrl")


@dataclass(frozen=True, slots=True)
class QueueSettings:
    """Where requests wait between the door and the run. Empty: in this machine's memory, which the tick heals."""

    sqs: SqsSettings | None = _doc("Amazon SQS.", None)


@dataclass(frozen=True, slots=True)
class Settings:
    """A whole configuration."""

    targets: tuple[Target, ...] = _doc("What is deployed where.")
    installation: str = _doc("Name of this installation; two of them refuse each other's targets.", DEFAULT_INSTALLATION, kind="name")
    installation_from: str = _doc(
        "The installation before: the next run of each target takes over the record that it wrote for that name and repository.",
        "",
        kind="name",
    )
    state_namespace: str = _doc("Where states and Leases live, in each target's cluster.", STATE_NAMESPACE, kind="namespace")
    state_namespace_from: str = _doc(
        "Where states and Leases lived before: the next run of each target takes its record and objects over from there.",
        "",
        kind="namespace",
    )
    webhooks: WebhookSettings = _doc("Webhook secrets by provider.", factory=WebhookSettings)
    replay: ReplaySettings = _doc("Who may ask for runs, and read.", factory=ReplaySettings)
    page: PageSettings | None = _doc("The page for browsers, and who may see and do what on it; without it there is none.", None)
    metrics: MetricsSettings = _doc("Where Prometheus scrapes.", factory=MetricsSettings)
    prometheus: tuple[PrometheusSettings, ...] = _doc("Where checks of rollouts may ask for metrics.", factory=tuple)
    health_check_exprs: tuple[HealthCheckExpr, ...] = _doc("How objects of kinds stand, in CEL, for all targets.", factory=tuple)
    queue: QueueSettings = _doc("Where requests wait for their run.", factory=QueueSettings)
    secrets_interval: float = _doc(
        "How long a value from a cloud's secret store or a Secret is used before it is asked for again.", 60.0, kind="duration"
    )
    interval: float = _doc("Tick: how often heads are looked at.", 300.0, kind="duration")
    drift_interval: float = _doc("How often live is compared although git didn't move.", 1800.0, kind="duration")
    health_interval: float = _doc(
        "How often a worker, which watches the health of what its targets have deployed, judges all of it; 0: runs alone judge it.",
        60.0,
        kind="durationOrNever",
    )
    lease_duration: float = _doc("How long a Lease holds without renewal.", 15.0, kind="duration")

    def target(self, name: str) -> Target | None:
        """Return a target by name."""
        return next((target for target in self.targets if target.name == name), None)

    @property
    def is_shared(self) -> bool:
        """Whether the installation has no name of its own, so that its records may be another configuration's."""
        return self.installation == DEFAULT_INSTALLATION

    @property
    def has_commit_statuses(self) -> bool:
        """Whether the git host of any target shows how its runs end."""
        return any(target.has_commit_statuses for target in self.targets)

    def awaited(self, chosen: Sequence[Target]) -> tuple[Target, ...]:
        """Return the targets that these depend on, themselves left out."""
        names = {name for target in chosen for name in target.depends_on} - {target.name for target in chosen}
        return tuple(target for target in self.targets if target.name in names)
