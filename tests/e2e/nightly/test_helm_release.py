"""A Helm target on a real cluster: install and upgrade with their hooks, what the cluster serves, values that each render makes anew."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from handler.config.settings import EvidenceSettings, IgnoreRule, IgnoreSelect, Wait
from handler.model.names import IDENTITY
from handler.model.plan import Plan
from handler.model.result import Outcome
from infra.controlplane.pod_failures import FATE, LOG
from tests.e2e.conftest import Open
from tests.e2e.documents import definition, pods, secret
from tests.e2e.hook_jobs import steps
from tests.e2e.one_target import Shop, told
from tests.e2e.rendered_trees import chart, get, names, push_files, text_of, unchanged, workload

ACT = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: act}\ndata:\n"
    "  install: {{ .Release.IsInstall | quote }}\n  replicas: {{ .Values.replicas | quote }}\n"
)


def hook(name: str, phases: str) -> str:
    pods = "spec: {restartPolicy: Never, containers: [{name: main, image: act:1}]}"
    return (
        f'apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: {name}\n  annotations: {{"helm.sh/hook": "{phases}"}}\n'
        f"spec: {{template: {{{pods}}}}}\n"
    )


HOOKED = {
    "templates/act.yaml": ACT,
    "templates/migrate.yaml": hook("migrate", "pre-install"),
    "templates/announce.yaml": hook("announce", "post-install"),
    "templates/upgrade.yaml": hook("upgrade", "pre-upgrade"),
}


@pytest.fixture
def shop(open_shop: Open, renderers: Path) -> Shop:
    """A shop whose objects go to its namespace."""
    opened = open_shop()
    opened.create_namespace()
    opened.configure(namespace=opened.name)
    return opened


def push(shop: Shop, files: dict[str, str], values: str = "replicas: 1\n") -> str:
    return push_files(shop, chart({"values.yaml": values, **files}))


def act(shop: Shop) -> Any:
    return get(shop, "configmap", "act")["data"]


def uids(shop: Shop) -> dict[str, str]:
    return {each["metadata"]["name"]: each["metadata"]["uid"] for each in shop.kubectl("get", "jobs", "-n", shop.name)["items"]}


def test_the_first_commit_is_an_install_and_later_ones_are_upgrades_also_one_that_goes_back(shop: Shop) -> None:
    push(shop, HOOKED)
    result = shop.applied()
    assert result.plan
    assert (result.plan.renderer, act(shop)) == ("helm", {"install": "true", "replicas": "1"})
    assert steps(shop) == {("PreSync", "migrate"): "done", ("PostSync", "announce"): "done"}
    ran, before = uids(shop), shop.versions()
    assert ran.keys() == {"migrate", "announce"}
    shop.configure()  # another process
    unchanged(shop.run("drift"))
    child = shop.child().begin(shop.job("drift")).result()
    assert child
    unchanged(child)
    push_files(shop, chart({"values.yaml": "replicas: 1\n", **HOOKED}) | {"docs/readme.md": "words"})
    assert shop.run().outcome is Outcome.UNCHANGED
    unchanged(shop.run("drift"))
    assert (uids(shop), shop.versions()) == (ran, before)

    push(shop, HOOKED, "replicas: 2\n")
    shop.applied()
    assert act(shop) == {"install": "false", "replicas": "2"}
    assert steps(shop) == {("PreSync", "upgrade"): "done"}
    again = uids(shop)
    assert {name: again[name] for name in ran} == ran
    shop.configure()
    unchanged(shop.run("drift"))
    assert uids(shop) == again

    push(shop, HOOKED)  # the first one's files
    shop.applied()
    assert act(shop) == {"install": "false", "replicas": "1"}, "what runs is upgraded, wherever git goes back to"
    assert steps(shop) == {("PreSync", "upgrade"): "done"}
    last = uids(shop)
    assert {name: last[name] for name in ran} == ran
    assert last["upgrade"] != again["upgrade"]
    shop.configure()
    unchanged(shop.run("drift"))


def test_a_chart_sees_what_the_cluster_serves_now(shop: Shop) -> None:
    offer = f"apiVersion: {shop.group}/v1\nkind: Offer\nmetadata: {{name: one}}\nspec: {{price: 1}}"
    served = f'{{{{ if .Capabilities.APIVersions.Has "{shop.group}/v1/Offer" }}}}\n{offer}\n{{{{ end }}}}\n'
    version = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: act}\ndata: {version: {{ .Capabilities.KubeVersion.Version | quote }}}\n"
    push(shop, {"templates/offer.yaml": served, "templates/act.yaml": version})
    shop.applied()
    assert act(shop) == {"version": shop.kubectl("version")["serverVersion"]["gitVersion"]}
    unchanged(shop.run("drift"))
    shop.kubectl.apply(definition(shop.group))
    shop.kubectl.run("wait", "--for=condition=Established", f"crd/offers.{shop.group}")
    assert shop.run().outcome is Outcome.UNCHANGED, "a push without change asks the cluster nothing"
    assert not names(shop, f"offers.{shop.group}")
    result = shop.run("drift")
    assert result.outcome is Outcome.APPLIED, told(result)
    assert names(shop, f"offers.{shop.group}") == {"one"}


RANDOM = {
    "values.yaml": "replicas: 0\n",
    "templates/secret.yaml": (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData:\n  fixed: a\n  password: {{ randAlphaNum 20 }}\n"
    ),
    "templates/first.yaml": (
        'apiVersion: v1\nkind: Secret\nmetadata: {name: first, annotations: {"helm.sh/hook": pre-install}}\n'
        "stringData: {password: {{ randAlphaNum 20 }}}\n"
    ),
    "templates/web.yaml": text_of(workload())
    .replace("replicas: 0", "replicas: {{ .Values.replicas }}")
    .replace(
        "    metadata:\n",
        '    metadata:\n      annotations:\n        checksum: {{ include (print $.Template.BasePath "/secret.yaml") . | sha256sum }}\n',
    ),
}
"""A password that each render makes anew, its checksum on what reads it, and a password that only an install makes."""


def secrets(shop: Shop) -> dict[str, Any]:
    return {name: get(shop, "secret", name)["data"] for name in ("db", "first")}


def pods_of(shop: Shop) -> Any:
    return get(shop, "deployment", "web")["spec"]["template"]


def anew(plan: Plan) -> list[str]:
    return [note for note in plan.notes if "anew" in note]


def test_a_password_that_each_render_makes_anew_is_made_once_and_restarts_nothing(shop: Shop) -> None:
    push_files(shop, chart(RANDOM))
    shop.applied()
    made, template = secrets(shop), pods_of(shop)
    assert template["metadata"]["annotations"]["checksum"]
    shop.configure()  # another process, which renders other passwords
    unchanged(shop.run("drift"))
    child = shop.child().begin(shop.job("drift")).result()
    assert child
    unchanged(child)
    push_files(shop, chart(RANDOM | {"values.yaml": "replicas: 1\n"}))
    shop.configure()
    plan = shop.run("oneoff", dry_run=True).plan
    assert plan
    rules = {each.partition("to say so for good: ")[2] for each in anew(plan)}
    checksum = "/spec/template/metadata/annotations/checksum"
    assert rules == {
        f"ignore: [{{select: {{kind: Secret, name: db, namespace: {shop.name}}}, paths: [/data/password]}}]",
        f"ignore: [{{select: {{kind: Deployment, name: web, namespace: {shop.name}}}, paths: [{checksum}]}}]",
    }
    result = shop.applied()
    assert result.plan
    assert [str(change.identity) for change in result.plan.writes] == [f"Deployment/{shop.name}/web"]
    assert get(shop, "deployment", "web")["spec"]["replicas"] == 1
    assert (secrets(shop), pods_of(shop)) == (made, template), "neither rotated nor restarted"

    ignored = [yaml.safe_load(rule)["ignore"][0] for rule in sorted(rules)]
    shop.configure(ignore=tuple(IgnoreRule(IgnoreSelect(**each["select"]), tuple(each["paths"])) for each in ignored))
    assert anew(unchanged(shop.run("drift"))) == []
    assert (secrets(shop), pods_of(shop)) == (made, template)
    shop.configure(ignore=())
    shop.kubectl.run("patch", "secret", "db", "-n", shop.name, "--type=merge", "-p", '{"stringData":{"fixed":"b"}}')
    corrected = shop.run("drift")
    assert corrected.outcome is Outcome.APPLIED, told(corrected)
    assert (secrets(shop), pods_of(shop)) == (made, template), "what git declares is corrected, beside the password"
    shop.kubectl.run("delete", "secret", "db", "-n", shop.name)
    shop.run("drift")
    fresh = secrets(shop)
    assert fresh["db"].keys() == made["db"].keys()
    assert fresh["db"]["password"] != made["db"]["password"], "one that is gone is made again"


def test_the_password_of_a_live_release_stays_when_it_is_taken_over(shop: Shop) -> None:
    files = {name: text for name, text in RANDOM.items() if name != "templates/first.yaml"}
    push_files(shop, chart(files))
    release = {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": shop.name}
    labels = {"app.kubernetes.io/managed-by": "Helm"}
    live = {**workload(), "metadata": {"name": "web", "namespace": shop.name, "labels": labels, "annotations": release}}
    live["spec"]["template"]["metadata"]["annotations"] = {"checksum": "of-helms-own-render"}
    kept = secret(shop.name, "db", "", labels=labels, annotations=release) | {"data": {"fixed": "YQ==", "password": "bGl2ZQ=="}}
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": [live, kept]})
    shop.kubectl.run("create", "--field-manager=helm", "-f", "-", given=given)
    template = pods_of(shop)
    refused = shop.run()
    assert refused.outcome is Outcome.FAILED, told(refused)
    shop.configure(adopt=("helm",))
    shop.applied()
    assert get(shop, "secret", "db")["data"] == kept["data"]
    assert pods_of(shop) == template
    assert get(shop, "secret", "db")["metadata"]["annotations"].keys() == {IDENTITY}
    shop.configure(adopt="unowned")
    unchanged(shop.run("drift"))
    assert get(shop, "secret", "db")["data"] == kept["data"]


def test_a_password_that_lives_on_shows_in_no_log_line(shop: Shop) -> None:
    """What a render makes anew isn't what the containers have: a log is shown without what lives."""
    template: dict[str, Any] = {
        "metadata": {"labels": {"app": "web"}, "annotations": {FATE: "crash-loop"}},
        "spec": pods({"app": "web"}, "shop:1")["spec"],
    }
    template["spec"]["containers"][0]["envFrom"] = [{"secretRef": {"name": "db"}}]
    files = {
        "templates/secret.yaml": RANDOM["templates/secret.yaml"],
        "templates/web.yaml": text_of(workload(replicas=1, template=template)),
    }
    shop.kubectl.apply(secret(shop.name, "db", "") | {"data": {"password": base64.b64encode(LOG[-1].split()[-1].encode()).decode()}})
    push_files(shop, chart(files))
    shop.configure(wait=Wait(timeout=3.0, progress_timeout=3.0), evidence=EvidenceSettings("record"))
    result = shop.run()
    assert result.outcome is Outcome.FAILED, told(result)
    assert "its log ends: " in result.message
    assert "password was ***" in result.message
    assert LOG[-1].split()[-1] not in result.message
