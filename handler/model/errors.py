"""The errors Anneal raises. The class says who must act; the instance carries the facts.

Vendor exceptions (urllib3, dulwich, kubernetes, yaml) stop at their room's wall and leave it as one of these.
A message starts with its subject, says what was seen, where (file:line), and the line or command that helps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from handler.model.quotation import escaped


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: `subject` first (`Deployment/shop/api`), `message` as seen, `place` as file:line, `fix` as text to type.

    All but the fix are one line each, whatever they name. What others say is in a message as `quotation.quoted` has it.
    """

    subject: str
    message: str
    place: str = ""
    fix: str = ""

    def __post_init__(self) -> None:
        for name in ("subject", "message", "place"):
            text = str(getattr(self, name))
            if not text.isprintable():
                object.__setattr__(self, name, escaped(text))

    def __str__(self) -> str:
        """Read as one line: `place: subject: message; fix`."""
        where = f"{self.place}: " if self.place else ""
        way_out = f"; {self.fix}" if self.fix else ""
        return f"{where}{self.subject}: {self.message}{way_out}"

    def subjects(self) -> tuple[str, ...]:
        """Return all that it is about; `subject` names the first where several were put together."""
        return (self.subject,)

    def bare(self) -> Problem:
        """Return it without what a kind of problem knows beside these texts."""
        return Problem(self.subject, self.message, self.place, self.fix)


@dataclass(frozen=True, slots=True)
class Basis:
    """What a mistake follows from, beside the target's settings: with all of it as it was, it would be made again.

    `reads`: (path, id), empty: unknown; `unserved`: (apiVersion, kind); `siblings`: targets whose records were read, with resourceVersion.
    `strangers`: targets that it names and that are no siblings; `renderer`: which one the tree chose.
    """

    reads: tuple[tuple[str, str], ...] = ()
    unserved: tuple[tuple[str, str], ...] = ()
    siblings: tuple[tuple[str, str], ...] = ()
    strangers: tuple[str, ...] = ()
    renderer: str = ""


class AnnealError(Exception):
    """The base of all. Holds one or more problems, so that all mistakes are reported at once. `basis`: what it follows from, if known.

    `said`: the words of a server that refused, without values, where what happens next depends on them. They are quoted in the messages.
    """

    code: ClassVar[str] = "error"
    who: ClassVar[str] = "operator"
    said = ""

    def __init_subclass__(cls, *, code: str = "", who: str = "", status: int = 0) -> None:
        """Set what a class has of its own; the rest is its base's."""
        super().__init_subclass__()
        for name, value in (("code", code), ("who", who), ("status", status)):
            if value:
                setattr(cls, name, value)

    def __init__(self, *problems: Problem) -> None:
        """Keep the problems in the order they were found."""
        super().__init__(*problems)
        self.problems = problems
        self.basis = Basis()

    @classmethod
    def of(cls, subject: str, message: str, *, place: str = "", fix: str = "") -> Self:
        """Make the error of a single problem."""
        return cls(Problem(subject, message, place, fix))

    @property
    def words(self) -> str:
        """What was said, or else what the messages say."""
        return self.said or "; ".join(problem.message for problem in self.problems)

    def __str__(self) -> str:
        """One line a problem."""
        return "\n".join(str(problem) for problem in self.problems)


class OperatorError(AnnealError):
    """The operator must act: configuration, credentials, permission. Waits for a person."""


class AuthorError(AnnealError, who="author"):
    """The author of the commit must act. Waits for a new head."""


class TransientError(AnnealError, code="transient", who="nobody"):
    """It is retried by itself, from 15 s doubling to 5 min."""


class SenderError(AnnealError, who="sender"):
    """The sender of the request must act. `status` is the HTTP status of the answer."""

    status: ClassVar[int] = 400


class LeaseError(AnnealError, who="nobody"):
    """Another worker holds the target, or holds it now."""


