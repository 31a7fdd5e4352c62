"""The cluster as the demo looks at it: through kubectl alone, never through Anneal's own code."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.demo.narration import DemoFailed

PART_OF = "applyset.kubernetes.io/part-of"
KINDS = (
    "namespaces",
    "customresourcedefinitions",
    "configmaps",
    "secrets",
    "serviceaccounts",
    "services",
    "deployments.apps",
    "statefulsets.apps",
    "jobs.batch",
    "roles",
    "rolebindings",
    "ingresses.networking.k8s.io",
    "networkpolicies.networking.k8s.io",
    "poddisruptionbudgets.policy",
)


@dataclass(frozen=True, slots=True)
class Names:
    """What the demo's objects are called in this cluster. `prefix` is empty in a cluster of the demo's own."""

    prefix: str = ""

    @property
    def front(self) -> str:
        """Namespace of what customers see."""
        return f"{self.prefix}shop-front"

    @property
    def back(self) -> str:
        """Namespace of data and orders."""
        return f"{self.prefix}shop-back"

    @property
    def by_hand(self) -> str:
        """Namespace in which kubectl alone is shown."""
        return f"{self.prefix}by-hand"

    @property
    def state(self) -> str:
        """Namespace of Anneal's records."""
        return f"{self.prefix}anneal-system"

    @property
    def group(self) -> str:
        """API group of the shop's own kind."""
        return f"{self.prefix}shop.example.com"

    @property
    def crd(self) -> str:
        """The shop's CustomResourceDefinition."""
        return f"flashsales.{self.group}"

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Every namespace that the demo makes."""
        return (self.front, self.back, self.by_hand, self.state)

    def fitted(self, text: str) -> str:
        """Return a manifest of the sample shop with this cluster's names."""
        for name in ("shop-front", "shop-back", "shop.example.com"):
            text = text.replace(name, self.prefix + name)
        return text


@dataclass(frozen=True, slots=True)
class Thing:
    """One live object: `content` is all of it but what the cluster's own controllers write."""

    uid: str
    version: str
    content: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Kubectl:
    """kubectl with one kubeconfig; `directory` is where its commands run and its cache lies."""

    program: Path
    kubeconfig: Path
    directory: Path

    def environment(self) -> dict[str, str]:
        """Return the environment that aims it."""
        return {**os.environ, "KUBECONFIG": str(self.kubeconfig), "KUBECACHEDIR": str(self.directory / "kubectl-cache")}

    def tried(self, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command that may fail."""
        command = [str(self.program), *arguments]
        return subprocess.run(
            command, input=given, capture_output=True, text=True, check=False, cwd=self.directory, env=self.environment(), timeout=180
        )

    def run(self, *arguments: str, given: str | None = None) -> str:
        """Run a command and return what it printed. Raises DemoFailed."""
        done = self.tried(*arguments, given=given)
        if done.returncode:
            raise DemoFailed(f"kubectl {' '.join(arguments)}: {done.stderr.strip()}")
        return done.stdout

    def get(self, *arguments: str) -> dict[str, Any]:
        """Return what `kubectl get` finds, parsed."""
        found: dict[str, Any] = json.loads(self.run("get", *arguments, "-o", "json"))
        return found

    def applyset(self, names: Names, target: str) -> str:
        """Return the id that Anneal labels a target's objects with."""
        record = self.get("configmap", f"anneal-{target}", "-n", names.state)
        return str(record["metadata"]["labels"]["applyset.kubernetes.io/id"])

    def members(self, names: Names, applyset: str) -> dict[str, Thing]:
        """Return every live object with that id, by `Kind/namespace/name`."""
        kinds = ",".join((*KINDS, names.crd))
        return dict(map(_thing, self.get(kinds, "-A", "-l", f"{PART_OF}={applyset}")["items"]))

    def record(self, names: Names) -> tuple[Any, ...]:
        """Return what runs leave in the target's record, and its Lease; not health and its soaks, written as what lives comes and goes."""
        record, lease = self.get("configmap/anneal-shop", "lease/anneal-shop", "-n", names.state)["items"]
        parts = record.get("data", {}) | record.get("binaryData", {})
        kept = {key: value for key, value in parts.items() if not key.startswith(("health.", "soaks."))}
        return kept, lease["metadata"]["resourceVersion"]

    def recorded_commit(self, names: Names, target: str) -> str:
        """Return the commit that a target's record says is applied."""
        record = self.get("configmap", f"anneal-{target}", "-n", names.state)
        return str(record["data"]["commit"])

    def exists(self, *arguments: str) -> bool:
        """Whether there is such an object."""
        return bool(self.run("get", *arguments, "--ignore-not-found", "-o", "name").strip())


def _thing(item: Mapping[str, Any]) -> tuple[str, Thing]:
    metadata = dict(item["metadata"])
    name = "/".join(part for part in (item["kind"], metadata.get("namespace"), metadata["name"]) if part)
    uid, version = metadata["uid"], metadata.pop("resourceVersion")
    metadata.pop("managedFields", None)
    annotations = metadata.get("annotations", {})
    metadata["annotations"] = {key: value for key, value in annotations.items() if not key.startswith("deployment.kubernetes.io/")}
    content = {**item, "metadata": metadata, "status": None}
    return name, Thing(uid, version, json.dumps(content, sort_keys=True))


def differing(before: Mapping[str, Thing], after: Mapping[str, Thing]) -> list[str]:
    """Return the objects that came, went or differ in more than their status."""
    names = sorted({*before, *after})
    return [name for name in names if _essence(before.get(name)) != _essence(after.get(name))]


def _essence(thing: Thing | None) -> tuple[str, str] | None:
    return (thing.uid, thing.content) if thing else None


def refuse_taken(kubectl: Kubectl, names: Names) -> None:
    """Refuse a cluster in which one of the demo's names is taken: what the demo removes at its end must be its own.

    Raises:
        DemoFailed: naming what is there.

    """
    taken = [name for name in names.namespaces if kubectl.exists("namespace", name)]
    taken += [names.crd] if kubectl.exists("crd", names.crd) else []
    if taken:
        raise DemoFailed(f"{', '.join(taken)} is in the cluster already; the demo takes over nothing")


def clean(kubectl: Kubectl, names: Names) -> list[str]:
    """Delete the demo's namespaces and CustomResourceDefinition and wait until they are gone; return what couldn't be deleted."""
    namespaces = ("namespace", *names.namespaces)
    kubectl.tried("delete", *namespaces, "--ignore-not-found", "--wait=false")  # they go while the other is waited for
    deletions: Sequence[tuple[str, ...]] = (("crd", names.crd), namespaces)
    left = []
    for deletion in deletions:
        done = kubectl.tried("delete", *deletion, "--ignore-not-found", "--wait=true", "--timeout=120s")
        if done.returncode:
            left.append(f"kubectl delete {' '.join(deletion)}: {done.stderr.strip()}")
    return left
