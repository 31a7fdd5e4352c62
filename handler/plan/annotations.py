"""Annotations that steer an apply or a prune, ours and those of other tools: one literal table, which is docs/annotations.md.

    KEEP, LEAVE, MERGE, RECREATE, PROTECT   honoured
    ELSEWHERE                               honoured where it is read: in `prune`, in `ignore`
    REFUSE                                  refused before the first write: what it asks for isn't done, and doing without would surprise
    IGNORE                                  harmless: an apply does so anyway, or it speaks of something else than an apply

Law: each is read as its tool reads it (case, comma lists, labels) and where that tool reads it. Where a tool would delete and Anneal
needn't, Anneal doesn't. Sources: fluxcd/kustomize-controller and fluxcd/pkg/ssa, argoproj/argo-cd with its gitops-engine, carvel-dev/kapp,
kluctl/kluctl, kubernetes-sigs/cli-utils, helm/helm, rancher/wrangler.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Flag, StrEnum, auto

ANY = "*"
"""As a row's value: any value, also an empty one, that has no row of its own. At the end of a value or a key: any that begins so."""


class Side(Flag):
    """Where a tool reads an annotation."""

    GIT = auto()
    LIVE = auto()
    BOTH = GIT | LIVE


class Effect(StrEnum):
    """What Anneal does. `keep`: creates it, never updates it. `leave`: neither writes nor deletes it while git or live says so.

    `merge`: takes over nothing that others wrote. `recreate`: may make it anew where an immutable field changes. `protect`: never deletes.
    """

    KEEP = "keep"
    LEAVE = "leave"
    MERGE = "merge"
    RECREATE = "recreate"
    PROTECT = "protect"
    ELSEWHERE = "elsewhere"
    REFUSE = "refuse"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class Tool:
    """How a tool reads. `labels`: labels, too; `folds`: any case; `lists`: values between commas; `off`: values that ask for nothing."""

    name: str
    labels: bool = False
    folds: bool = False
    lists: bool = False
    off: frozenset[str] = frozenset()

    def values(self, text: str) -> dict[str, str]:
        """Return what an annotation asks for: each value as the tool compares it, and as it is written."""
        parts = [part.strip() for part in (text.split(",") if self.lists else [text])]
        found = {part.lower() if self.folds else part: part for part in parts if part}
        return {value: part for value, part in found.items() if value not in self.off}

    def read(self, text: str) -> frozenset[str]:
        """Return the values of an annotation, as the tool compares them."""
        return frozenset(self.values(text))


@dataclass(frozen=True, slots=True)
class AnnotationRow:
    """One annotation. `values`: any of them; `Force=true,Replace=true` is both together. `does`: Markdown; `fix`: a refusal's way out."""

    tool: Tool
    key: str
    values: tuple[str, ...]
    side: Side
    effect: Effect
    does: str
    fix: str = ""


ANNEAL = Tool("Anneal", lists=True)
FLUX = Tool("Flux", labels=True, folds=True)
ARGO = Tool("Argo CD", lists=True)
HELM = Tool("Helm", folds=True)
KAPP = Tool("kapp")
KLUCTL = Tool("kluctl", folds=True, off=frozenset({"false", "f", "0"}))
CLI = Tool("cli-utils")
FLEET = Tool("Fleet", labels=True)

_ANNEAL = "anneal.dev/"
_KS, _ARGO, _KAPP, _KLUCTL = "kustomize.toolkit.fluxcd.io/", "argocd.argoproj.io/", "kapp.k14s.io/", "kluctl.io/"
_CONFIG, _LIFECYCLE = "config.kubernetes.io/", "client.lifecycle.config.k8s.io/"
_GIT, _LIVE, _BOTH = Side.GIT, Side.LIVE, Side.BOTH
_KEEP, _LEAVE, _MERGE, _RECREATE = Effect.KEEP, Effect.LEAVE, Effect.MERGE, Effect.RECREATE
_PROTECT, _REFUSE, _IGNORE = Effect.PROTECT, Effect.REFUSE, Effect.IGNORE
_SYNC, _DRIFT = _ARGO + "sync-options", "helm.toolkit.fluxcd.io/driftDetection"
_TRUE = ("true", "t", "1")
_BOOLEANS = ("true", "false")


def _either(*options: str) -> tuple[str, ...]:
    return tuple(f"{option}={value}" for option in options for value in _BOOLEANS)


