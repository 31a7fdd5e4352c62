"""The checks of a Rollout's steps on the real control plane, with a real Prometheus."""

from __future__ import annotations

from typing import Any

import pytest

from handler.model.names import identity_of
from handler.model.result import Outcome
from handler.rollout.checks.fields import ZEROS
from infra.prometheushost import Exporter, PrometheusHost
from tests.e2e import rollouts
from tests.e2e.canary_target import Running
from tests.e2e.conftest import Open
from tests.e2e.documents import Document, config_map, daemon_set, deployment, job, replication_controller, stateful_set
from tests.e2e.metric_checks import asks, measured, messages, named, says
from tests.e2e.one_target import Shop, told
from tests.e2e.rollouts import group, outcomes, recorded, step

GENERATION = {"name": "Generation correct", "path": "{.metadata.generation}", "value": {"path": "{.status.observedGeneration}"}}
UPDATED = {"name": "All replicas updated", "path": "{.status.replicas}", "value": {"path": "{.status.updatedReplicas}"}}
AVAILABLE = {"name": "No replica unavailable", "path": "{.status.unavailableReplicas}", "default": 0, "value": {"static": 0}}
RUNS = {"name": "runs", "path": "{.status.availableReplicas}", "value": {"staticInt64": 2}}


@pytest.fixture
def shop(open_shop: Open, prometheus: PrometheusHost) -> Shop:
    """Here every shop has a Rollout, and a Prometheus to ask."""
    opened = open_shop(rollout=rollouts.ROLLOUT)
    opened.create_namespace()
    return measured(opened, prometheus)


def test_every_check_passes_when_what_it_asks_for_is_so(shop: Shop, exporter: Exporter) -> None:
    """The seed's own example in its old dialect, the new one, a Job, health; and metrics that are first missing, then bad."""
    web, api, migration, last, old = (
        deployment(shop.name, "web", replicas=2),
        deployment(shop.name, "api", replicas=2),
        job(shop.name, "migrate"),
        config_map(shop.name, "last"),
        config_map(shop.name, "old"),
    )
    metric = named(shop)
    rollouts.push(
        shop,
        [web, api, migration, last, old],
        group("clean", step("DeleteIfExist", old, success=[asks("vector(1)", "> 0")])),
        group("migrate", step("CreateOrUpdate", migration, success=[{"jobComplete": {}}], failure=[{"checkName": "JobOOMKilled"}])),
        group(
            "roll out",
            step("CreateOrUpdate", web, success=[{"fieldComparisons": [GENERATION, UPDATED, AVAILABLE]}]),
            step("CreateOrUpdate", api, success=[{"fieldComparisons": {"expectedValues": [RUNS]}}, {"healthy": {"timeout": "5m"}}]),
            parallel=True,
        ),
        group("watch", step("CreateOrUpdate", last, success=[asks(metric, "< 0.01", **{"for": "2s"})])),
    )
    run = Running.of(shop)
    says(shop, "last", f"{metric} finds no series, must be < 0.01 for 2s without a break")
    exporter.set(metric, 0.5)
    says(shop, "last", "is 0.5 {")
    exporter.set(metric, 0.001)
    result = run.result()
    assert result.outcome is Outcome.APPLIED, told(result)
    assert set(outcomes(shop).values()) == {"done"}
    assert "{.status.availableReplicas} is 2" in recorded(shop, "api").message
    assert recorded(shop, "migrate").message == "jobComplete: completed, 1 succeeded"
    assert f"{metric} is 0.001 {{" in recorded(shop, "last").message


def test_the_seeds_check_passes_where_nothing_runs_and_the_server_omits_every_zero(shop: Shop) -> None:
    """Both dialects; and each kind really omits what the table says, once its controller has counted."""
    web = deployment(shop.name, "web", replicas=0)
    api = deployment(shop.name, "api", replicas=0)
    store = stateful_set(shop.name, "store")
    agents = daemon_set(shop.name, "agents", nodes={"no-such-node": "yes"})
    plain = {**deployment(shop.name, "plain", replicas=0), "kind": "ReplicaSet"}
    oldest = replication_controller(shop.name, "oldest")
    done = job(shop.name, "done")
    documents = [web, api, store, agents, plain, oldest, done]
    seeds = [GENERATION, UPDATED, AVAILABLE]
    checks: list[Any] = [seeds, {"expectedValues": seeds}, *(zeros_of(each) for each in documents[2:-1])]
    steps = [step("CreateOrUpdate", each, success=[{"fieldComparisons": raw}]) for each, raw in zip(documents, checks, strict=False)]
    ended = [compared("{.status.succeeded}", 1), compared("{.status.failed}", 0), compared("{.status.active}", 0)]
    rollouts.push(shop, documents, group("all", *steps, step("CreateOrUpdate", done, success=[{"fieldComparisons": ended}]), parallel=True))
    result = shop.run()
    assert result.outcome is Outcome.APPLIED, told(result)
    assert set(outcomes(shop).values()) == {"done"}
    assert "All replicas updated: {.status.replicas} is 0" in recorded(shop, "web").message
    for document in documents[:-1]:
        live, zeros = shop.live(document) or {}, ZEROS[identity_of(document).group_kind]
        assert not live["status"].keys() & zeros.status.keys(), "omitted by the server"


