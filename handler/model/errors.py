"""The errors Anneal raises. The class says who must act; the instance carries the facts.

Vendor exceptions (urllib3, dulwich, kubernetes, yaml) stop at their room's wall and leave it as one of these.
A message starts with its subject, says what was seen, where (file:line), and the line or command that helps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: `subject` first (`Deployment/shop/api`), `message` as seen, `place` as file:line, `fix` as text to type."""

    subject: str
    message: str
    place: str = ""
    fix: str = ""

    def __str__(self) -> str:
        """Read as one line: `place: subject: message; fix`."""
        where = f"{self.place}: " if self.place else ""
        way_out = f"; {self.fix}" if self.fix else ""
        return f"{where}{self.subject}: {self.message}{way_out}"

    def bare(self) -> Problem:
        """Return it without what a kind of problem knows beside these texts."""
        return Problem(self.subject, self.message, self.place, self.fix)


@dataclass(frozen=True, slots=True)
class Basis:
    """What a mistake follows from, beside the target's settings: with all of it as it was, it would be made again.

    `reads`: the read set (path, id), empty: unknown; `unserved`: kinds (apiVersion, kind) that aren't served; `siblings`: the targets whose
    records were read, each with its resourceVersion.
    """

    reads: tuple[tuple[str, str], ...] = ()
    unserved: tuple[tuple[str, str], ...] = ()
    siblings: tuple[tuple[str, str], ...] = ()


class AnnealError(Exception):
    """The base of all. Holds one or more problems, so that all mistakes are reported at once. `basis`: what it follows from, if known."""

    code: ClassVar[str] = "error"
    who: ClassVar[str] = "operator"

    def __init__(self, *problems: Problem) -> None:
        """Keep the problems in the order they were found."""
        super().__init__(*problems)
        self.problems = problems
        self.basis = Basis()

    @classmethod
    def of(cls, subject: str, message: str, *, place: str = "", fix: str = "") -> Self:
        """Make the error of a single problem."""
        return cls(Problem(subject, message, place, fix))

    def __str__(self) -> str:
        """One line a problem."""
        return "\n".join(str(problem) for problem in self.problems)


class OperatorError(AnnealError):
    """The operator must act: configuration, credentials, permission. Waits for a person."""


class AuthorError(AnnealError):
    """The author of the commit must act. Waits for a new head."""

    who = "author"


class TransientError(AnnealError):
    """It is retried by itself, from 15 s doubling to 5 min."""

    code = "transient"
    who = "nobody"


class SenderError(AnnealError):
    """The sender of the request must act. `status` is the HTTP status of the answer."""

    who = "sender"
    status: ClassVar[int] = 400


class LeaseError(AnnealError):
    """Another worker holds the target, or holds it now."""

    who = "nobody"


# --- operator
class ConfigInvalid(OperatorError):
    """`anneal.yaml` has mistakes; all of them are in it, each with file and line."""

    code = "config-invalid"


class SecretUnavailable(OperatorError):
    """A referenced secret is missing, empty or too short. Never carries the value."""

    code = "secret-unavailable"


class AccessDenied(OperatorError):
    """The API server or git host said 401 or 403 to our credentials."""

    code = "access-denied"


class QuotaExceeded(AccessDenied):
    """A ResourceQuota has no room for an object: the quota's owner makes room, or git declares less."""

    code = "quota-exceeded"


class TargetMoved(OperatorError):
    """Repository, installation or cluster differ from the recorded ones; `anneal retarget` accepts that."""

    code = "target-moved"


class StateInvalid(OperatorError):
    """The state ConfigMap is not ours or can't be read; it is untrusted input."""

    code = "state-invalid"


class Suspended(OperatorError):
    """A person paused the target; `anneal resume` ends that."""

    code = "suspended"


class ServerPinned(OperatorError):
    """The kubeconfig points to another API server than `cluster.server` pins."""

    code = "server-pinned"


class KubeconfigInvalid(OperatorError):
    """The kubeconfig, its credentials or the trust in the API server can't be used."""

    code = "kubeconfig-invalid"


# --- author
class SourceRefused(AuthorError):
    """The commit, its tree or a ref breaks a rule: a path, a mode, a symlink, a submodule, a limit."""

    code = "source-refused"


