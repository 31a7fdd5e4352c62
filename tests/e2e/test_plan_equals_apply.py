"""Random live objects of several writers, random declarations: whatever apply changes was in the plan, and nothing else was.

kubectl plants the objects under the field managers of people, tools and controllers, with lists that are merged by key, as sets and whole,
and reads them before and after. `ANNEAL_MODEL_EXAMPLES` searches.
"""

from __future__ import annotations

import json
import os
import random
import secrets
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handler.config.settings import Prune
from handler.model.names import identity_of
from handler.model.result import Outcome
from tests.conftest import EXAMPLES
from tests.e2e.documents import Document
from tests.e2e.one_target import Shop, told
from tests.e2e.plan_and_live import untold
from tests.e2e.workload_status import deployments_seen
from tests.kubectl import Kubectl
from tests.patience import until

GROUP = "truth.example.com"
PEOPLE = ("kubectl-edit", "kubectl-patch", "kubectl-annotate")
OTHERS = ("Terraform", "keda", "my-operator")
OVER = ("apply", "--server-side", "--force-conflicts", "--validate=false")
LIST = {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer", "default": 7}}}}
SPEC = {
    "keyed": {**LIST, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
    "members": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    "whole": {"type": "array", "items": {"type": "string"}},
    "nested": {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string", "default": "given"}}},
    "open": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}


@pytest.fixture(scope="module")
def widgets(kubectl: Kubectl) -> Iterator[None]:
    """A kind whose lists are merged in every way."""
    spec = json.loads(json.dumps(SPEC))
    spec["keyed"]["items"]["required"] = ["name"]
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": spec}}}
    body = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"widgets.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}],
        },
    }
    kubectl.apply(body)
    kubectl.run("wait", "--for=condition=Established", f"crd/widgets.{GROUP}")
    yield
    kubectl.run("delete", "--wait=false", f"crd/widgets.{GROUP}")


class Maker:
    """Makes documents by chance; `partial`: only what a second writer adds to an object that is there."""

    def __init__(self, chance: random.Random, namespace: str, run: str) -> None:
        self.chance, self.namespace, self.run = chance, namespace, run

    def some(self, names: str, *, least: int = 0) -> list[str]:
        return self.chance.sample(list(names), self.chance.randint(least, len(names)))

    def texts(self, names: str) -> dict[str, str]:
        return {name: str(self.chance.randint(0, 2)) for name in self.some(names)}

    def maybe(self, **parts: Any) -> dict[str, Any]:
        return {key: value for key, value in parts.items() if self.chance.random() < 0.5}

    def all(self, *, partial: bool = False) -> list[Document]:
        """One object of each kind."""
        makers = {"ConfigMap": self.config_map, "Deployment": self.deployment, "Service": self.service, "Widget": self.widget}
        versions = {"Deployment": "apps/v1", "Widget": f"{GROUP}/v1"}
        found = []
        for kind, make in makers.items():
            marks = self.maybe(labels=self.texts("xyz"), annotations=self.texts("pqr"))
            metadata = {"name": self.run, "namespace": self.namespace, **marks}
            found.append({"apiVersion": versions.get(kind, "v1"), "kind": kind, "metadata": metadata, **make(partial)})
        return found

    def config_map(self, _partial: bool) -> Document:
        return {"data": self.texts("abcde")} | self.maybe(binaryData=dict.fromkeys(self.some("mn"), "AAAA"))

    def service(self, partial: bool) -> Document:
        ports = [{"port": 80 + ord(name), "name": name, "protocol": "TCP"} for name in self.some("abcd", least=1)]
        more = self.maybe(sessionAffinity="ClientIP", externalIPs=["10.1.1.1", "10.1.1.2"][: self.chance.randint(1, 2)])
        return {"spec": more if partial else {"ports": ports, "selector": {"app": str(self.chance.randint(0, 1))}, **more}}

    def container(self, name: str, partial: bool) -> Document:
        env = [{"name": each, "value": str(self.chance.randint(0, 2))} for each in self.some("ABC")]
        more = self.maybe(
            env=env,
            args=[str(self.chance.randint(0, 3))],
            ports=[{"containerPort": 70 + ord(port), "protocol": "TCP"} for port in self.some("ab", least=1)],
            resources={"limits": {"cpu": self.chance.choice(["1", "1000m", "500m"])}},
            volumeMounts=[{"name": "v", "mountPath": f"/{path}"} for path in self.some("st", least=1)],
        )
        if partial:
            more.pop("volumeMounts", None)
        return {"name": name, **({} if partial else {"image": f"shop:{self.chance.randint(1, 2)}"}), **more}

    def deployment(self, partial: bool) -> Document:
        containers = [self.container("main", partial)]
        if not partial and self.chance.random() < 0.5:
            containers.append(self.container("side", partial))
        pod: Document = {"containers": containers}
        if partial:
            return {"spec": {"template": {"spec": pod}}}
        pod |= {"volumes": [{"name": name, "emptyDir": {}} for name in ["v", *self.some("wx")]]}
        pod |= self.maybe(terminationGracePeriodSeconds=self.chance.choice([5, 30]), securityContext={"runAsUser": 7})
        strategy = {"rollingUpdate": {"maxSurge": self.chance.randint(1, 3)}}
        more = self.maybe(minReadySeconds=self.chance.randint(0, 2), strategy=strategy)
        labels = {"app": "x"}
        template = {"metadata": {"labels": labels, **self.maybe(annotations=self.texts("uv"))}, "spec": pod}
        return {"spec": {"replicas": 0, "selector": {"matchLabels": labels}, "template": template, **more}}

    def widget(self, partial: bool) -> Document:
        keyed = [{"name": name, **self.maybe(n=self.chance.randint(0, 2))} for name in self.some("abc", least=1)]
        opened = {"deep": {key: {"list": self.some("12")} for key in self.some("jk", least=1)}}
        lists = self.maybe(keyed=keyed, members=self.some("abc", least=1)) | {"whole": self.some("abc")}
        if partial:
            return {"spec": lists | self.maybe(nested=self.maybe(a="2", b="3"))}
        return {"spec": {**lists, "nested": {"a": "1"} | self.maybe(b="2"), **self.maybe(open=opened)}}


def planted(shop: Shop, maker: Maker) -> None:
    """Have several write the same objects, one after the other."""
    listed = json.dumps({"apiVersion": "v1", "kind": "List", "items": maker.all()})
    server_side = ["apply", "--server-side"]
    ways = (["create"], ["create", "--save-config"], ["apply"], server_side, [*server_side, "--field-manager=kubectl-ci"])
    way = maker.chance.choice(ways)
    shop.kubectl.run(*way, "-f", "-", given=listed)
    migrates = way in (["create", "--save-config"], ["apply"])  # kubectl's first server-side apply would hand all of it to its manager
    for _ in range(maker.chance.randint(0, 3)):
        manager = maker.chance.choice(PEOPLE + OTHERS)
        partial = maker.all(partial=True)
        if maker.chance.random() < 0.5 and not migrates:
            given = json.dumps({"apiVersion": "v1", "kind": "List", "items": partial})
            shop.kubectl.tried(*OVER, f"--field-manager={manager}", "-f", "-", given=given)  # who empties a shared map is refused
            continue
        for body in maker.chance.sample(partial, 2):
            kind = "strategic" if body["kind"] != "Widget" else "merge"
            place = [body["kind"], maker.run, "-n", maker.namespace]
            shop.kubectl.run("patch", *place, f"--type={kind}", f"--field-manager={manager}", "-p", json.dumps(body))


def test_whatever_apply_changes_was_in_the_plan(shop: Shop, widgets: None) -> None:
    shop.configure(prune=Prune(enabled=False))
    written: list[bool] = []

    @settings(max_examples=int(os.environ.get(EXAMPLES, "8")))
    @given(st.integers(0, 2**32))
    def tried(seed: int) -> None:
        maker = Maker(random.Random(seed), shop.name, f"t{secrets.token_hex(3)}")
        planted(shop, maker)
        shop.push(*maker.all())
        written.append(judged(shop, "adopted"))
        for manager in PEOPLE[:2] + OTHERS[:1]:
            given = json.dumps({"apiVersion": "v1", "kind": "List", "items": maker.all(partial=True)})
            shop.kubectl.tried(*OVER, f"--field-manager={manager}", "-f", "-", given=given)
        shop.push(*maker.all())
        written.append(judged(shop, "ours"))

    tried()
    assert sum(written) > len(written) / 2


def judged(shop: Shop, when: str) -> bool:
    """Plan and run; compare with what kubectl reads; return whether anything was written."""
    until(lambda: deployments_seen(shop, shop.documents))
    before, versions = {str(identity_of(body)): shop.live(body) for body in shop.documents}, shop.versions(shop.documents)
    result = shop.run("drift", dry_run=True)
    if result.plan is None:  # what another manager shares with people can't always lose its half
        assert result.code == "plan-refused", told(result)
        assert shop.run("drift").outcome is Outcome.FAILED
        assert shop.versions(shop.documents) == versions
        return False
    fields = {str(change.identity): change.fields for change in result.plan.changes}
    ended = shop.run("drift")
    assert ended.outcome in (Outcome.APPLIED, Outcome.UNCHANGED), told(ended)
    for body in shop.documents:
        was, now = before[str(identity_of(body))], shop.live(body)
        assert was
        assert now
        assert untold(was, now, fields[str(identity_of(body))]) == [], (when, body["kind"])
    until(lambda: deployments_seen(shop, shop.documents))
    rest = shop.run("drift", dry_run=True)
    assert rest.plan
    assert not rest.plan.writes, (when, [(str(change.identity), change.fields) for change in rest.plan.writes])
    return bool(ended.plan and ended.plan.writes)