def compared(path: str, value: Any) -> Document:
    return {"name": path, "path": path, "value": {"static": value}}


def zeros_of(document: Document) -> list[Document]:
    """Compare everything that a kind omits with its zero."""
    zeros = ZEROS[identity_of(document).group_kind]
    return [compared(f"{{.{part}.{name}}}", value) for part in ("status", "spec") for name, value in getattr(zeros, part).items()]


def test_a_check_that_fails_ends_its_step_with_what_was_compared_and_seen(shop: Shop, exporter: Exporter) -> None:
    """Side by side, none may go on after an error: each says its own."""
    metric = named(shop)
    exporter.set(metric, 0.001)
    never = {"name": "never", "path": "{.data.key}", "value": {"static": "2"}}
    checks: dict[str, Document] = {
        "crosses": {"success": [asks("vector(1)", "> 5")], "failure": [asks(metric, "> 0.05")]},
        "wrong-query": {"success": [asks("sum(", "< 1")]},
        "wrong-guard": {"success": [asks("vector(1)", "> 5")], "failure": [asks("up[5m]", "> 1")]},
        "stands-still": {"success": [{"fieldComparisons": {"expectedValues": [never], "progressTimeout": "1s"}}]},
        "too-late": {"success": [{"fieldComparisons": {"expectedValues": [never], "timeout": "1s"}}]},
        "no-data": {"success": [asks("absent_metric", "< 1", empty="fail")]},
        "keeps-failing": {"success": [asks("vector(1)", "> 5", failureLimit=2)]},
        "no-better": {"success": [asks("vector(1)", "> 5", progressTimeout="2s")]},
        "no-job": {"success": [{"jobComplete": {}}]},
    }
    documents = [config_map(shop.name, name) for name in checks]
    steps = [step("CreateOrUpdate", document, continueOnError=True, **checks[document["metadata"]["name"]]) for document in documents]
    rollouts.push(shop, documents, group("all", *steps, parallel=True))
    run = Running.of(shop)
    says(shop, "crosses", "prometheus: vector(1) is 1")
    exporter.set(metric, 0.2)
    result = run.result()
    assert result.outcome in (Outcome.APPLIED, Outcome.FAILED), told(result)
    assert set(outcomes(shop).values()) == {"failed"}
    expected = {
        "crosses": f"failure check prometheus: {metric} is 0.2 {{",
        "wrong-query": "can't evaluate the query: ",
        "wrong-guard": "can't evaluate the query: it is a range vector",
        "stands-still": 'never: {.data.key} is "1", expected "2"; not so, and nothing of it has changed for 1s',
        "too-late": 'never: {.data.key} is "1", expected "2"; not so after 1s',
        "no-data": "absent_metric finds no series",
        "keeps-failing": " samples in a row, and its failureLimit is 2: ",  # two, or more by a look that came late
        "no-better": "vector(1) is 1, must be > 5; got no better in 2s, its progressTimeout: ",
        "no-job": "is no Job, and jobComplete is about Jobs",
    }
    found = messages(shop)
    assert {name: text for name, text in expected.items() if text not in found[name]} == {}, found


def test_a_prometheus_that_ends_meanwhile_is_asked_until_it_is_back(shop: Shop, exporter: Exporter) -> None:
    last, metric = config_map(shop.name, "last"), named(shop)
    exporter.set(metric, 0.5)
    with PrometheusHost(exporter.address) as host:
        host.wait(metric, 0.5)
        measured(shop, host)
        checks = {"success": [asks(metric, "< 0.01")], "failure": [asks("time()", "< 1")]}
        rollouts.push(shop, [last], group("watch", step("CreateOrUpdate", last, **checks)))
        run = Running.of(shop)
        says(shop, "last", f"{metric} is 0.5")
        host.stop()
        says(shop, "last", "can't be reached")
        exporter.set(metric, 0.0)
        host.start()
        result = run.result()
    assert result.outcome is Outcome.APPLIED, told(result)
