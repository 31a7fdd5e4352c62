"""kubectl of the server's own version, for tests to look at a cluster, and change it, with another's eyes than Anneal's.

`ask`, and what is made of it, is for what a test does a hundred times: the API server's own bytes, over Anneal's connection.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import yaml

from handler.cluster.connect import ClusterConnection, connect
from handler.config.settings import Cluster
from tests.kubectl_requests import NAMESPACED, Asked, asked, documents
from tests.packing import SESSION
from tests.patience import PATIENCE, until

COLLECTIONS = {
    **NAMESPACED,
    ("", "Namespace"): ("/api/v1", "namespaces"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): (
        "/apis/admissionregistration.k8s.io/v1",
        "validatingwebhookconfigurations",
    ),
}
"""Group and kind -> the API's path and the resource, of what tests look at most."""
RUNNING = (
    *(("apps/v1", plural) for plural in ("deployments", "statefulsets", "daemonsets", "replicasets")),
    *(("batch/v1", plural) for plural in ("cronjobs", "jobs")),
    ("autoscaling/v2", "horizontalpodautoscalers"),
)
"""What makes Pods, or scales them."""
SHARED = {"default", "kube-system", "kube-public", "kube-node-lease"}
"""Namespaces of the cluster, where other tests have objects, too: what a test leaves there it deletes by name."""
IN_TIME = f"--timeout={PATIENCE:g}s"
"""How long a command that waits does."""
_NO_CONDITIONS = "status.conditions accessor error: <nil>"
"""How `kubectl wait` ends where it meets an object in the moment in which its conditions are null."""
_CONNECTIONS: dict[tuple[Path, bytes], ClusterConnection] = {}


