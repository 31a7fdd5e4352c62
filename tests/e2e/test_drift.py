"""What real objects look like to a drift run: what the server and controllers fill in is no drift, what a person edits is."""

from __future__ import annotations

import base64
import subprocess

from handler.model.result import Outcome
from tests.e2e.documents import admission, config_map, definition, deployment, service
from tests.e2e.drift import assert_rests, edit
from tests.e2e.one_target import Shop


def test_a_drift_run_writes_nothing_until_it_heals_an_edit_and_names_who_made_it(shop: Shop) -> None:
    empty, labelled = config_map(shop.name, "empty", {}), config_map(shop.name, "labels", labels={"a": "b"}, annotations={"c": "d"})
    filled = deployment(shop.name, "filled", replicas=None)
    shop.push(config_map(shop.name, "a"), deployment(shop.name, "web"), service(shop.name, "web"), filled, empty, labelled)
    shop.applied()
    assert_rests(shop)
    edit(shop, "cm", "a", {"data": {"key": "edited"}})
    edit(shop, "deployment", "web", {"spec": {"replicas": 1}})
    assert shop.run("tick").outcome is Outcome.UNCHANGED, "a tick looks at git only"
    result = shop.applied("drift")
    assert result.plan
    changed = {(str(change.identity), item.path, item.manager) for change in result.plan.writes for item in change.fields}
    assert (f"ConfigMap/{shop.name}/a", "data.key", "kubectl-edit") in changed
    assert (f"Deployment/{shop.name}/web", "spec.replicas", "kubectl-edit") in changed
    assert_rests(shop)


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


def _authority() -> bytes:
    """A certificate that the API server can parse: caBundle is validated."""
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", "/dev/null"]
    return subprocess.run([*command, "-subj", "/CN=test", "-days", "1"], capture_output=True, check=True).stdout
