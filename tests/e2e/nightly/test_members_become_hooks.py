"""A hook deletes what a rollout made as this hook, in whatever state it is; a member that becomes one is a deletion of the plan."""

from __future__ import annotations

from collections.abc import Iterable

from handler.config.settings import Prune, Wait
from handler.model.plan import Gone
from handler.model.result import Outcome
from handler.model.rollout import ARGO_HOOK
from handler.rollout.hook_annotations import ARGO_POLICY, ROLLOUT
from tests.e2e.documents import Document, config_map, deployment
from tests.e2e.hook_jobs import held, hook, uid
from tests.e2e.one_target import Shop, told
from tests.patience import until

OFF = Prune(enabled=False)


def hooked(made: Document, phase: str = "PostSync", policy: str = "HookSucceeded") -> Document:
    return {**made, "metadata": {**made["metadata"], "annotations": {ARGO_HOOK: phase, ARGO_POLICY: policy}}}


def names(found: Iterable[Gone], *, counted: bool) -> set[str]:
    return {gone.identity.name for gone in found if gone.counted is counted}


def test_members_that_become_hooks_wait_for_a_person_as_any_deletion_does(shop: Shop) -> None:
    kept = config_map(shop.name, "kept")
    maps = [config_map(shop.name, f"old-{number}") for number in range(12)]
    webs = [deployment(shop.name, f"web-{number}") for number in range(12)]
    shop.push(kept, *maps, *webs)
    shop.applied()
    hooks = [*map(hooked, maps), *(hooked(one, "PreSync", "BeforeHookCreation") for one in webs)]
    before = shop.versions()
    shop.push(kept, *hooks)
    result = shop.run()
    assert (result.outcome, result.counts) == (Outcome.HELD, {"unchanged": 1, "to lose": 24}), told(result)
    assert "24 of 25 live objects would be deleted" in result.message
    assert shop.versions() == before
    shop.configure(prune=OFF)
    refused = shop.run("oneoff", force=True)
    assert (refused.outcome, refused.code) == (Outcome.FAILED, "plan-refused"), told(refused)
    assert "would be deleted, and prune is off: a hook takes its place, or deletes it" in refused.message
    assert f"set on target {shop.name}: prune: {{enabled: true}}" in refused.message
    assert shop.versions() == before
    shop.configure(prune=Prune())
    again = shop.run()
    assert again.plan
    assert again.plan.hold
    done = shop.applied("oneoff", approve=again.plan.hold.id)
    assert done.counts == {"unchanged": 1, "pruned": 12, "recreated": 12}
    until(lambda: not any(uid(shop, one) for one in maps))
    after = shop.versions()
    assert len(after) == 13
    assert all(found == before[name] if name.endswith("/kept") else found[0] != before[name][0] for name, found in after.items())
    assert set(shop.state().history[0].changed) == {
        *(f"ConfigMap/{shop.name}/old-{number} prune" for number in range(12)),
        *(f"Deployment/{shop.name}/web-{number} recreate" for number in range(12)),
    }


def test_a_hook_deletes_its_own_in_whatever_state_also_where_prune_is_off(shop: Shop) -> None:
    shop.handler = shop.handler_at(shop.kubectl.kubeconfig, patience=0.0)
    hung, told_of = held(hook(shop, "migrate", "PreSync")), hooked(config_map(shop.name, "told"), policy="BeforeHookCreation")
    shop.push(config_map(shop.name, "one"), hung, told_of)
    assert shop.run().outcome is Outcome.WAITING
    first = uid(shop, hung)
    shop.configure(prune=OFF, wait=Wait())
    shop.push(config_map(shop.name, "one"), hook(shop, "migrate", "PreSync"), told_of)
    plan = shop.run("oneoff", dry_run=True).plan
    assert plan
    assert (names(plan.gone, counted=False), names(plan.gone, counted=True)) == ({"migrate"}, set())
    shop.applied()
    assert uid(shop, hung) not in ("", first)
    made = uid(shop, told_of)
    shop.push(config_map(shop.name, "one", {"key": "2"}), told_of, hook(shop, "migrate", "PreSync"))
    shop.applied()
    assert uid(shop, told_of) not in ("", made)


def test_what_was_a_member_since_a_rollout_made_it_or_carries_anothers_mark_is_no_hooks_own(shop: Shop) -> None:
    one, other, kept = (config_map(shop.name, name) for name in ("one", "other", "kept"))
    shop.push(hooked(one, policy="BeforeHookCreation"), other, kept)
    shop.applied()
    mark = (shop.live(one) or {})["metadata"]["annotations"][ROLLOUT]
    shop.push(one, other, kept)
    shop.applied()
    shop.kubectl.run("annotate", "configmap", "other", "-n", shop.name, f"{ROLLOUT}={mark}")
    shop.push(hooked(one, policy="BeforeHookCreation"), hooked(other, policy="BeforeHookCreation"), kept)
    plan = shop.run("oneoff", dry_run=True).plan
    assert plan
    assert names(plan.gone, counted=True) == {"one", "other"}
    shop.push(config_map(shop.name, "forged", annotations={ROLLOUT: mark}), kept)
    refused = shop.run()
    assert refused.code == "plan-refused", told(refused)
    assert f"metadata.annotations holds {ROLLOUT}, which marks what a rollout has made" in refused.message