@dataclass(frozen=True)
class Kubectl:
    """`kubectl("get", "cm", "-n", ns)` returns the parsed answer; `run` the text; `apply` hands documents over."""

    program: Path
    kubeconfig: Path

    def __call__(self, *arguments: str) -> Any:
        """Run a command that can print JSON and return it parsed."""
        return json.loads(self.run(*arguments, "-o", "json"))

    def has(self, kind: str, name: str, namespace: str) -> bool:
        """Tell whether there is such an object."""
        return bool(self.run("get", kind, name, "-n", namespace, "--ignore-not-found", "-o", "json"))

    def run(self, *arguments: str, given: str | None = None) -> str:
        """Run a command and return its output; it must succeed. What is one request is sent as one, without a start of kubectl."""
        plain = asked(arguments)
        if plain:
            return self._sent(plain)
        if arguments == ("create", "-f", "-") and given:
            return "".join(self._created(document) for document in documents(given))
        if arguments[0] == "wait" or arguments[:2] == ("rollout", "status"):
            arguments = (*arguments, IN_TIME)
        done = self.tried(*arguments, given=given)
        while arguments[0] == "wait" and _NO_CONDITIONS in done.stderr:
            done = self.tried(*arguments, given=given)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    def _sent(self, request: Asked) -> str:
        """Return what kubectl would print of the answer: without managedFields, each item with its kind."""
        root, plural = (request.root, request.plural) if request.plural else self._resource(request.kind)[:2]
        path = f"{root}/namespaces/{request.namespace}/{plural}{request.rest}{request.query}"
        found = self.ask(request.method, path, request.body, request.content)
        silent = "--ignore-not-found" in request.flags
        assert found or silent, f"{request.method} {path}: not found"
        if not found or (silent and found.get("items") == []):
            return ""
        for item in found.get("items", [found]) if "--show-managed-fields" not in request.flags else ():
            item["metadata"].pop("managedFields", None)
        return json.dumps({**found, "items": _items(found)} if "items" in found else found)

    def _created(self, document: Mapping[str, Any]) -> str:
        """Create an object as `kubectl create` does, and name it."""
        group, _, version = document["apiVersion"].rpartition("/")
        root, plural, namespaced = self._resource(f"{document['kind']}.{version}.{group}")
        place = f"/namespaces/{document['metadata'].get('namespace', 'default')}" if namespaced else ""
        path = f"{root}{place}/{plural}?fieldManager=kubectl-create&fieldValidation=Strict"
        assert self.ask("POST", path, document), f"POST {path}: not found"
        return f"{plural}/{document['metadata'].get('name', '')} created\n"

    def _resource(self, named: str) -> tuple[str, str, bool]:
        """Return path and resource of what names its group, as `offers.example.com` or `Offer.v2.example.com`; tell if it is namespaced."""
        name, _, group = named.partition(".")
        version, _, rest = group.partition(".")
        if re.fullmatch(r"v\d+((alpha|beta)\d+)?", version):
            group = rest
        else:
            served = self.ask("GET", f"/apis/{group}")
            assert served, f"{group} isn't served"
            version = served["preferredVersion"]["version"]
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        listed = self.ask("GET", root)
        assert listed, f"{root} isn't served"
        for each in listed["resources"]:
            if name in (each["name"], each["kind"], each["singularName"]) and "/" not in each["name"]:
                return root, each["name"], each["namespaced"]
        raise AssertionError(f"{root} has no {name}")

    def tried(self, *arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command that may fail."""
        # kubectl caches discovery by address, and another cluster may have had this port before.
        cache = self.kubeconfig.parent / "kubectl-cache"
        command = [str(self.program), f"--kubeconfig={self.kubeconfig}", f"--cache-dir={cache}", *arguments]
        environment = {**os.environ, "GOGC": "off"}  # it ends before its memory matters
        return subprocess.run(command, input=given, capture_output=True, text=True, check=False, timeout=2 * PATIENCE, env=environment)

    def ask(
        self, method: str, path: str, body: Mapping[str, Any] | str | None = None, content: str = "application/json"
    ) -> dict[str, Any] | None:
        """Send one request and return the answer, None where the object isn't there, or is going already: as kubectl, without its start."""
        settings = self.kubeconfig.read_bytes()
        connection = _CONNECTIONS.get((self.kubeconfig, settings))
        if connection is None:
            connection = connect(Cluster(), kubeconfig=str(self.kubeconfig), environ=os.environ)
            _CONNECTIONS[self.kubeconfig, settings] = connection
        headers = {"Content-Type": content, "Authorization": connection.authorization()}
        sent = body if isinstance(body, str) or not body else json.dumps(body)
        answer = connection.pool(4).request(method, connection.host + path, body=sent or None, headers=headers)
        if answer.status == 404 or (method, answer.status) == ("DELETE", 409):
            return None
        assert answer.status < 300, f"{method} {path}: {answer.status} {answer.data[:500]!r}"
        found: dict[str, Any] = json.loads(answer.data)
        return found

    def members(self, kinds: Sequence[tuple[str, str]], selector: str) -> list[dict[str, Any]]:
        """Return the live objects of these kinds, each a group and a kind of `COLLECTIONS`, that a label selector matches."""
        found = []
        for group, kind in kinds:
            root, plural = COLLECTIONS[group, kind]
            listed = self.ask("GET", f"{root}/{plural}?labelSelector={quote(selector)}")
            assert listed, kind
            found += _items(listed)
        return found

    def create_namespace(self, name: str) -> None:
        """Make a namespace."""
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        assert self.ask("POST", "/api/v1/namespaces", body), name

    def leave_namespaces(self, *names: str) -> None:
        """End what runs in a test's own namespaces; in a cluster that outlives the session delete them, a hundred requests each."""
        session = os.environ.get(SESSION)
        if session is None or not self.kubeconfig.is_relative_to(session):
            self.delete_namespaces(*names)
            return
        for name in {*names} - SHARED:
            self.ask("DELETE", f"/api/v1/namespaces/{name}/configmaps")  # records: who looks for all of a cluster's finds no other test's
            if (self.ask("GET", f"/api/v1/namespaces/{name}/pods?limit=1") or {}).get("items"):
                for group, plural in RUNNING:
                    self.ask("DELETE", f"/apis/{group}/namespaces/{name}/{plural}?propagationPolicy=Background")
                self.ask("DELETE", f"/api/v1/namespaces/{name}/pods")

    def delete_namespaces(self, *names: str) -> None:
        """Delete namespaces that may be gone already, without a wait for it."""
        for name in {*names} - SHARED:
            self.ask("DELETE", f"/api/v1/namespaces/{name}")

    def apply(self, *documents: Mapping[str, Any], options: Sequence[str] = ()) -> str:
        """Apply documents the client-side way, as people do by hand."""
        return self.run("apply", *options, "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))

    def judges(self, account: str, *, allows: bool = True, **attributes: str) -> None:
        """Wait until the API server allows an account something, or doesn't any more: it hears of roles a moment after they are written.

        Args:
            account: a ServiceAccount as `namespace/name`.
            allows: what it shall say.
            attributes: what it is asked about, as a SubjectAccessReview has it: verb, group, resource, namespace, name.

        """
        spec = {"user": f"system:serviceaccount:{account.replace('/', ':')}", "resourceAttributes": attributes}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}

        def judged() -> bool:
            found = self.ask("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review) or {}
            return bool(found["status"].get("allowed")) is allows

        until(judged, f"{account} is {'not ' if allows else ''}allowed {attributes}")

    def account(self, name: str, place: Path) -> Path:
        """Make a ServiceAccount, `namespace/name`, without any right; return the kubeconfig that signs in as it, in this directory."""
        namespace, _, own = name.partition("/")
        accounts = f"/api/v1/namespaces/{namespace}/serviceaccounts"
        assert self.ask("POST", accounts, {"metadata": {"name": own}}), f"{namespace} is gone"
        request = {"spec": {"expirationSeconds": 3600}}
        token = (self.ask("POST", f"{accounts}/{own}/token", request) or {})["status"]["token"]
        config = yaml.safe_load(self.kubeconfig.read_text())
        config["users"] = [{"name": user["name"], "user": {"token": token}} for user in config["users"]]
        path = place / f"{own}.kubeconfig"
        path.write_text(yaml.safe_dump(config))
        return path

    def grant(self, given: str) -> None:
        """Apply roles and their bindings to ServiceAccounts, and wait until the API server judges by the last rule of each."""
        self.run("apply", "-f", "-", given=given)
        found = documents(given)
        rules = {(each["kind"], *_place(each)): each["rules"][-1] for each in found if each.get("rules")}
        for binding in (each for each in found if "roleRef" in each):
            kind, (namespace, _) = binding["roleRef"]["kind"], _place(binding)
            rule = rules[kind, namespace if kind == "Role" else "", binding["roleRef"]["name"]]
            for subject in binding["subjects"]:
                self.judges(f"{subject['namespace']}/{subject['name']}", allows=True, namespace=namespace, **_asked(rule))


def _items(listed: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the objects of a list with version and kind, which it says once for all."""
    said = {"apiVersion": listed["apiVersion"], "kind": listed["kind"].removesuffix("List")}
    return [{**said, **item} for item in listed["items"]]


def _place(body: Mapping[str, Any]) -> tuple[str, str]:
    return str(body["metadata"].get("namespace", "")), str(body["metadata"]["name"])


def _asked(rule: Mapping[str, Any]) -> dict[str, str]:
    """Return the last thing that a rule allows, as a SubjectAccessReview asks for it."""
    resource, _, sub = rule["resources"][-1].partition("/")
    name = (rule.get("resourceNames") or [""])[-1]
    return {"verb": rule["verbs"][-1], "group": rule["apiGroups"][-1], "resource": resource, "subresource": sub, "name": name}
