"""Custom resources in wide use, each by what its own controllers write; an entry of `healthCheckExprs` stands above any of them.

Where a controller tries again, the object is in progress and says why; failed is only what its controller has given up.
"""

from __future__ import annotations

from collections.abc import Callable

from handler.health.kinds.reading import HEALTHY, Condition, Object, as_said, condition, count, fails, number, said, stands, waits
from handler.model.health import Health
from handler.model.manifest import at, items_at
from handler.model.names import GroupKind

_SILENT = "its controller has said nothing yet"
_REVISIONS = ("rollout.argoproj.io/workload-generation", "workloadObservedGeneration")


def ready(live: Object, _now: float) -> Health:
    """Ready; its controller tries again whatever it fails by."""
    return _reached(condition(live, "Ready"))


# --- cert-manager
def certificate(live: Object, _now: float) -> Health:
    """Ready and not being issued anew. After a failed issuance cert-manager waits an hour and more before the next."""
    issuing, found = condition(live, "Issuing"), condition(live, "Ready")
    if issuing.true:
        return waits(issuing.said or "is being issued")
    if issuing.false and issuing.reason == "Failed" and not found.true:
        return fails(issuing.said)
    return _reached(found)


def certificate_request(live: Object, _now: float) -> Health:
    """Ready; what was denied, invalid or has failed stays so."""
    found = condition(live, "Ready")
    for kind in ("InvalidRequest", "Denied"):
        if condition(live, kind).true:
            return fails(condition(live, kind).said or kind)
    return fails(found.said) if found.false and found.reason in ("Failed", "Denied") else _reached(found)


# --- Crossplane
def package(live: Object, _now: float) -> Health:
    """A Provider, Function or Configuration is installed and healthy."""
    return _all(live, "Installed", "Healthy")


def composite_definition(live: Object, _now: float) -> Health:
    """A CompositeResourceDefinition is served, and its claims where it offers any."""
    offered = condition(live, "Offered")
    return _all(live, "Established", "Offered") if offered.status else _all(live, "Established")


def managed(live: Object, _now: float) -> Health:
    """A managed resource, composite or claim: what was asked has been sent on (Synced), and is there (Ready)."""
    synced, found = condition(live, "Synced"), condition(live, "Ready")
    if synced.reason == "ReconcilePaused" and found.true:
        return stands("is paused")
    last = condition(live, "LastAsyncOperation")
    return waits(last.said) if last.false and last.said else _all(live, "Synced", "Ready")


# --- Argo Rollouts
def rollout(live: Object, _now: float) -> Health:
    """By its phase, once its controller, which writes generations as text, and that of its workload have been looked at."""
    unseen = _rollout_unseen(live)
    phase, message = at(live, "status", "phase"), as_said(at(live, "status", "message"))
    if unseen or phase == "Healthy":
        return waits(unseen) if unseen else HEALTHY
    if phase == "Degraded":
        return fails(message or "is degraded")
    if phase == "Paused":
        return stands("is paused") if at(live, "spec", "paused") is True else waits(": ".join(filter(None, ("is paused", message))))
    return waits(message or _SILENT)


def _rollout_unseen(live: Object) -> str:
    generation, observed = number(at(live, "metadata", "generation")), at(live, "status", "observedGeneration")
    wanted, seen = at(live, "metadata", "annotations", _REVISIONS[0]), at(live, "status", _REVISIONS[1])
    if isinstance(observed, str) and observed.isdecimal() and generation is not None and int(observed) < generation:
        return f"its controller hasn't seen the newest change yet (generation {generation}, seen: {observed})"
    stale = at(live, "spec", "workloadRef") and wanted is not None and str(wanted) != str(seen)
    return "its controller hasn't seen the newest change of its workload yet" if stale else ""


def analysis(live: Object, _now: float) -> Health:
    """An AnalysisRun or Experiment has ended, and well."""
    return _by_phase(live, ("phase",), "message", good="Successful", bad=("Failed", "Error", "Inconclusive"))


# --- Cluster API
def capi(live: Object, _now: float) -> Health:
    """A Cluster or Machine is available (v1beta2) or ready (v1beta1)."""
    early = _capi_early(live)
    available = condition(live, "Available")
    return early or _reached(available if available.status else condition(live, "Ready"))


def capi_replicas(live: Object, _now: float) -> Health:
    """A MachineDeployment or KubeadmControlPlane: all its machines are of the newest template, and available."""
    early, wanted = _capi_early(live), count(live, "spec", "replicas", missing=1)
    updated = number(at(live, "status", "upToDateReplicas"))
    updated = count(live, "status", "updatedReplicas") if updated is None else updated
    if early or updated < wanted:
        return early or waits(f"{updated} of {wanted} machines updated")
    if count(live, "status", "replicas") > wanted:
        return waits(f"{count(live, 'status', 'replicas') - wanted} old machines left")
    up = number(at(live, "status", "availableReplicas"))
    up = count(live, "status", "readyReplicas") if up is None else up
    return waits(f"{up} of {wanted} machines available") if up < wanted else HEALTHY


def _capi_early(live: Object) -> Health | None:
    message = as_said(at(live, "status", "failureMessage")) or as_said(at(live, "status", "failureReason"))
    if message or at(live, "status", "phase") == "Failed":
        return fails(message or condition(live, "Ready").said or "has failed")
    return stands("is paused") if at(live, "spec", "paused") is True else None


# --- Knative
def knative(live: Object, _now: float) -> Health:
    """By Ready: False is final by Knative's own convention, Unknown goes on."""
    found = condition(live, "Ready")
    return fails(found.said or "isn't ready") if found.false else _reached(found)


# --- CloudNativePG
_LOST = ("Cluster is unrecoverable and needs manual intervention",)


