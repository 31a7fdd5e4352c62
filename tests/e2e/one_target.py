"""A shop: one repository, one target, namespaces of its own on the shared cluster; and the questions that tests ask about them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from handler.app.build import Handler, Options
from handler.config.secrets import RUNS, resolve_all
from handler.config.settings import Settings, Target
from handler.model.errors import Problem
from handler.model.event import Job
from handler.model.names import IDENTITY, PART_OF, applyset_id, identity_of, state_name
from handler.model.result import Outcome, Result
from handler.render.sandbox import Sandbox
from handler.state.record import State, TargetHealth
from infra.githost import Work
from tests.e2e.documents import Document
from tests.e2e.run_process import Child
from tests.kubectl import COLLECTIONS, Kubectl
from tests.patience import until

STATES = "anneal-e2e"
PATH = "deploy"
_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
SCOPED = ("Namespace", "CustomResourceDefinition.apiextensions.k8s.io", "ValidatingWebhookConfiguration.admissionregistration.k8s.io")
MORTAL = 6.0
"""Seconds of the Lease of a worker that is paused: a request for it may take a third of that. The others have the default."""
DONE = (Outcome.APPLIED, Outcome.UNCHANGED)
_REVISION = "deployment.kubernetes.io/revision"
"""What the Deployment controller annotates."""


@dataclass
class Shop:
    """`name` is the target's, its main namespace's and the prefix of all that a test makes."""

    name: str
    work: Work
    kubectl: Kubectl
    sandbox: Sandbox
    target: Target
    lease: float = 15.0
    documents: tuple[Document, ...] = ()
    made: set[str] = field(default_factory=set)
    """Namespaces made by hand."""
    settings: Settings = field(init=False)
    handler: Handler = field(init=False)

    def __post_init__(self) -> None:
        self.configure()

    @property
    def group(self) -> str:
        """An API group of the shop's own."""
        return f"{self.name}.example.com"

    @property
    def applyset(self) -> str:
        return applyset_id(state_name(self.name), STATES)

    @property
    def head(self) -> str:
        """What the branch names on the host."""
        return self.work.git("ls-remote", "origin", "refs/heads/main").split()[0]

    # --- the handler
    def configure(self, **changes: Any) -> None:
        """Change the target's settings, and begin with a fresh handler, as after a restart."""
        self.target = replace(self.target, **changes)
        self.settings = Settings(targets=(self.target,), state_namespace=STATES, lease_duration=self.lease)
        self.handler = self.handler_at(self.kubectl.kubeconfig)

    def handler_at(self, kubeconfig: Path, **options: Any) -> Handler:
        """Return a handler that reaches the cluster in its own way."""
        secrets = resolve_all(self.settings, os.environ, needs=RUNS)
        return Handler(self.settings, secrets, self.sandbox, os.environ, Options(kubeconfig=str(kubeconfig), **options))

    def job(self, trigger: str = "push", **fields: Any) -> Job:
        return Job(self.name, trigger, **fields)

    def run(self, trigger: str = "push", **fields: Any) -> Result:
        """Run the target once, in this process; as often as it asks to when the host doesn't show a commit yet."""
        job = self.job(trigger, **fields)
        while (result := self.handler.run(job)).outcome is Outcome.LAGGING:
            job = replace(job, looks=job.looks + 1)
        return result

    def applied(self, trigger: str = "push", **fields: Any) -> Result:
        """Run the target; it must end applied."""
        result = self.run(trigger, **fields)
        assert result.outcome is Outcome.APPLIED, told(result)
        return result

    def child(self, kubeconfig: Path | None = None) -> Child:
        """Start a process that waits for its job."""
        return Child.start(self.settings, str(kubeconfig or self.kubectl.kubeconfig))

    # --- git
    def declare(self, *documents: Document) -> str:
        """Make these documents the whole of the path, one file each, and commit; return the commit."""
        shutil.rmtree(self.work.directory / PATH, ignore_errors=True)
        for document in documents:
            name = str(identity_of(document)).replace("/", "-")
            self.work.write(f"{PATH}/{name}.yaml", json.dumps(document, indent=1))
        self.documents = documents
        return self.work.commit(f"{len(documents)} documents")

    def push(self, *documents: Document, force: bool = False) -> str:
        """Declare these documents and push."""
        sha = self.declare(*documents)
        self.work.push(force)
        return sha

    # --- the cluster
    def close(self) -> None:
        """Delete what is left of the shop, without a wait for it."""
        self.kubectl.leave_namespaces(*{self.name, f"{self.name}-jobs", *self.made, *self.target.namespaces} - {"*"})
        self.kubectl.ask("DELETE", f"{_CRDS}/offers.{self.group}")
        self.kubectl.ask("DELETE", f"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/{self.name}")

    def create_namespace(self, name: str = "") -> str:
        """Make a namespace by hand: the main one unless another is named."""
        self.kubectl.create_namespace(name or self.name)
        self.made.add(name or self.name)
        return name or self.name

    def state(self) -> State:
        """Return the target's record."""
        state = self.handler.store(self.target).read().state
        assert state, "no state was recorded"
        return state

    def recorded(self) -> State:
        """Return the record as runs leave it: without health and soaks, which follow what lives."""
        return replace(self.state(), health=TargetHealth(), soaks=())

    def labelled(self) -> dict[str, Document]:
        """Return every live object with our label, by its identity."""
        selector = f"{PART_OF}={self.applyset}"
        found = self.kubectl.members(tuple(COLLECTIONS), selector)
        if any(document["kind"] == "Offer" for document in self.documents) or self.kubectl.ask("GET", f"{_CRDS}/offers.{self.group}"):
            found += self.kubectl("get", f"offers.{self.group}", "-A", "-l", selector, "--show-managed-fields")["items"]
        return {str(identity_of(item)): item for item in found}

    def live(self, document: Document) -> Document | None:
        """Return what lives under a document's name."""
        identity = identity_of(document)
        if (identity.group, identity.kind) in COLLECTIONS:
            root, plural = COLLECTIONS[identity.group, identity.kind]
            inside = f"/namespaces/{identity.namespace}" if identity.namespace else ""
            return self.kubectl.ask("GET", f"{root}{inside}/{plural}/{identity.name}")
        kind = f"{identity.kind}.{identity.group}" if identity.group else identity.kind
        place = ["-n", identity.namespace] if identity.namespace else []
        answer = self.kubectl.run("get", kind, identity.name, *place, "--ignore-not-found", "--show-managed-fields", "-o", "json")
        found: Document | None = json.loads(answer) if answer else None
        return found

    def versions(self, documents: Iterable[Document] | None = None) -> dict[str, tuple[str, str]]:
        """Return uid and version of live objects: each write of one changes its version, but for the status that its controller writes."""
        live = [self.live(document) for document in documents] if documents is not None else list(self.labelled().values())
        return {str(identity_of(item)): (item["metadata"]["uid"], version(item)) for item in live if item}

    def assert_converged(self, sha: str = "") -> None:
        """Live is what the head declares, no more and no less, and the record says so."""
        live = self.labelled()
        wanted = {str(identity_of(document)): document for document in self.documents}
        assert live.keys() == wanted.keys()
        wrong = {name: differences(document, live[name]) for name, document in wanted.items()}
        assert not any(wrong.values()), wrong
        state = self.state()
        assert (state.commit, state.attempt) == (sha or self.head, None)
        assert {str(identity) for identity in state.declared} == wanted.keys()


