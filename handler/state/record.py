"""The record of a target, as frozen values: a change is a new State, written by compare-and-swap (`store`).

Times are RFC 3339 text (`record_format.stamp`, `seconds_of`), empty when there is none. `history` has the newest run first.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from handler.model.event import Delivery
from handler.model.names import GroupKind, Identity
from handler.model.outside_inputs import KnownChart
from handler.model.quotation import quoted
from handler.model.render import FILES, RecordedRender
from handler.state.record_format import ApiVersion, ChangeKey, Counts, Line, Message, Path, Segment, Sha, Time, Token, Word, seconds_of
from handler.state.record_values import AS_CONFIGURED, DependencyWait, RecordedCommitStatus, RecordedPullRequest, RecordName, RunOnce
from handler.state.soak import Soak


@dataclass(frozen=True, slots=True)
class Stalled:
    """Something in a rollout's wait that stands still. `seen`: digest of how, in few digits; `moved`: since when."""

    seen: Line
    moved: Time


@dataclass(frozen=True, slots=True)
class Ran:
    """A Job with a TTL of the recorded commit (`open`: of the open attempt). `declared`: digest of its declaration; empty in format 1."""

    identity: Identity
    declared: Sha = ""
    open: bool = False


@dataclass(frozen=True, slots=True)
class RecordedInstance:
    """The object that a target is an instance for; the target's name alone may be cut. `definition`: the uid of its kind's, if known.

    `generation`: of the object, by which the newest run went that has written the record.
    """

    identity: Identity
    uid: Line
    definition: Line = ""
    generation: int = 0


FORMAT = 7
"""Version of the layout: a newer one is refused, an older one read and written anew.

1: no plain keys; 2: no health; 3: no refusal; 4: no renderer; 5: no former record, unmarked orphans, dependencies, soaks;
6: no commit statuses, no pull requests.
"""


@dataclass(frozen=True, slots=True)
class Attempt:
    """An open run: written before its first object write, removed when the commit moves. `token` fences it (lease uid.transitions).

    `back`: the commit that failed, where this one is the way back from it by itself. `recovery`: the record was missing before it.
    """

    commit: Sha
    reads: Sha
    settings: Sha
    token: Token
    since: Time
    back: Sha = ""
    recovery: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """Something of the cluster that a refusal names. `seen`: how it was found, empty: it wasn't there.

    An object (`plural` is its path segment), a kind that isn't served (`name` is empty), or the record of the target `name` (no kind).
    """

    name: Segment = ""
    kind: Segment = ""
    api_version: ApiVersion = ""
    plural: Segment = ""
    namespace: Segment = ""
    seen: Line = ""

    def __str__(self) -> str:
        if not self.kind:
            return f"target {self.name}"
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part) if self.name else f"{self.api_version} {self.kind}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why ticks don't try a commit again: what its failure follows from, none of which has changed.

    `inputs`: digest of the target's configuration and our version; `reads`: as `State.reads`, empty: another commit is judged anew;
    `paths`: of `reads`, without it of `elsewhere`; `again`: when a tick tries it, empty: never; `elsewhere`: `reads` of what isn't git.
    """

    commit: Sha
    inputs: Sha
    reads: Sha = ""
    paths: tuple[Path, ...] = ()
    facts: tuple[Fact, ...] = ()
    again: Time = ""
    elsewhere: Sha = ""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How the target stands. `failures` in a row, `next_try` when one is due by itself, `who` must act: `operator | author | nobody`."""

    phase: Word = ""
    since: Time = ""
    counts: Counts = field(default_factory=dict[str, int])
    unhealthy: tuple[Message, ...] = ()
    message: Message = ""
    failures: int = 0
    next_try: Time = ""
    code: Word = ""
    who: Word = ""
    refusal: Refusal | None = None  # keeps what was refused from being tried again; None: nothing was, or an older version wrote this
    lingers: Identity | None = None  # the first object that was deleted and isn't gone yet


