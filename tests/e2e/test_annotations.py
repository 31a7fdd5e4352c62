"""Annotations of other tools that steer an apply, on a real cluster: what they keep is read with kubectl, never in Anneal's own words."""

from __future__ import annotations

import json
from typing import Any

from handler.config.settings import Wait
from handler.model.names import identity_of
from handler.model.plan import Action
from tests.e2e.documents import claim, config_map, definition, deployment, job, offer, service
from tests.e2e.hook_jobs import held
from tests.e2e.live_annotations import FLUX, annotate, seen
from tests.e2e.one_target import Shop

SYNC = "argocd.argoproj.io/sync-options"


def test_an_object_with_reconcile_disabled_isnt_waited_for_though_others_depend_on_it(shop: Shop) -> None:
    shop.configure(wait=Wait(timeout=600.0, progress_timeout=600.0))
    shop.push(deployment(shop.name, "web", replicas=0), config_map(shop.name, "a"))
    shop.applied()
    never = {"spec": {"replicas": 1, "template": {"spec": {"nodeName": "nowhere"}}}}
    shop.kubectl.run("patch", "deployment", "web", "-n", shop.name, "--type=merge", "-p", json.dumps(never))
    annotate(shop, "deployment", "web", f"{FLUX}/reconcile=disabled")
    before = shop.versions([deployment(shop.name, "web")])
    after = {"config.kubernetes.io/depends-on": f"apps/namespaces/{shop.name}/Deployment/web, /namespaces/{shop.name}/ConfigMap/absent"}
    absent = config_map(shop.name, "absent", annotations={f"{FLUX}/ssa": "Ignore"})
    shop.push(deployment(shop.name, "web", "shop:2"), config_map(shop.name, "a", {"key": "2"}, annotations=after), absent)
    shop.applied()
    assert shop.versions([deployment(shop.name, "web")]) == before
    assert seen(shop, config_map(shop.name, "a"))[2] == {"key": "2"}


def test_force_makes_an_object_anew_only_where_an_immutable_field_changes_and_never_what_holds_data(shop: Shop) -> None:
    given: dict[str, Any] = {"annotations": {SYNC: "Force=true"}}
    older, newer = (held(job(shop.name, "b", image, **given)) for image in ("migrate:1", "migrate:2"))  # a finished one needs no force
    volume, wider = claim(shop.name, "data", **given), claim(shop.name, "data", **given)
    wider["spec"]["accessModes"] = ["ReadWriteMany"]
    shop.push(service(shop.name, "a", **given), older, volume)
    shop.applied()
    before = shop.versions()
    shop.push(service(shop.name, "a", 81, **given), newer, wider)
    assert shop.run().code == "plan-refused"
    assert shop.versions() == before
    shop.push(service(shop.name, "a", 81, **given), newer, volume)
    result = shop.applied()
    assert result.plan
    assert {each.identity.kind: each.action for each in result.plan.writes} == {"Service": Action.UPDATE, "Job": Action.RECREATE}
    after = shop.versions()
    same = {name: after[name][0] == uid for name, (uid, _) in before.items()}
    assert same == {str(identity_of(each)): each is not older for each in (service(shop.name, "a"), older, volume)}


def test_a_kind_that_is_not_served_is_refused_though_its_dry_run_is_to_be_skipped(shop: Shop) -> None:
    marks = {SYNC: "SkipDryRunOnMissingResource=true"}
    shop.push(config_map(shop.name, "a"), offer(shop.group, shop.name, "o", annotations=marks))
    result = shop.run()
    assert result.code == "plan-refused"
    assert "SkipDryRunOnMissingResource=true applies nothing unseen" in result.problems[0].message
    assert shop.live(config_map(shop.name, "a")) is None
    shop.push(config_map(shop.name, "a"), definition(shop.group), offer(shop.group, shop.name, "o", annotations=marks))
    shop.applied()
    shop.assert_converged()