# --- operator
class ConfigInvalid(OperatorError, code="config-invalid"):
    """`anneal.yaml` has mistakes; all of them are in it, each with file and line."""


class NoInstance(ConfigInvalid, code="no-instance"):
    """A name that no instance of a configured template has, by its object or its record."""


class SecretUnavailable(OperatorError, code="secret-unavailable"):
    """A referenced secret is missing, empty or too short. Never carries the value."""


class AccessDenied(OperatorError, code="access-denied"):
    """The API server or git host said 401 or 403 to our credentials."""


class QuotaExceeded(AccessDenied, code="quota-exceeded"):
    """A ResourceQuota has no room for an object: the quota's owner makes room, or git declares less."""


class TargetMoved(OperatorError, code="target-moved"):
    """Repository, installation or cluster differ from the recorded ones; `anneal retarget` accepts that."""


class CommitUnproven(OperatorError, code="commit-unproven"):
    """A commit that isn't the head isn't proven to be on the target's branch. Nothing of it was rendered; `--force` in a shell vouches."""


class StateInvalid(OperatorError, code="state-invalid"):
    """The state ConfigMap is not ours or can't be read; it is untrusted input."""


class Suspended(OperatorError, code="suspended"):
    """A person paused the target; `anneal resume` ends that."""


class ServerPinned(OperatorError, code="server-pinned"):
    """The kubeconfig points to another API server than `cluster.server` pins."""


class ChartNotAllowed(OperatorError, code="chart-not-allowed"):
    """A chart, its index, a redirect or a token would come from where the target's `charts` don't lead. Nothing was asked there."""


class ChartChanged(OperatorError, code="chart-changed"):
    """Another archive is served for a version of a chart than is known: locked in git, set for the target, or recorded at first use."""


class DecryptionRefused(OperatorError, code="decryption-refused"):
    """A file is encrypted for keys that its target doesn't list. Nothing of it was decrypted."""


class RendererUnavailable(OperatorError, code="renderer-unavailable"):
    """A program that renders isn't here, is too old or lacks its walls; or no render child can be started."""


class ProgramAbsent(RendererUnavailable):
    """A program isn't installed here, or its walls don't stand: for good, so that another engine may take its place."""


class ValuesInvalid(OperatorError, code="values-invalid"):
    """What the operator gives a chart (`valuesFrom`, `set`) isn't there, or can't be read."""


class KubeconfigInvalid(OperatorError, code="kubeconfig-invalid"):
    """The kubeconfig, its credentials or the trust in the API server can't be used."""


# --- author
class SourceRefused(AuthorError, code="source-refused"):
    """The commit, its tree or a ref breaks a rule: a path, a mode, a symlink, a submodule, a limit."""


class PathMissing(SourceRefused):
    """The commit has no such path as the target is to be rendered from: git keeps no empty directory."""


class RefNotFound(AuthorError, code="ref-not-found"):
    """The configured branch, tag or commit doesn't exist on the host. Never an empty render."""


class CommitUnverified(AuthorError, code="commit-unverified"):
    """The target requires signed commits, and no configured key vouches for this one. Nothing of it was rendered."""


class ManifestInvalid(AuthorError, code="manifest-invalid"):
    """Documents that can't be read or may not be in git; all of them at once."""


class RenderFailed(AuthorError, code="render-failed"):
    """The render child crashed, ran out of memory or time. `reason`: crash | memory | cpu | timeout | output."""

    def __init__(self, *problems: Problem, reason: str = "crash") -> None:
        """Keep the way the child died."""
        super().__init__(*problems)
        self.reason = reason


class PlanRefused(AuthorError, code="plan-refused"):
    """A guard refused the plan before the first write."""


@dataclass(frozen=True, slots=True)
class FieldCause:
    """One field error of the API server, in its words: `spec.replicas`, `FieldValueInvalid`, `Invalid value: -1: must be …`."""

    field: str
    reason: str
    message: str