@dataclass(frozen=True, slots=True)
class TargetHealth:
    """How the target does, judged at the end of each run and from then on. `state`: a `HealthState`, empty: never judged.

    `since`: when that state began; `judged`: when this was written, at most a few drift intervals before the newest judgement. `worst`: a
    line for each of the objects that do worst; `notes`: what should be known of healthy ones. `apart`: what of the declared objects isn't
    judged, for it comes and goes or is another's; None: no run has said so yet. `closed`: see `handler.plan.closed`.
    """

    state: Word = ""
    since: Time = ""
    judged: Time = ""
    worst: tuple[Message, ...] = ()
    notes: tuple[Message, ...] = ()
    apart: tuple[Identity, ...] | None = None
    closed: tuple[Identity, ...] = ()


@dataclass(frozen=True, slots=True)
class WaitingFor:
    """What an open run waits for since when: a wait outlives its process. `what`: a stage, step or hook; `over`: its time has run out.

    `seen`: digest of how everything stood when the last of several runs looked, `moved`: since when it stands so.
    """

    commit: Sha
    what: Line
    since: Time
    over: bool = False
    seen: Sha = ""
    moved: Time = ""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """One step of a rollout, or one hook, which is called as its object is.

    `mark`: what its action must know after a restart (`Action.act`); `stood`: what of its wait hasn't changed. `share`:
    how many percent a canary has; 0: it isn't one, or was refused.
    """

    group: Line
    step: str
    object: str
    action: Line
    started: Time = ""
    finished: Time = ""
    outcome: Word = ""
    message: Message = ""
    mark: Line = ""
    stood: tuple[Stalled, ...] = ()
    share: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """The newest rollout. `digest`: of its rendered set; `outcome` empty: under way; `id`: which one of that set (older records: empty)."""

    commit: Sha
    digest: Sha
    started: Time
    finished: Time = ""
    outcome: Word = ""
    steps: tuple[StepRecord, ...] = ()
    id: Line = ""


@dataclass(frozen=True, slots=True)
class HeldPlan:
    """A plan that waits for a person: `changes` are its guarded (action, object, uid). `once`: of the run that made it."""

    id: Line
    reasons: tuple[Message, ...]
    changes: tuple[ChangeKey, ...]
    commit: Sha
    reads: Sha
    settings: Sha
    since: Time
    once: RunOnce = AS_CONFIGURED


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's yes to the guarded changes of one plan: same reads, same settings, these changes or fewer."""

    id: Line
    reads: Sha
    settings: Sha
    changes: tuple[ChangeKey, ...]
    by: Line
    at: Time


@dataclass(frozen=True, slots=True)
class Pin:
    """Hold this commit until `unpin`, or until the head's reads differ from `away` (empty: never). `automatic`: of a failed rollout.

    `beside`: paths outside of the target's own that these reads are of, too; formats 1 to 4 have none.
    """

    commit: Sha
    away: Sha = ""
    by: Line = ""
    reason: Line = ""
    at: Time = ""
    automatic: bool = False
    beside: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class Suspend:
    """No run writes until `resume`, or until `until`."""

    by: Line
    reason: Line = ""
    until: Time = ""
    at: Time = ""

    def holds(self, now: float) -> bool:
        """Whether it hasn't ended at `now`, in seconds since the epoch."""
        return not self.until or seconds_of(self.until) > now


@dataclass(frozen=True, slots=True)
class NamedRequest:
    """What was asked while another held the Lease: its next round does it and removes this."""

    by: Line
    at: Time
    force: bool = False
    drift: bool = False


@dataclass(frozen=True, slots=True)
class Orphan:
    """A live object that git doesn't declare and that wasn't pruned. `since`: first seen; `sibling`: the target that it is left to.

    `unmarked`: no member, but an undeclared object of an exclusive namespace; `until`: when that may be deleted, empty: it isn't.
    """

    uid: Line
    identity: Identity
    since: Time
    sibling: Line = ""
    unmarked: bool = False
    until: Time = ""


@dataclass(frozen=True, slots=True)
class Drift:
    """One field that differs from git. `declared`, `live`: masked text; `manager`: the field manager that owns it live.

    Without a path it is the whole object: one that is gone has no `live`, one that git doesn't declare no `declared`.
    """

    identity: Identity
    path: Line
    declared: Line
    live: Line
    manager: Line = ""


