"""What the record's annotations say of kinds and namespaces is a hint: an edit of it hides no member."""

from __future__ import annotations

from pathlib import Path

import yaml

from handler.model.result import Outcome
from handler.state.configmap import KINDS, NAMESPACES
from tests.e2e.documents import config_map, deployment, secret, service
from tests.e2e.one_target import STATES, Shop, told

RBAC = "rbac.authorization.k8s.io"


def edit(shop: Shop, **annotations: str) -> None:
    """Edit the record's annotations, as a person or another tool may."""
    written = [f"{ {'kinds': KINDS, 'namespaces': NAMESPACES}[name] }={value}" for name, value in annotations.items()]
    shop.kubectl.run("annotate", "--overwrite", "configmap", f"anneal-{shop.name}", "-n", STATES, *written)


def hint(shop: Shop, name: str) -> str:
    live = shop.kubectl("get", "configmap", f"anneal-{shop.name}", "-n", STATES)
    return str(live["metadata"]["annotations"][name])


def namespaced(shop: Shop, place: Path, *spaces: str) -> Path:
    """Return the kubeconfig of an account that may read and write in these namespaces, and nowhere else."""
    shop.kubectl.tried("create", "namespace", STATES)
    kubeconfig = shop.kubectl.account(f"{shop.name}/deployer", place)
    subject = {"kind": "ServiceAccount", "name": "deployer", "namespace": shop.name}
    own = {"apiGroups": ["", "coordination.k8s.io"], "resources": ["configmaps", "secrets", "services", "leases"], "verbs": ["*"]}
    see = {"apiGroups": [""], "resources": ["namespaces"], "resourceNames": ["kube-system"], "verbs": ["get"]}
    documents = []
    for kind, space, rule in [("Role", each, own) for each in (*spaces, STATES)] + [("ClusterRole", "", see)]:
        meta = {"name": shop.name} | ({"namespace": space} if space else {})
        reference = {"apiGroup": RBAC, "kind": kind, "name": shop.name}
        documents.append({"apiVersion": f"{RBAC}/v1", "kind": kind, "metadata": meta, "rules": [rule]})
        bound = {"apiVersion": f"{RBAC}/v1", "kind": f"{kind}Binding", "metadata": meta, "roleRef": reference, "subjects": [subject]}
        documents.append(bound)
    shop.kubectl.grant(yaml.safe_dump_all(documents))
    return kubeconfig


def test_a_kind_removed_from_the_applyset_annotation_is_still_pruned(shop: Shop) -> None:
    gone = service(shop.name, "web")
    shop.push(config_map(shop.name, "a"), deployment(shop.name, "web"), gone)
    shop.applied()
    edit(shop, kinds="ConfigMap")
    shop.push(config_map(shop.name, "a"))
    shop.applied()
    assert shop.live(gone) is None
    assert shop.live(deployment(shop.name, "web")) is None
    assert hint(shop, KINDS) == "ConfigMap,Deployment.apps,Service", "only a look that finds none narrows it"
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert hint(shop, KINDS) == "ConfigMap"


def test_an_orphan_stays_listed_and_is_pruned_once_prune_disabled_is_gone(shop: Shop) -> None:
    kept = secret(shop.name, "db", "swordfish", annotations={"anneal.dev/prune": "disabled"})
    shop.push(config_map(shop.name, "a"), kept)
    shop.applied()
    shop.push(config_map(shop.name, "a"))
    assert shop.run().outcome is Outcome.UNCHANGED
    assert [str(orphan.identity) for orphan in shop.state().orphans] == [f"Secret/{shop.name}/db"]
    edit(shop, kinds="ConfigMap")
    shop.configure()
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    assert [str(orphan.identity) for orphan in shop.state().orphans] == [f"Secret/{shop.name}/db"]
    shop.kubectl.run("annotate", "secret", "db", "-n", shop.name, "anneal.dev/prune-")
    shop.applied("drift")
    assert shop.live(kept) is None


def test_orphans_in_a_namespace_off_the_whitelist_are_still_seen_with_namespaced_rights(shop: Shop, tmp_path: Path) -> None:
    jobs = shop.create_namespace(f"{shop.name}-jobs")
    kubeconfig = namespaced(shop, tmp_path, shop.name, jobs)
    left = secret(jobs, "db", "swordfish")
    shop.handler = shop.handler_at(kubeconfig)
    shop.push(config_map(shop.name, "a"), left)
    shop.applied()
    edit(shop, kinds="", namespaces="")
    shop.configure(namespaces=(shop.name,))
    shop.handler = shop.handler_at(kubeconfig)
    shop.push(config_map(shop.name, "a"))
    plan = shop.run("oneoff", dry_run=True).plan
    assert plan
    assert [str(identity) for identity in plan.outside] == [f"Secret/{jobs}/db"]
    assert shop.run().outcome is Outcome.UNCHANGED
    edit(shop, kinds="", namespaces="")
    assert shop.run("drift").outcome is Outcome.UNCHANGED
    shop.kubectl.run("delete", "rolebinding", shop.name, "-n", jobs)
    shop.kubectl.judges(f"{shop.name}/deployer", allows=False, verb="list", resource="secrets", namespace=jobs)
    unread = shop.run("drift")
    assert unread.outcome is Outcome.UNCHANGED, told(unread)
    assert unread.plan
    assert any(f"Namespace/{jobs} left the whitelist and may not be read" in note for note in unread.plan.notes)
    assert shop.live(left)
    shop.configure(namespaces=(shop.name, jobs))
    shop.applied("oneoff", force=True)
    assert shop.live(left) is None
    shop.kubectl.run("delete", f"clusterrole/{shop.name}", f"clusterrolebinding/{shop.name}")