class PathMissing(SourceRefused):
    """The commit has no such path as the target is to be rendered from: git keeps no empty directory."""


class RefNotFound(AuthorError):
    """The configured branch, tag or commit doesn't exist on the host. Never an empty render."""

    code = "ref-not-found"


class CommitUnverified(AuthorError):
    """The target requires signed commits, and no configured key vouches for this one. Nothing of it was rendered."""

    code = "commit-unverified"


class ManifestInvalid(AuthorError):
    """Documents that can't be read or may not be in git; all of them at once."""

    code = "manifest-invalid"


class RenderFailed(AuthorError):
    """The render child crashed, ran out of memory or time. `reason`: crash | memory | cpu | timeout | output."""

    code = "render-failed"

    def __init__(self, *problems: Problem, reason: str = "crash") -> None:
        """Keep the way the child died."""
        super().__init__(*problems)
        self.reason = reason


class PlanRefused(AuthorError):
    """A guard refused the plan before the first write."""

    code = "plan-refused"


class ApiRefused(AuthorError):
    """The API server refused an object for what is in it (400, 404, 409, 422). `status`, `reason`: the server's, or UNCONVERTED."""

    code = "api-refused"
    UNCONVERTED = "Unconverted"  # the API version of an entry of its managedFields doesn't know a field that it has

    def __init__(self, *problems: Problem, status: int = 0, reason: str = "") -> None:
        """Keep the server's status and reason."""
        super().__init__(*problems)
        self.status = status
        self.reason = reason


class RolloutFailed(AuthorError):
    """What was applied doesn't work: an object failed or isn't healthy in time, a check or a hook failed."""

    code = "rollout-failed"


# --- retried
class GitUnavailable(TransientError):
    """The git host doesn't answer, answers nonsense or too slowly."""

    code = "git-unavailable"


class ClusterUnavailable(TransientError):
    """The API server doesn't answer in time, or answers 5xx or 429 until the deadline."""

    code = "cluster-unavailable"


class Moved(TransientError):
    """A write met a precondition: the object changed since it was planned."""

    code = "moved"


class PlanStale(TransientError):
    """A write would change or remove something that the plan didn't show; the next run plans anew."""

    code = "plan-stale"


class StillDeleting(TransientError):
    """Pruned objects are not gone yet; the next run goes on."""

    code = "still-deleting"


class Stopping(TransientError):
    """The worker stops; an open attempt stays open and the next run goes on."""

    code = "stopping"


class NotReady(TransientError):
    """A CRD isn't Established or a Namespace isn't Active in time."""

    code = "not-ready"


class StillWaiting(TransientError):
    """What was applied isn't healthy yet, and this process may not wait longer; the next run goes on with what time is left."""

    code = "still-waiting"


class NewerHead(TransientError):
    """While this commit was waited for something newer came; it goes on with that. `asked`: only a request, which may yet be refused."""

    code = "newer-head"
    asked = False


class LeaseLost(LeaseError):
    """Our Lease expired or was taken; the run stops at once and writes nothing more."""

    code = "lease-lost"


class Busy(LeaseError):
    """Another worker holds the Lease; what is asked was left for it. Never a failure."""

    code = "busy"


# --- sender
class BadPayload(SenderError):
    """The body isn't what its provider sends."""

    code = "bad-payload"


class BadSignature(SenderError):
    """Missing or wrong signature or token; the answer says nothing more."""

    code = "bad-signature"
    status = 401


class Forbidden(SenderError):
    """A valid token that may not do this."""

    code = "forbidden"
    status = 403


class TooLarge(SenderError):
    """The body is over the cap."""

    code = "too-large"
    status = 413


class WrongMediaType(SenderError):
    """Form-encoded or compressed bodies are not read."""

    code = "wrong-media-type"
    status = 415


class TooManyRequests(SenderError):
    """So many requests of one target, or large bodies, wait already that another adds nothing."""

    code = "too-many-requests"
    status = 429


class WorkerUnavailable(SenderError):
    """The worker process doesn't answer now, or what it asked doesn't: ask again soon."""

    code = "worker-unavailable"
    status = 503
