"""What a rollout is: groups of steps, each one object and what is done with it; what must be true before the next. Pure values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from handler.model.names import Identity
from handler.model.tree import printable

API_VERSION = "workflow.kubernetes.io/v1alpha1"
KIND = "Rollout"
MAX_STEPS = 1_000  # steps of one Rollout: each has a line in the record
ARGO_HOOK, HELM_HOOK = "argocd.argoproj.io/hook", "helm.sh/hook"  # annotations that make an object a hook


class Mode(StrEnum):
    """How the plan treats a declared object.

    `keep`: created where it's missing, then left alone. `leave`: neither written nor deleted while git declares it (an annotation).
    `recreate`: deleted and created anew by each rollout. `delete`: isn't desired; lives until its step deletes it.
    `hook`: a declared action, carried out by a rollout; neither its absence nor its content is drift.
    """

    APPLY = "apply"
    KEEP = "keep"
    LEAVE = "leave"
    RECREATE = "recreate"
    DELETE = "delete"
    HOOK = "hook"


APPLIED = frozenset({Mode.APPLY, Mode.RECREATE})
"""The modes in which a run writes what git declares over what lives."""


class Phase(StrEnum):
    """When a hook runs, in Argo CD's words; `skip`: never."""

    PRE_SYNC = "PreSync"
    SYNC = "Sync"
    POST_SYNC = "PostSync"
    SYNC_FAIL = "SyncFail"
    SKIP = "Skip"


class Policy(StrEnum):
    """When a hook's object is deleted, in Argo CD's words."""

    BEFORE = "BeforeHookCreation"
    SUCCEEDED = "HookSucceeded"
    FAILED = "HookFailed"


@dataclass(frozen=True, slots=True)
class Hook:
    """An object of git that is an act: created at its phases, in the order of its wave, and deleted by its policies."""

    identity: Identity
    phases: frozenset[Phase]
    wave: int = 0
    policies: frozenset[Policy] = frozenset({Policy.BEFORE})


@dataclass(frozen=True, slots=True)
class Check:
    """One condition of a step's success or failure. `type`: a row of the table of checks; `options`: as its row has read them."""

    type: str
    name: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One object and what is done with it.

    `object`: its key in the Rollout; `action`: a row of the table of actions, which has read `options`; `field`: its path in the document.
    All of `success` must hold before the step has succeeded; any of `failure` ends it at once.
    """

    name: str
    object: str
    identity: Identity
    action: str
    options: Mapping[str, Any] = field(default_factory=dict)
    success: tuple[Check, ...] = ()
    failure: tuple[Check, ...] = ()
    continue_on_error: bool = False
    field: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """Steps, one after the other, or all at once where `parallel`."""

    name: str
    steps: tuple[Step, ...]
    parallel: bool = False


@dataclass(frozen=True, slots=True)
class Rollout:
    """Groups, one after the other, or all at once where `parallel`. `place`: file:line."""

    name: str
    groups: tuple[Group, ...]
    parallel: bool = False
    place: str = ""

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every step, in order."""
        return tuple(step for group in self.groups for step in group.steps)


def key_in_path(name: str) -> str:
    """Return a key as the path of a field shows it (`spec.groups[0]`): one that isn't ours may be anything."""
    return printable(name, 80)


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample of an instant vector: its labels and its value, which may be infinite or NaN."""

    labels: Mapping[str, str]
    value: float


Moments = Sequence[Sequence[Sample]]  # what a query finds at each of several moments, the newest last; never none of them