_APPLICATION_OPTIONS = (
    *_either("CreateNamespace", "ApplyOutOfSyncOnly", "RespectIgnoreDifferences", "FailOnSharedResource", "ClientSideApplyMigration"),
    *(f"PrunePropagationPolicy={policy}" for policy in ("foreground", "background", "orphan")),
)
_COMPARE_OPTIONS = ("IgnoreExtraneous", *_either("ServerSideDiff", "IncludeMutationWebhook"))

_CREATED = "created where it is missing, then never updated; pruned once git drops it"
_LEFT = "left alone: neither applied nor deleted, nor waited for"
_LEFT_BY_GIT = _LEFT + ", as long as git declares it"
_ANEW = "may be made anew where an immutable field changes, as by `anneal.dev/recreate: allow`"
_UNDELETED = "never deleted"
_ALLOWED = "a Namespace, CRD or volume may be deleted, in an exclusive namespace also what an operator takes apart"
_UNWRITTEN = "no variables of `postBuild` are written into it"
_DEFAULT = "what an apply does anyway"
_APPLICATION = "an option of an Application; on an object it means nothing"
_SHOWN = "changes only what that tool shows"
_WAITS = "the target's `wait` decides what is waited for"
_COMPANION = "means nothing by itself"
ANEW = 'annotate it anneal.dev/recreate: "allow", for immutable fields, or remove the annotation'
ACT = "annotate it argocd.argoproj.io/hook: Sync, an act that each rollout deletes and runs again"
"""The way out, before `ANEW`, of what runs to its own end: of anything else a hook would delete what serves."""
_GONE = "remove the object from git: it is pruned then; or let a step of a Rollout delete it: action: DeleteIfExist"
DELETING = frozenset({ANEW, _GONE})  # the ways out that delete an object
DROP = "remove the annotation: what the object holds can only be moved by hand, to one of another name"
_RULES = "write config.kubernetes.io/depends-on: [group/]kind/[namespace/]name instead"
_BY_CONTENT = "remove it, and name the object by its content, so that each content is an object of its own"
_HOOKS = "write argocd.argoproj.io/hook: PreSync or PostSync"
_POINTERS = "name the fields that others own: anneal.dev/ignore: /spec/replicas"