def postgres(live: Object, _now: float) -> Health:
    """By its phase, which is a sentence."""
    if condition(live, "cnpg.io/hibernation").true:
        return stands("hibernates")
    return _by_phase(live, ("phase",), "phaseReason", good="Cluster in healthy state", bad=_LOST)


def backup(live: Object, _now: float) -> Health:
    """It has ended, and well."""
    return _by_phase(live, ("phase",), "error", good="completed", bad=("failed",))


# --- others of Flux' cheatsheet
def sealed_secret(live: Object, _now: float) -> Health:
    """It is unsealed; what no key opens stays closed."""
    synced = condition(live, "Synced")
    return fails(synced.said or "isn't synced") if synced.false else _reached(synced)


def ceph_cluster(live: Object, _now: float) -> Health:
    """By Ceph's own word."""
    return _by_phase(live, ("ceph", "health"), "message", good="HEALTH_OK", bad=("HEALTH_ERR",))


def _by_phase(live: Object, phase: tuple[str, ...], message: str, *, good: str, bad: tuple[str, ...]) -> Health:
    word = said(at(live, "status", *phase))
    words = ": ".join(filter(None, (as_said(word), as_said(at(live, "status", message)))))
    return HEALTHY if word == good else fails(words) if word in bad else waits(words or _SILENT)


def _reached(found: Condition) -> Health:
    if found.true:
        return HEALTHY
    return waits(found.said or f"{found.type} is {as_said(found.status)}") if found.status else waits(_SILENT)


def _all(live: Object, *kinds: str) -> Health:
    found = sorted((condition(live, kind) for kind in kinds), key=lambda each: not each.false)
    return next((_reached(each) for each in found if not each.true), HEALTHY)


_FLUX = "https://fluxcd.io/flux/cheatsheets/cel-healthchecks/"
_CERT_MANAGER = "https://cert-manager.io/docs/reference/api-docs/"
_CROSSPLANE = "https://docs.crossplane.io/latest/guides/crossplane-with-argo-cd/"
_CAPI = "https://cluster-api.sigs.k8s.io/developer/providers/contracts/overview"
_KNATIVE = "https://knative.dev/docs/serving/reference/serving-api/"
_ARGO = "https://argo-rollouts.readthedocs.io/en/stable/features/specification/"
_CNPG = "https://cloudnative-pg.io/documentation/current/cloudnative-pg.v1/"

Rule = Callable[[Object, float], Health]

READY: dict[GroupKind, tuple[Rule, str]] = {
    GroupKind("cert-manager.io", "Certificate"): (certificate, _CERT_MANAGER),
    GroupKind("cert-manager.io", "CertificateRequest"): (certificate_request, _CERT_MANAGER),
    GroupKind("cert-manager.io", "Issuer"): (ready, _CERT_MANAGER),
    GroupKind("cert-manager.io", "ClusterIssuer"): (ready, _CERT_MANAGER),
    GroupKind("pkg.crossplane.io", "Provider"): (package, _CROSSPLANE),
    GroupKind("pkg.crossplane.io", "Function"): (package, _CROSSPLANE),
    GroupKind("pkg.crossplane.io", "Configuration"): (package, _CROSSPLANE),
    GroupKind("apiextensions.crossplane.io", "CompositeResourceDefinition"): (composite_definition, _CROSSPLANE),
    GroupKind("argoproj.io", "Rollout"): (rollout, _ARGO),
    GroupKind("argoproj.io", "AnalysisRun"): (analysis, _ARGO),
    GroupKind("argoproj.io", "Experiment"): (analysis, _ARGO),
    GroupKind("cluster.x-k8s.io", "Cluster"): (capi, _CAPI),
    GroupKind("cluster.x-k8s.io", "Machine"): (capi, _CAPI),
    GroupKind("cluster.x-k8s.io", "MachineDeployment"): (capi_replicas, _CAPI),
    GroupKind("controlplane.cluster.x-k8s.io", "KubeadmControlPlane"): (capi_replicas, _CAPI),
    GroupKind("serving.knative.dev", "Service"): (knative, _KNATIVE),
    GroupKind("serving.knative.dev", "Route"): (knative, _KNATIVE),
    GroupKind("serving.knative.dev", "Configuration"): (knative, _KNATIVE),
    GroupKind("serving.knative.dev", "Revision"): (knative, _KNATIVE),
    GroupKind("postgresql.cnpg.io", "Cluster"): (postgres, _CNPG),
    GroupKind("postgresql.cnpg.io", "Backup"): (backup, _CNPG),
    GroupKind("external-secrets.io", "ExternalSecret"): (ready, _FLUX),
    GroupKind("external-secrets.io", "SecretStore"): (ready, _FLUX),
    GroupKind("external-secrets.io", "ClusterSecretStore"): (ready, _FLUX),
    GroupKind("bitnami.com", "SealedSecret"): (sealed_secret, _FLUX),
    GroupKind("keda.sh", "ScaledObject"): (ready, _FLUX),
    GroupKind("ceph.rook.io", "CephCluster"): (ceph_cluster, _FLUX),
}
"""Kind -> its function, and where its status is documented."""

_CROSSPLANES = (".crossplane.io", ".upbound.io")


def rule(live: Object, kind: GroupKind) -> Rule | None:
    """Return the function of an object's kind: its row, or Crossplane's, by group or by the two conditions that all its resources have."""
    if kind in READY:
        return READY[kind][0]
    ours = f".{kind.group}".endswith(_CROSSPLANES)
    types = {at(each, "type") for each in items_at(live, "status", "conditions") if isinstance(at(each, "type"), str)}
    return managed if {"Synced", "Ready"} <= types or (ours and types & {"Synced", "Ready"}) else None