@dataclass(frozen=True, slots=True)
class Run:
    """One entry of the history. The same failure again raises `times` and `last`; `digest`: the beginning of the render's, if deployed."""

    id: Line
    trigger: Word
    outcome: Word
    started: Time
    commit: Sha = ""
    subject: Line = ""
    author: Line = ""
    actor: Line = ""
    counts: Counts = field(default_factory=dict[str, int])
    duration: float = 0.0
    message: Message = ""
    code: Word = ""
    changed: tuple[Line, ...] = ()
    times: int = 1
    last: Time = ""
    digest: Line = ""

    @property
    def asked_by(self) -> str:
        """Who asked for it, as people read it: `push by ada`, and `clock` for a tick or a drift run, whatever that found."""
        return f"{'clock' if self.trigger in ('tick', 'drift') else self.trigger}{f' by {quoted(self.actor)}' if self.actor else ''}"


@dataclass(frozen=True, slots=True)
class State:
    """Everything Anneal remembers of a target.

    `commit` of `repository` and `path` is applied whole; `reads` and `settings` say from what, `digest` what was rendered. A record belongs
    to no repository until a run has begun to apply. `waiting`, `rollout`: of the open attempt, or the last one. `kinds`, `namespaces`
    (besides the state's own): where members can be, widened before the first write. `declared`: by the commit; `ran`: Jobs of it.
    `renderer`: which one made it, empty: files (formats 1 to 4); `installed`: see `RenderRequest`; `charts`: see `RecordedRender`.
    `former`, `renamed_from`, `renamed_to`: see `handler.state.record_values`. `instance`: of a template's; None: of a configured target.
    """

    target: Line
    installation: Line
    cluster_uid: Line
    repository: Path = ""
    path: Path = ""
    format: int = FORMAT
    commit: Sha = ""
    reads: Sha = ""
    settings: Sha = ""
    digest: Sha = ""
    drift_due: Time = ""
    reads_paths: tuple[Path, ...] = ()
    attempt: Attempt | None = None
    status: RunStatus = field(default_factory=RunStatus)
    health: TargetHealth = field(default_factory=TargetHealth)
    waiting: WaitingFor | None = None
    rollout: Progress | None = None
    held: HeldPlan | None = None
    approval: Approval | None = None
    pin: Pin | None = None
    suspend: Suspend | None = None
    requested: NamedRequest | None = None
    awaits: DependencyWait | None = None
    renderer: Word = ""
    installed: Sha = ""
    charts: tuple[KnownChart, ...] = ()
    orphans: tuple[Orphan, ...] = ()
    declared: tuple[Identity, ...] = ()
    ran: tuple[Ran, ...] = ()
    deliveries: tuple[Delivery, ...] = ()
    history: tuple[Run, ...] = ()
    soaks: tuple[Soak, ...] = ()
    commit_statuses: tuple[RecordedCommitStatus, ...] = ()
    pull_requests: tuple[RecordedPullRequest, ...] = ()
    drift: tuple[Drift, ...] = ()
    kinds: frozenset[GroupKind] = frozenset()
    namespaces: frozenset[str] = frozenset()
    former: RecordName | None = None
    renamed_from: Line = ""
    renamed_to: RecordName | None = None
    instance: RecordedInstance | None = None

    @property
    def render(self) -> RecordedRender:
        """What it says of the renders of the target."""
        return RecordedRender((self.renderer or FILES) if self.commit else "", self.installed, self.charts)

    @property
    def fresh(self) -> bool:
        """Whether no run has recorded anything yet: members may exist that the record doesn't know."""
        return not (self.commit or self.attempt or self.kinds)

    def suspension(self, now: float) -> Suspend | None:
        """Return the pause that holds at `now`; None: there is none, or it has ended."""
        return self.suspend if self.suspend and self.suspend.holds(now) else None


def bounded(state: State) -> State:
    """Return a state whose kinds and namespaces hold every object that it names: declared ones and orphans.

    KEP-3659's annotations are hints that people and tools edit: a member of a kind that they leave out would be seen by no LIST.
    """
    named = (*state.declared, *(orphan.identity for orphan in state.orphans if not orphan.unmarked))
    kinds = {GroupKind(*pair) for pair in {(identity.group, identity.kind) for identity in named}} - state.kinds  # few kinds, many objects
    namespaces = {identity.namespace for identity in named if identity.namespace} - state.namespaces
    return replace(state, kinds=state.kinds | kinds, namespaces=state.namespaces | namespaces) if kinds or namespaces else state