TABLE = (
    AnnotationRow(ANNEAL, _ANNEAL + "prune", ("disabled",), _LIVE, _PROTECT, _UNDELETED),
    AnnotationRow(ANNEAL, _ANNEAL + "prune", ("allow",), _LIVE, Effect.ELSEWHERE, _ALLOWED),
    AnnotationRow(ANNEAL, _ANNEAL + "recreate", ("allow",), _GIT, _RECREATE, "may be made anew where an immutable field changes"),
    AnnotationRow(
        ANNEAL, _ANNEAL + "ignore", ("/*",), _GIT, Effect.ELSEWHERE, "JSON pointers to fields that others may own, separated by commas"
    ),
    AnnotationRow(ANNEAL, _ANNEAL + "substitute", ("disabled",), _GIT, Effect.ELSEWHERE, _UNWRITTEN),
    AnnotationRow(FLUX, _KS + "ssa", ("Override",), _GIT, _IGNORE, _DEFAULT),
    AnnotationRow(FLUX, _KS + "ssa", ("Merge",), _BOTH, _MERGE, "the declared fields are applied; what others wrote beside them stays"),
    AnnotationRow(FLUX, _KS + "ssa", ("IfNotPresent",), _GIT, _KEEP, _CREATED),
    AnnotationRow(FLUX, _KS + "ssa", ("Ignore",), _BOTH, _LEAVE, _LEFT),
    AnnotationRow(FLUX, _KS + "reconcile", ("disabled",), _BOTH, _LEAVE, _LEFT),
    AnnotationRow(FLUX, _KS + "reconcile", ("enabled",), _BOTH, _IGNORE, _DEFAULT),
    AnnotationRow(FLUX, _KS + "force", ("enabled",), _BOTH, _RECREATE, _ANEW),
    AnnotationRow(FLUX, _KS + "force", ("disabled",), _BOTH, _IGNORE, _DEFAULT),
    AnnotationRow(FLUX, _KS + "prune", ("disabled",), _LIVE, _PROTECT, _UNDELETED),
    AnnotationRow(FLUX, _KS + "prune", ("enabled",), _LIVE, _IGNORE, _DEFAULT),
    AnnotationRow(FLUX, _KS + "substitute", ("disabled",), _GIT, Effect.ELSEWHERE, _UNWRITTEN),
    AnnotationRow(FLUX, _KS + "substitute", ("enabled",), _GIT, _IGNORE, "what `postBuild` does anyway"),
    AnnotationRow(FLUX, _KS + "decrypt", ("disabled",), _GIT, Effect.ELSEWHERE, "an encrypted file that a Secret holds stays as it is"),
    AnnotationRow(FLUX, _KS + "decrypt", ("enabled",), _GIT, _IGNORE, "what SOPS has encrypted is decrypted or refused anyway"),
    AnnotationRow(FLUX, _DRIFT, ("disabled",), _GIT, _REFUSE, "a declared field that drifts is corrected", _POINTERS),
    AnnotationRow(FLUX, _DRIFT, ("enabled",), _GIT, _IGNORE, _DEFAULT),
    AnnotationRow(ARGO, _SYNC, ("Prune=false", "Prune=confirm"), _LIVE, _PROTECT, _UNDELETED),
    AnnotationRow(ARGO, _SYNC, ("Delete=false", "Delete=confirm"), _LIVE, _PROTECT, _UNDELETED),
    AnnotationRow(ARGO, _SYNC, ("Prune=true", "Delete=true"), _LIVE, _IGNORE, _DEFAULT),
    AnnotationRow(ARGO, _SYNC, _either("PruneLast"), _LIVE, _IGNORE, "pruning always comes last"),
    AnnotationRow(ARGO, _SYNC, ("Force=true,Replace=true",), _GIT, _REFUSE, "each sync would delete it and create it anew", ANEW),
    AnnotationRow(ARGO, _SYNC, ("Force=true",), _BOTH, _RECREATE, _ANEW),
    AnnotationRow(
        ARGO,
        _SYNC,
        ("Replace=true",),
        _BOTH,
        _IGNORE,
        "applied like any other: a server-side apply has no limit of size, and what others wrote stays",
    ),
    AnnotationRow(ARGO, _SYNC, ("Force=false", "Replace=false"), _BOTH, _IGNORE, _DEFAULT),
    AnnotationRow(ARGO, _SYNC, _either("ServerSideApply"), _GIT, _IGNORE, "an apply is always server-side"),
    AnnotationRow(
        ARGO, _SYNC, ("Validate=false", "Validate=true"), _GIT, _IGNORE, "the server checks it all the same, before the first write"
    ),
    AnnotationRow(
        ARGO,
        _SYNC,
        _either("SkipDryRunOnMissingResource"),
        _GIT,
        _IGNORE,
        "a kind that is neither served nor declared beside it is refused all the same",
    ),
    AnnotationRow(ARGO, _SYNC, _APPLICATION_OPTIONS, _GIT, _IGNORE, _APPLICATION),
    AnnotationRow(ARGO, _ARGO + "compare-options", _COMPARE_OPTIONS, _GIT, _IGNORE, _SHOWN),
    AnnotationRow(ARGO, _ARGO + "ignore-healthcheck", _BOOLEANS, _LIVE, _IGNORE, _WAITS),
    AnnotationRow(ARGO, _ARGO + "ignore-restart-policy", _BOOLEANS, _LIVE, _IGNORE, _WAITS),
    AnnotationRow(ARGO, _ARGO + "ignore-resource-updates", _BOOLEANS, _LIVE, _IGNORE, _SHOWN),
    AnnotationRow(ARGO, _ARGO + "skip-reconcile", _BOOLEANS, _LIVE, _IGNORE, _APPLICATION),
    AnnotationRow(HELM, "helm.sh/resource-policy", ("keep",), _LIVE, _PROTECT, _UNDELETED),
    AnnotationRow(KAPP, _KAPP + "create-strategy", ("fallback-on-update", "fallback-on-update-or-noop"), _GIT, _IGNORE, _DEFAULT),
    AnnotationRow(KAPP, _KAPP + "update-strategy", ("skip",), _GIT, _KEEP, _CREATED),
    AnnotationRow(KAPP, _KAPP + "update-strategy", ("fallback-on-replace",), _GIT, _RECREATE, _ANEW),
    AnnotationRow(
        KAPP, _KAPP + "update-strategy", ("always-replace",), _GIT, _REFUSE, "each change would delete it and create it anew", ANEW
    ),
    AnnotationRow(KAPP, _KAPP + "delete-strategy", ("orphan",), _LIVE, _PROTECT, _UNDELETED),
    AnnotationRow(KAPP, _KAPP + "exists", (ANY,), _GIT, _LEAVE, _LEFT_BY_GIT),
    AnnotationRow(KAPP, _KAPP + "noop", (ANY,), _GIT, _LEAVE, _LEFT_BY_GIT),
    AnnotationRow(KAPP, _KAPP + "versioned", (ANY,), _GIT, _REFUSE, "no copy is made under a new name at each change", _BY_CONTENT),
    AnnotationRow(KAPP, _KAPP + "versioned-*", (ANY,), _GIT, _IGNORE, _COMPANION),
    AnnotationRow(KAPP, _KAPP + "num-versions", (ANY,), _GIT, _IGNORE, _COMPANION),
    AnnotationRow(KAPP, _KAPP + "renew-duration", (ANY,), _GIT, _REFUSE, "nothing is renewed by the clock", "remove it"),
    AnnotationRow(KAPP, _KAPP + "nonce", (ANY,), _GIT, _REFUSE, "what equals git isn't written again", ANEW),
    AnnotationRow(KAPP, _KAPP + "change-rule*", (ANY,), _GIT, _REFUSE, "rules of order are not read", _RULES),
    AnnotationRow(KAPP, _KAPP + "change-group*", (ANY,), _GIT, _IGNORE, _COMPANION),
    AnnotationRow(KAPP, _KAPP + "disable-wait", (ANY,), _GIT, _IGNORE, _WAITS),
    AnnotationRow(KAPP, _KAPP + "disable-associated-resources-wait", (ANY,), _GIT, _IGNORE, _WAITS),
    AnnotationRow(KAPP, _KAPP + "apps-v1-deployment-wait-minimum-replicas-available", (ANY,), _GIT, _IGNORE, _WAITS),
    AnnotationRow(KLUCTL, _KLUCTL + "ignore", _TRUE, _GIT, _LEAVE, _LEFT_BY_GIT),
    AnnotationRow(KLUCTL, _KLUCTL + "delete", _TRUE, _GIT, _REFUSE, "what git declares isn't deleted", _GONE),
    AnnotationRow(KLUCTL, _KLUCTL + "force-apply*", (ANY,), _GIT, _IGNORE, "an apply takes every declared field"),
    AnnotationRow(KLUCTL, _KLUCTL + "ignore-conflicts*", (ANY,), _GIT, _REFUSE, "an apply takes every declared field", _POINTERS),
    AnnotationRow(KLUCTL, _KLUCTL + "skip-delete", _TRUE, _LIVE, _PROTECT, _UNDELETED),
    AnnotationRow(KLUCTL, _KLUCTL + "skip-delete-if-tags", _TRUE, _LIVE, _IGNORE, _COMPANION),
    AnnotationRow(KLUCTL, _KLUCTL + "force-managed", _TRUE, _LIVE, _IGNORE, "what has an owner reference isn't pruned"),
    AnnotationRow(KLUCTL, _KLUCTL + "hook", (ANY,), _GIT, _REFUSE, "hooks of kluctl are not read", _HOOKS),
    AnnotationRow(KLUCTL, _KLUCTL + "hook-*", (ANY,), _GIT, _IGNORE, _COMPANION),
    AnnotationRow(KLUCTL, _KLUCTL + "wait-readiness", (ANY,), _GIT, _IGNORE, _WAITS),
    AnnotationRow(KLUCTL, _KLUCTL + "is-ready", (ANY,), _GIT, _IGNORE, _WAITS),
    AnnotationRow(KLUCTL, _KLUCTL + "diff-name", (ANY,), _GIT, _IGNORE, _SHOWN),
    AnnotationRow(KLUCTL, _KLUCTL + "ignore-diff*", (ANY,), _GIT, _IGNORE, _SHOWN),
    AnnotationRow(KLUCTL, _KLUCTL + "validate-ignore", (ANY,), _GIT, _IGNORE, _SHOWN),
    AnnotationRow(CLI, _LIFECYCLE + "mutation", ("ignore",), _GIT, _KEEP, _CREATED),
    AnnotationRow(CLI, _LIFECYCLE + "deletion", ("detach",), _LIVE, _PROTECT, _UNDELETED),
    AnnotationRow(CLI, "cli-utils.sigs.k8s.io/on-remove", ("keep",), _LIVE, _PROTECT, _UNDELETED),
    AnnotationRow(CLI, _CONFIG + "local-config", ("false",), _GIT, _IGNORE, _DEFAULT),
    AnnotationRow(CLI, _CONFIG + "local-config", (ANY,), _GIT, _LEAVE, _LEFT_BY_GIT + "; its kind needn't be served"),
    AnnotationRow(
        CLI, _CONFIG + "apply-time-mutation", (ANY,), _GIT, _REFUSE, "no value is filled in from live objects", "write the value itself"
    ),
    AnnotationRow(FLEET, "objectset.rio.cattle.io/prune", ("false",), _LIVE, _PROTECT, _UNDELETED),
    AnnotationRow(FLEET, "objectset.rio.cattle.io/prune", ("true",), _LIVE, _IGNORE, _DEFAULT),
)
