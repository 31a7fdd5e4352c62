"""What changed behind git's back: repaired, reported or ignored as the target says; and what others own stays theirs."""

from __future__ import annotations

import base64
import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from handler.config.settings import IgnoreRule, IgnoreSelect
from handler.model.result import Outcome
from tests.e2e.api_proxy import Wired
from tests.e2e.documents import admission, config_map, definition, deployment, service
from tests.e2e.drift import assert_rests, edit
from tests.e2e.one_target import Shop

Wire = Callable[[], Wired]


def test_a_drift_run_heals_an_edit_and_names_who_made_it(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"), deployment(shop.name, "web"))
    shop.applied()
    edit(shop, "cm", "a", {"data": {"key": "edited"}})
    edit(shop, "deployment", "web", {"spec": {"replicas": 1}})
    assert shop.run("tick").outcome is Outcome.UNCHANGED, "a tick looks at git only"
    result = shop.applied("drift")
    assert result.plan
    changed = {(str(change.identity), item.path, item.manager) for change in result.plan.writes for item in change.fields}
    assert (f"ConfigMap/{shop.name}/a", "data.key", "kubectl-edit") in changed
    assert (f"Deployment/{shop.name}/web", "spec.replicas", "kubectl-edit") in changed
    shop.assert_converged()
    assert_rests(shop)


def test_fields_that_other_managers_add_are_no_drift(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    more = json.dumps({"data": {"theirs": "1"}, "metadata": {"annotations": {"seen-by": "them"}}})
    shop.kubectl.run("patch", "cm", "a", "-n", shop.name, "-p", more, "--field-manager=their-operator")
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    live = shop.live(config_map(shop.name, "a"))
    assert live
    assert live["data"] == {"key": "1", "theirs": "1"}


def test_a_drift_run_creates_a_deleted_object_again(shop: Shop) -> None:
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "b"))
    shop.applied()
    shop.kubectl.run("delete", "cm", "a", "-n", shop.name)
    shop.applied("drift")
    shop.assert_converged()


def test_report_records_a_drift_once_and_leaves_the_correction_to_a_push(shop: Shop, wired: Wire) -> None:
    shop.configure(drift="report")
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "b"))
    shop.applied()
    edit(shop, "cm", "a", {"data": {"key": "edited"}})
    wire = wired()
    handler = shop.handler_at(wire.kubeconfig)
    result = handler.run(shop.job("drift"))
    assert result.outcome is Outcome.DRIFTED
    assert wire.object_writes == []
    assert len(wire.writes) == 1, "the drift record"
    found = shop.state().drift
    assert [(item.path, item.declared, item.live, item.manager) for item in found] == [("data.key", "1", "edited", "kubectl-edit")]
    wire.forget()
    assert handler.run(shop.job("drift")).outcome is Outcome.DRIFTED
    assert wire.writes == [], "the same drift again"
    shop.push(config_map(shop.name, "a"), config_map(shop.name, "b", {"key": "2"}))
    shop.applied()
    shop.assert_converged()
    assert shop.state().drift == ()


def test_a_drift_that_went_away_leaves_the_record(shop: Shop) -> None:
    shop.configure(drift="report")
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    edit(shop, "cm", "a", {"data": {"key": "edited"}})
    assert shop.run("drift").outcome is Outcome.DRIFTED
    edit(shop, "cm", "a", {"data": {"key": "1"}})
    result = shop.run("drift")
    assert (result.outcome, shop.state().drift) == (Outcome.UNCHANGED, ())
    assert_rests(shop)


def test_ignore_lists_nothing_in_drift_runs(shop: Shop, wired: Wire) -> None:
    shop.configure(drift="ignore")
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    edit(shop, "cm", "a", {"data": {"key": "edited"}})
    wire = wired()
    handler = shop.handler_at(wire.kubeconfig)
    assert handler.run(shop.job("tick")).outcome is Outcome.UNCHANGED
    wire.forget()
    assert handler.run(shop.job("drift")).outcome is Outcome.UNCHANGED
    assert not any("labelSelector" in path for _, path in wire.seen)
    assert wire.writes == []