def told(result: Result) -> str:
    """Say how a run ended, for the message of an assertion."""
    return f"{result.outcome} {result.code}: {result.message} {result.counts}"


def way_out(problem: Problem) -> list[str]:
    """Return what the block to paste of a refusal would adopt."""
    target, _, block = problem.fix.partition(": ")
    assert target.startswith("add to target "), problem
    found = yaml.safe_load(block.partition("\n")[0].partition(";")[0])
    assert list(found) == ["adopt"]
    return list(found["adopt"])


def version(live: Document) -> str:
    """Return one value for an object as its writers left it; what controllers tell of it comes when it comes."""
    metadata = {key: value for key, value in live["metadata"].items() if key != "resourceVersion"}
    metadata["managedFields"] = [each for each in metadata.get("managedFields", ()) if each.get("subresource") != "status"]
    metadata["annotations"] = {key: value for key, value in metadata.get("annotations", {}).items() if key != _REVISION}
    known = {key: value for key, value in live.items() if key != "status"} | {"metadata": metadata}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()


def differences(declared: Any, live: Any, path: str = "") -> list[str]:
    """Return where live isn't as declared; `data` and the labels and annotations of others are compared in extent too."""
    if isinstance(declared, dict) and isinstance(live, dict):
        found = [place for key in declared for place in differences(declared[key], live.get(key), f"{path}/{key}")]
        extent = path in ("/data", "/metadata/labels", "/metadata/annotations")
        known = {*declared, PART_OF, IDENTITY, _REVISION}
        return found + [f"{path}/{key} is left over" for key in live if extent and key not in known]
    if isinstance(declared, list) and isinstance(live, list) and len(declared) == len(live):
        return [place for index, item in enumerate(declared) for place in differences(item, live[index], f"{path}/{index}")]
    return [] if declared == live else [f"{path}: {declared!r} is {live!r}"]


def outwaited(shop: Shop) -> Result:
    """Tick until no run of the shop ends as waiting, as functions do, and return the end of the last one."""
    return until(lambda: result if (result := shop.run("tick")).outcome is not Outcome.WAITING else None)
