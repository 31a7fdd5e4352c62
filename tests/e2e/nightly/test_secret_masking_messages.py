"""Secret values outside of Secrets: in what the API server says, in variables, ConfigMaps, custom resources, events and logs of pods."""

from __future__ import annotations

import io
import json
from dataclasses import replace

from handler.config.settings import Wait
from handler.model.names import identity_of
from handler.model.result import Outcome
from handler.worker.health_watch.cluster_watch import HealthWatch
from tests.e2e.documents import Document, config_map, definition, deployment, namespace, offer, secret
from tests.e2e.one_target import Shop
from tests.e2e.planted_secrets import CANARY, OTHER, assert_silent, run
from tests.e2e.test_secret_masking_messages import PASSWORD, with_env
from tests.e2e.workload_status import fated, stand_still
from tests.patience import until


def by_the_server(place: str) -> list[Document]:
    two = [{**PASSWORD, "valueFrom": {"fieldRef": {"fieldPath": CANARY}}}, {**PASSWORD, "name": "b="}]
    return [
        with_env(deployment(place, "mapping"), {"DB_PASSWORD": CANARY}),
        with_env(deployment(place, "two-values"), two),
        with_env(deployment(place, "quantity"), [PASSWORD], resources={"limits": {"token": CANARY}}),
        with_env(deployment(place, "unknown-field"), [{**PASSWORD, "vlaue": OTHER}], pasword=OTHER),
        config_map(place, "odd-key", {"pass word": "1", "api-key": CANARY}),
    ]


def test_what_the_server_refuses_is_told_without_its_values(shop: Shop, logged: io.StringIO) -> None:
    documents = by_the_server(shop.name)
    shop.push(*documents, config_map(shop.name, "fine"))
    results = [run(shop, shop.job()), run(shop, shop.job("drift")), run(shop, shop.job("oneoff", dry_run=True))]
    assert {(result.outcome, result.who) for result in results} == {(Outcome.FAILED, "author")}
    assert [str(each) for each in map(identity_of, documents) if str(each) not in results[0].message] == [], "all are told together"
    assert_silent(shop, logged, *results)


def test_a_custom_resource_is_refused_without_its_values(shop: Shop, logged: io.StringIO) -> None:
    crd = definition(shop.group)
    text = {"type": "string", "maxLength": 3}
    weak = {"rule": "self == 'x'", "messageExpression": "self + ' is weak'"}
    properties = {"price": {"type": "integer"}, "apiKey": {**text, "x-kubernetes-validations": [weak]}, "token": {**text, "enum": ["a"]}}
    crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] = properties
    tea = offer(shop.group, shop.name, "tea")
    tea["spec"] |= {"apiKey": CANARY, "token": OTHER}
    results = []
    number = {**tea, "spec": {"apiKey": 86429753186}}
    for documents in ([crd, tea], [crd], [crd, tea], [crd, number]):  # judged by git's schema, then the server's
        shop.push(namespace(shop.name), *documents)
        results.append(run(shop, shop.job()))
    assert [result.outcome for result in results] == [Outcome.FAILED, Outcome.APPLIED, Outcome.FAILED, Outcome.FAILED]
    assert "apiKey" in results[0].message
    assert "apiKey" in results[2].message
    assert "86429753186" not in results[3].message
    assert_silent(shop, logged, *results)


def warn(shop: Shop, document: Document, message: str) -> None:
    """Create a Warning about a live Deployment, as its controller would."""
    live = shop.live(document)
    assert live
    name = live["metadata"]["name"]
    about = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "namespace": shop.name, "uid": live["metadata"]["uid"]}
    times = {"firstTimestamp": "2100-01-01T00:00:00Z", "lastTimestamp": "2100-01-01T00:00:00Z"}
    said = {"type": "Warning", "reason": "Refused", "message": message, "involvedObject": about}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": shop.name}, **times, **said}
    shop.kubectl.run("create", "-f", "-", given=json.dumps(event))


def test_events_that_repeat_a_variable_are_told_without_it(shop: Shop, logged: io.StringIO) -> None:
    settings = config_map(shop.name, "settings", {"api-key": OTHER})
    web = fated(with_env(deployment(shop.name, "web", replicas=1), [PASSWORD]), "never-ready")
    shop.push(web, settings)
    results = [run(shop, shop.job())]
    until(lambda: stand_still(shop, "web"))
    warn(shop, web, f"the database refused {CANARY} and {OTHER}")
    shop.configure(wait=Wait(120.0, 2.0))
    shop.push(web, settings, config_map(shop.name, "another"))
    results.append(run(shop, shop.job()))
    assert results[-1].code == "rollout-failed"
    assert "Warning Refused" in results[-1].message
    assert "the database" not in results[-1].message, "of what holds a secret a reason is told, and no word"
    assert_silent(shop, logged, *results)


def test_a_watch_of_health_tells_the_reasons_alone_of_what_holds_a_secret(shop: Shop, logged: io.StringIO) -> None:
    web = fated(with_env(deployment(shop.name, "web", replicas=1), [PASSWORD]), "never-ready")
    shop.push(web, secret(shop.name, "db", "postgres://shop:swordfish-4711@db:5432/shop"), config_map(shop.name, "a", {"api-key": OTHER}))
    result = run(shop, shop.job())
    warn(shop, web, f"refused {CANARY}, {OTHER} and swordfish-4711")
    watch = HealthWatch(replace(shop.settings, health_interval=2.0), shop.handler, lambda _: None)
    watch.start()
    try:
        until(lambda: "Warning Refused" in " ".join(shop.state().health.worst), lambda: str(shop.state().health))
    finally:
        watch.stop()
    assert "refused" not in " ".join(shop.state().health.worst)
    assert_silent(shop, logged, result, planted=(CANARY, OTHER, "swordfish-4711"))


def test_a_tick_that_looks_at_health_tells_no_condition_of_what_holds_a_secret(shop: Shop, logged: io.StringIO) -> None:
    crd, tea = definition(shop.group), offer(shop.group, shop.name, "tea")
    any_status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    fields = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    fields["status"] = fields["spec"] = any_status
    milk = offer(shop.group, shop.name, "milk")
    tea["spec"] |= {"token": "swordfish-4711"}
    shop.push(namespace(shop.name), crd, tea, milk)
    results = [run(shop, shop.job())]
    status = {"conditions": [{"type": "Ready", "status": "False", "reason": "Refused", "message": "the database refused swordfish-4711"}]}
    open_status = {"conditions": [{**status["conditions"][0], "message": "the database is full"}]}
    for name, said in (("tea", status), ("milk", open_status)):
        shop.kubectl.run("patch", f"offers.v1.{shop.group}", name, "-n", shop.name, "--type=merge", "-p", json.dumps({"status": said}))
    results.append(shop.handler_at(shop.kubectl.kubeconfig, looks=True).run(shop.job("tick")))
    assert results[-1].outcome is Outcome.UNCHANGED
    told = (f"Offer/{shop.name}/milk: Refused: “the database is full”", f"Offer/{shop.name}/tea: in progress")
    assert shop.state().health.worst == told
    assert_silent(shop, logged, *results, planted=("swordfish-4711",))