def test_replicas_set_by_an_hpa_are_no_drift(shop: Shop) -> None:
    """The controller scales through the subresource under its own name; git declares another number."""
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": shop.name},
        "spec": {"maxReplicas": 5, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    }
    web = deployment(shop.name, "web", replicas=1)
    shop.push(web, scaler)
    shop.applied()
    edit(shop, "deployment", "web", {"spec": {"replicas": 3}}, "--subresource=scale", "--field-manager=kube-controller-manager")
    assert_rests(shop)
    shop.push(deployment(shop.name, "web", image="shop:2", replicas=1), scaler)
    shop.applied()
    live = shop.live(web)
    assert live
    assert (live["spec"]["replicas"], live["spec"]["template"]["spec"]["containers"][0]["image"]) == (3, "shop:2")
    assert_rests(shop)


def test_an_injected_ca_bundle_is_no_drift(shop: Shop) -> None:
    """As cert-manager's ca-injector does it, on a webhook configuration and on a CRD's conversion webhook."""
    bundle = base64.b64encode(_authority()).decode()
    converting = definition(shop.group)
    converting["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"url": "https://127.0.0.1:9/convert"}},
    }
    judge = admission(shop.name, shop.group)
    shop.push(converting, judge, config_map(shop.name, "a"))
    shop.applied()
    hook = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]
    edit(shop, "validatingwebhookconfiguration", shop.name, hook, "--type=json", "--field-manager=cainjector")  # type: ignore[arg-type]  # a JSON patch is a list
    injected = {"spec": {"conversion": {"webhook": {"clientConfig": {"caBundle": bundle}}}}}
    edit(shop, "crd", f"offers.{shop.group}", injected, "--field-manager=cainjector")
    assert_rests(shop)
    shop.push(converting, admission(shop.name, shop.group, timeoutSeconds=5), config_map(shop.name, "a"))
    shop.applied()
    live, live_crd = shop.live(judge), shop.live(converting)
    assert live
    assert live_crd
    assert live["webhooks"][0]["clientConfig"]["caBundle"] == bundle
    assert live["webhooks"][0]["timeoutSeconds"] == 5
    assert live_crd["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] == bundle
    assert_rests(shop)


def test_ignored_fields_are_neither_reset_nor_reported(shop: Shop) -> None:
    rule = IgnoreRule(IgnoreSelect(kind="ConfigMap", name="tuned*"), ("/data/level",))
    shop.configure(ignore=(rule,))
    marked = config_map(shop.name, "marked", {"level": "1", "key": "1"}, annotations={"anneal.dev/ignore": "/data/level"})
    shop.push(config_map(shop.name, "tuned-a", {"level": "1", "key": "1"}), marked, config_map(shop.name, "plain", {"level": "1"}))
    shop.applied()
    for name in ("tuned-a", "marked"):
        edit(shop, "cm", name, {"data": {"level": "9"}})
    assert_rests(shop)
    edit(shop, "cm", "plain", {"data": {"level": "9"}})
    edit(shop, "cm", "tuned-a", {"data": {"key": "9"}})
    shop.applied("drift")
    live = {name: (shop.live(config_map(shop.name, name)) or {})["data"] for name in ("tuned-a", "marked", "plain")}
    assert live == {"tuned-a": {"level": "9", "key": "1"}, "marked": {"level": "9", "key": "1"}, "plain": {"level": "1"}}


@pytest.mark.parametrize(
    "document",
    [
        lambda name: service(name, "web"),
        lambda name: deployment(name, "web", replicas=None),
        lambda name: config_map(name, "empty", {}),
        lambda name: config_map(name, "labels", labels={"a": "b"}, annotations={"c": "d"}),
    ],
    ids=["service", "defaulted", "empty", "labelled"],
)
def test_drift_runs_without_drift_write_nothing(shop: Shop, document: Callable[[str], dict[str, Any]]) -> None:
    shop.push(document(shop.name), config_map(shop.name, "a"))
    shop.applied()
    assert_rests(shop)


def _authority() -> bytes:
    """A certificate that the API server can parse: caBundle is validated."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "/dev/null"]
    return subprocess.run([*command, "-subj", "/CN=test", "-days", "1"], capture_output=True, check=True).stdout