class ApiRefused(AuthorError, code="api-refused"):
    """The API server refused an object for what is in it (400, 404, 409, 422). `status`, `reason`: the server's, or UNCONVERTED, FORGOTTEN.

    `causes`: the field errors, where the server gives them; they may quote values, so none of a Secret's are kept. `misshapen`: an apply's
    body has the wrong shape, such as a list key twice, whatever lives under its name.
    """

    UNCONVERTED = "Unconverted"  # the API version of an entry of its managedFields doesn't know a field that it has
    FORGOTTEN = "Forgotten"  # it would be accepted, and managedFields emptied: see `handler.cluster.write`

    def __init__(self, *problems: Problem, status: int = 0, reason: str = "") -> None:
        """Keep the server's status and reason."""
        super().__init__(*problems)
        self.status = status
        self.reason = reason
        self.causes: tuple[FieldCause, ...] = ()
        self.misshapen = False


class RolloutFailed(AuthorError, code="rollout-failed"):
    """What was applied doesn't work: an object failed or isn't healthy in time, a check or a hook failed."""


# --- retried
class GitUnavailable(TransientError, code="git-unavailable"):
    """The git host doesn't answer, answers nonsense or too slowly."""


class ChartUnavailable(TransientError, code="chart-unavailable"):
    """A registry or chart repository has no such chart or version yet, doesn't answer, or answers nonsense or too much."""


class ClusterUnavailable(TransientError, code="cluster-unavailable"):
    """The API server doesn't answer in time, or answers 5xx or 429 until the deadline. `answered`: with what status; empty: with none.

    `webhook`: the admission webhook whose call fails it; empty: none.
    """

    answered = ""
    webhook = ""


class Moved(TransientError, code="moved"):
    """A write met a precondition: the object changed since it was planned. `reason`: the server's."""

    reason = ""


class PlanStale(TransientError, code="plan-stale"):
    """A write would change or remove something that the plan didn't show; the next run plans anew."""


class StillDeleting(TransientError, code="still-deleting"):
    """Pruned objects are not gone yet; the next run goes on."""


class Stopping(TransientError, code="stopping"):
    """The worker stops; an open attempt stays open and the next run goes on."""


class NotReady(TransientError, code="not-ready"):
    """A CRD isn't Established or a Namespace isn't Active in time."""


class StillWaiting(TransientError, code="still-waiting"):
    """What was applied isn't healthy yet, and this process may not wait longer; the next run goes on with what time is left."""


class NewerHead(TransientError, code="newer-head"):
    """While this commit was waited for something newer came; it goes on with that. `asked`: only a request, which may yet be refused."""

    asked = False


class LeaseLost(LeaseError, code="lease-lost"):
    """Our Lease expired or was taken; the run stops at once and writes nothing more."""


class Busy(LeaseError, code="busy"):
    """Another worker holds the Lease; what is asked was left for it. Never a failure."""


# --- sender
class BadPayload(SenderError, code="bad-payload"):
    """The body isn't what its provider sends."""


class ShownOtherwise(SenderError, code="shown-otherwise", status=409):
    """What a person confirmed isn't what would be done now."""


class BadSignature(SenderError, code="bad-signature", status=401):
    """Missing or wrong signature or token; the answer says nothing more."""


class Forbidden(SenderError, code="forbidden", status=403):
    """A valid token that may not do this."""


class TooLarge(SenderError, code="too-large", status=413):
    """The body is over the cap."""


class WrongMediaType(SenderError, code="wrong-media-type", status=415):
    """Form-encoded or compressed bodies are not read."""


class TooManyRequests(SenderError, code="too-many-requests", status=429):
    """So many requests of one target, or large bodies, wait already that another adds nothing."""


class WorkerUnavailable(SenderError, code="worker-unavailable", status=503):
    """The worker process doesn't answer now, or what it asked doesn't: ask again soon."""
