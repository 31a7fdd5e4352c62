"""The scenes of what isn't plain files: a kustomization, a Helm chart. Each is a target beside the shop's, of the same repository."""

from __future__ import annotations

from infra.demo.configuration import Further
from infra.demo.repository import Commit
from infra.demo.walkthrough import Walkthrough

MENU = Further("menu", "menu/shop")
VOUCHERS = Further("vouchers", "vouchers", "{type: helm, valuesFiles: [shop.yaml]}")


def kustomized(demo: Walkthrough) -> None:
    """Deploy an overlay on a base; then the ConfigMap that it generates gets another name, and the one before goes."""
    voice, front = demo.voice, demo.stage.names.front
    voice.step("A kustomization: an overlay on a base")
    commit = _added(demo, MENU, "menu", "A menu")
    plan = demo.anneal(f"plan menu --commit {commit.sha}")
    voice.check("menu/base/menu.yaml" in plan, "the path holds a kustomization.yaml: what kustomize builds is planned")
    demo.push(commit, MENU.name)
    demo.settle()
    replicas = demo.kubectl(f"get deployment menu -n {front} -o jsonpath='{{.spec.replicas}}'")
    voice.check(
        demo.is_recorded(commit, MENU.name) and replicas.strip() == "2", "it is recorded; 2 replicas, as the overlay says of its base"
    )
    voice.step("What its ConfigMap is generated from changes")
    before = _generated(demo)
    demo.edit("index.html", "Assam, 4.20", "Darjeeling, 4.80", MENU.path)
    line = demo.push(demo.repository.commit("Darjeeling today"), MENU.name)
    mounted = demo.kubectl(f"get deployment menu -n {front} -o jsonpath='{{.spec.template.spec.volumes[0].configMap.name}}'")
    after = _generated(demo)
    counts = [line.counts.get(what) for what in ("created", "configured", "pruned")]
    voice.check(
        counts == [1, 1, 1] and len(after) == 1 and after != before, "its name follows its content: one is new, the old one is pruned"
    )
    voice.check(after == [mounted.strip()], "the Deployment mounts the new one")


def _generated(demo: Walkthrough) -> list[str]:
    """Return the names of the target's ConfigMaps."""
    return [name.rpartition("/")[2] for name in demo.members(MENU.name) if name.startswith("ConfigMap/")]


def charted(demo: Walkthrough) -> None:
    """Deploy a chart with values of the shop; then a value changes, the hook runs again, and what is random stays."""
    voice, front = demo.voice, demo.stage.names.front
    voice.step("A Helm chart: values, a hook, and a random key")
    commit = _added(demo, VOUCHERS, "vouchers", "Vouchers")
    plan = demo.anneal(f"plan vouchers --commit {commit.sha}")
    voice.check(
        "randAlphaNum at vouchers/templates/key.yaml:7" in plan, "what each render makes anew is named, with the line of its template"
    )
    demo.push(commit, VOUCHERS.name)
    demo.settle()
    replicas = demo.kubectl(f"get deployment vouchers -n {front} -o jsonpath='{{.spec.replicas}}'")
    voice.check(demo.is_recorded(commit, VOUCHERS.name) and replicas.strip() == "2", "it is recorded; 2 replicas, as the shop's values say")
    (ran, ended), key = _hook(demo), _key(demo)
    made = demo.kubectl(f"get deployment vouchers -n {front} -o jsonpath='{{.metadata.creationTimestamp}}'", quiet=True).strip()
    voice.check("" < ended <= made, f"its pre-install hook, a Job, had ended before: {ended[-9:-1]}, the Deployment came at {made[-9:-1]}")
    voice.step("A value of the chart changes")
    demo.edit("shop.yaml", "percent: 10", "percent: 15", VOUCHERS.path)
    line = demo.push(demo.repository.commit("Vouchers of 15 percent"), VOUCHERS.name)
    percent = demo.kubectl(f"get deployment vouchers -n {front} -o jsonpath='{{.spec.template.spec.containers[0].env[0].value}}'")
    voice.check(line.counts.get("configured") == 1 and percent.strip() == "15", "one object was written: the Deployment")
    again, ended = _hook(demo)
    voice.check(again != ran and bool(ended), "its pre-upgrade hook has run, as a new Job")
    voice.check(_key(demo) == key, "the random key wasn't rotated")


def _hook(demo: Walkthrough) -> tuple[str, str]:
    """Return the uid of the hook's Job, and when it had succeeded; empty: it hasn't."""
    job = demo.stage.kubectl.get("job", "vouchers-tables", "-n", demo.stage.names.front)
    return str(job["metadata"]["uid"]), str(job.get("status", {}).get("completionTime", ""))


def _key(demo: Walkthrough) -> str:
    """Return the key, which isn't shown."""
    return str(demo.stage.kubectl.get("secret", "vouchers-key", "-n", demo.stage.names.front)["data"]["key"])


def _added(demo: Walkthrough, target: Further, directory: str, subject: str) -> Commit:
    """Commit a directory and add its target; nothing of it is on main yet, but a branch holds it."""
    demo.repository.add(directory)
    commit = demo.repository.commit(subject)
    demo.repository.offer()
    demo.add(target)
    return commit
