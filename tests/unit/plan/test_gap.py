"""Fields of a live object against git: equal, differing, undeclared, changing by themselves; masked; counted, where not listed."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest

from handler.config.settings import IgnoreRule, IgnoreSelect
from handler.model.hidden_fields import HiddenFields
from handler.model.manifest import Manifest
from handler.model.names import Identity
from handler.model.plan import Action, Change, FieldChange
from handler.model.render import UnstableFields
from handler.plan.compare import Comparison
from handler.plan.gap import DEFAULT, DROPPED, FILLED, GOES, MORE, NOT_THERE, STAYS, FieldGaps, FieldState, GapField, ObjectGap
from handler.plan.ignore import Ignoring
from tests.unit.plan.samples import OURS, desired, document, entry, live

WEB = Identity("", "ConfigMap", "shop", "web")
EQUAL, DIFFERS, UNDECLARED, ITSELF = FieldState.EQUAL, FieldState.DIFFERS, FieldState.UNDECLARED, FieldState.ITSELF
REPLICAS = IgnoreRule(IgnoreSelect(kind="Deployment"), ("/spec/replicas",))


def gap_of(declared: dict[str, Any], lives: dict[str, Any], ignoring: Ignoring = Ignoring(()), **parts: Any) -> ObjectGap:  # noqa: B008 - frozen
    identity = Identity(declared["apiVersion"].rpartition("/")[0], declared["kind"], "shop", declared["metadata"]["name"])
    gaps = parts.pop("gaps", None) or FieldGaps()
    gaps.see(identity, copy.deepcopy(declared), lives, ignoring, parts.get("hidden", HiddenFields()))
    return gaps.found[identity]


def told(gap: ObjectGap) -> dict[str, tuple[FieldState, str, str, str, str]]:
    return {each.path: (each.state, each.declared, each.live, each.manager, each.why) for each in gap.fields}


def test_a_declared_field_is_equal_or_differs_by_its_value_and_its_absence() -> None:
    body = document(data={"a": "1", "b": "2", "c": "3"})
    lives = live(body) | {"data": {"a": "1", "b": "9"}}
    gap = gap_of(body, lives)
    assert told(gap) == {
        "data.a": (EQUAL, "1", "1", "anneal", ""),
        "data.b": (DIFFERS, "2", "9", "anneal", ""),
        "data.c": (DIFFERS, "3", "", "anneal", NOT_THERE),
    }
    assert gap.counts == {"equal": 1, "differs": 2, "undeclared": 0, "itself": 0}


def test_what_live_alone_has_is_somebodys_or_there_by_itself() -> None:
    body = document("Deployment", api="apps/v1", spec={"paused": True})
    lives = live(body)
    lives["spec"] |= {"replicas": 3, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}, "minReadySeconds": 5}
    lives["metadata"] |= {"annotations": {"rev": "1", "note": "x"}, "finalizers": ["acme.io/held"], "generation": 4}
    lives["metadata"]["managedFields"] += [
        entry({"f:spec": {"f:replicas": {}}}, "hpa", "Update", subresource="scale"),
        entry({"f:metadata": {"f:annotations": {".": {}, "f:rev": {}}}}, "controller", "Update", subresource="status"),
        entry({"f:metadata": {"f:annotations": {"f:note": {}}, "f:finalizers": {'v:"acme.io/held"': {}}}}, "operator", "Update"),
        entry({"f:spec": {"f:minReadySeconds": {}}}, "anneal"),
    ]
    lives["status"] = {"readyReplicas": 3}
    assert told(gap_of(body, lives)) == {
        "spec.paused": (EQUAL, "true", "true", "anneal", ""),
        "spec.replicas": (ITSELF, "", "3", "hpa", "written through scale"),
        "spec.strategy": (ITSELF, "", '{"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}', "", DEFAULT),
        "spec.minReadySeconds": (UNDECLARED, "", "5", "anneal", GOES),
        "metadata.annotations.rev": (ITSELF, "", "1", "controller", "written through status"),
        "metadata.annotations.note": (UNDECLARED, "", "x", "operator", STAYS),
        "metadata.finalizers": (ITSELF, "", '["acme.io/held"]', "operator", "kept by controllers"),
    }


def test_what_is_ignored_changes_by_itself_and_says_by_what() -> None:
    body = document(
        "Deployment", api="apps/v1", spec={"replicas": 2, "paused": True}, metadata={"annotations": {"anneal.dev/ignore": "/spec/paused"}}
    )
    lives = live(body) | {"spec": {"replicas": 5, "paused": False}}
    found = told(gap_of(body, lives, Ignoring((REPLICAS,))))
    assert found["spec.replicas"] == (ITSELF, "2", "5", "anneal", "ignored by a rule of the target")
    assert found["spec.paused"] == (ITSELF, "true", "false", "anneal", "ignored by anneal.dev/ignore")
    scaled = told(gap_of(body, lives, Ignoring((), frozenset({("Deployment", "shop", "web")}))))
    assert scaled["spec.replicas"][4] == "scaled by an autoscaler"
    hook = document(
        "ValidatingWebhookConfiguration", api="admissionregistration.k8s.io/v1", webhooks=[{"name": "a", "clientConfig": {"caBundle": ""}}]
    )
    filled = hook | {"webhooks": [{"name": "a", "clientConfig": {"caBundle": "Q0E="}}]}
    assert told(gap_of(hook, filled))["webhooks[name=a].clientConfig.caBundle"][4] == "filled in by a controller"


def pods(*containers: dict[str, Any], **more: Any) -> dict[str, Any]:
    return document("Pod", spec={"containers": list(containers), **more})


PORT = 'k:{"containerPort":80,"protocol":"TCP"}'


def test_elements_of_lists_are_told_by_name_and_default_keys_are_filled_in() -> None:
    body = pods({"name": "web", "ports": [{"containerPort": 80}], "args": ["a"], "env": []})
    lives = live(
        body,
        {"f:spec": {"f:containers": {'k:{"name":"web"}': {".": {}, "f:name": {}, "f:ports": {PORT: {".": {}, "f:containerPort": {}}}}}}},
    )
    lives["spec"]["containers"] = [
        {"name": "proxy", "image": "proxy:1"},
        {"name": "web", "ports": [{"containerPort": 80, "protocol": "TCP"}], "args": ["a", "b"], "env": []},
    ]
    lives["metadata"]["managedFields"].append(entry({"f:spec": {"f:containers": {'k:{"name":"proxy"}': {}}}}, "injector", "Update"))
    assert told(gap_of(body, lives)) == {
        "spec.containers[name=web].name": (EQUAL, "web", "web", "anneal", ""),
        "spec.containers[name=web].ports[containerPort=80,protocol=TCP].containerPort": (EQUAL, "80", "80", "anneal", ""),
        "spec.containers[name=web].ports[containerPort=80,protocol=TCP].protocol": (EQUAL, "TCP", "TCP", "", ""),
        "spec.containers[name=web].args": (DIFFERS, '["a"]', '["a", "b"]', "", ""),
        "spec.containers[name=web].env": (EQUAL, "[]", "[]", "", ""),
        "spec.containers[name=proxy]": (UNDECLARED, "", '{"name": "proxy", "image": "proxy:1"}', "injector", STAYS),
    }


def test_who_owns_a_map_whole_owns_what_is_in_it_and_an_empty_one_is_one_field() -> None:
    body = document(data={"a": "1"}, empty={})
    lives = live(body, {"f:data": {"f:a": {}}}) | {"theirs": {"x": {"y": "1"}}, "nobody": {"z": "1"}}
    lives["metadata"]["managedFields"].append(entry({"f:theirs": {"f:x": {}}}, "operator", "Update"))
    found = told(gap_of(body, lives))
    assert (found["theirs.x"], found["nobody"][0]) == ((UNDECLARED, "", '{"y": "1"}', "operator", STAYS), ITSELF)
    assert found["empty"][:3] == (EQUAL, "{}", "{}")


def test_elements_without_a_key_are_told_whole() -> None:
    body = document("Widget", api="acme.io/v1", spec={"rules": [{"from": "a"}, {"name": "x", "from": "b"}], "gone": {"a": {"b": 1}}})
    lives = live(body) | {"spec": {"rules": [{"from": "a"}, {"name": "x", "from": "c"}]}}
    assert told(gap_of(body, lives)) == {
        "spec.rules[0].from": (EQUAL, "a", "a", "anneal", ""),
        "spec.rules[1]": (DIFFERS, '{"name": "x", "from": "b"}', '{"name": "x", "from": "c"}', "anneal", ""),
        "spec.gone": (DIFFERS, '{"a": {"b": 1}}', "", "anneal", NOT_THERE),
    }


# --- what is never shown
def test_of_a_secret_nothing_says_that_a_value_equals() -> None:
    body = document("Secret", data={"same": "Y2FuYXJ5", "other": "YQ=="}, type="Opaque")
    lives = live(body) | {"data": {"same": "Y2FuYXJ5", "other": "Yg==", "theirs": "Yw=="}}
    lives["metadata"]["managedFields"].append(entry({"f:data": {"f:theirs": {}}}, "operator", "Update"))
    gap = gap_of(body, lives)
    assert told(gap) == {
        "data.other": (DIFFERS, "***", "***", "anneal", ""),
        "data.theirs": (UNDECLARED, "", "***", "operator", STAYS),
        "type": (EQUAL, "Opaque", "Opaque", "anneal", ""),
    }
    assert gap.counts["equal"] == 1
    gaps, secret = FieldGaps(), Identity("", "Secret", "shop", "web")
    gap_of(body, lives, gaps=gaps)
    written = gaps.of(Change(Action.UNCHANGED, secret, manifest=ITEM))
    assert written
    assert [each.path for each in written.fields] == ["data.theirs", "type"], "that the server calls it the same isn't told"
    unlisted = gap_of(body, lives, gaps=FieldGaps(most=0))
    assert (unlisted.equal, unlisted.counts["equal"]) == ((("type", False),), 1)


def hiding(body: dict[str, Any], *pointers: str) -> HiddenFields:
    return HiddenFields.of(replace(Manifest.of(body), hidden=pointers))


def test_fields_that_a_commit_hides_are_masked_on_both_sides_and_of_them_nothing_equals() -> None:
    body = document(data={"a": "1", "declared": "2", "same": "3"})
    lives = live(body) | {"data": {"a": "1", "declared": "9", "same": "3"}}
    gap = gap_of(body, lives, hidden=hiding(body, "/data/declared", "/data/same"))
    assert told(gap) == {
        "data.a": (EQUAL, "1", "1", "anneal", ""),
        "data.declared": (DIFFERS, "***", "***", "anneal", ""),
    }


def test_a_value_made_anew_by_each_render_is_masked_and_not_compared() -> None:
    body = document(data={"a": "1", "seed": "now"})
    unstable = {WEB: UnstableFields(("/data/seed",), "randAlpha")}
    lives = live(body) | {"data": {"a": "1", "seed": "then"}}
    assert told(gap_of(body, lives, Ignoring((), unstable=unstable)))["data.seed"] == (DIFFERS, "***", "***", "anneal", "")
    assert "data.seed" not in told(gap_of(body, live(body), Ignoring((), unstable=unstable)))


def test_an_equal_value_that_is_masked_in_part_is_not_told() -> None:
    body = document("Widget", api="acme.io/v1", spec={"rules": [{"name": "x", "password": "hush"}, {"from": "a"}]})
    assert list(told(gap_of(body, live(body)))) == ["spec.rules[1].from"]


# --- how much is listed
def test_equal_fields_and_defaults_are_counted_and_listed_while_they_are_few_or_asked_for() -> None:
    body = document(data={"a": "1", "b": "2"})
    lives = live(body) | {"immutable": False}

    def named(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        other = document(name=name, data=body["data"])
        return other, live(other) | {"immutable": False}

    few, gaps = FieldGaps(), FieldGaps(most=2)
    assert len(gap_of(body, lives, gaps=few).fields) == 3
    first, second = gap_of(body, lives, gaps=gaps), gap_of(*named("other"), gaps=gaps)
    assert (len(first.fields), second) == (3, ObjectGap((), (("data.a", False), ("data.b", False)), 1))
    assert second.counts == first.counts == {"equal": 2, "differs": 0, "undeclared": 0, "itself": 1}
    one = FieldGaps("ConfigMap/shop/other")
    assert gap_of(body, lives, gaps=one).fields == ()
    assert len(gap_of(*named("other"), gaps=one).fields) == 3


# --- with the plan
ITEM = Manifest.of(document(metadata={"namespace": "shop"}), "web.yaml:1")


def change(action: Action, *fields: FieldChange, manifest: Manifest | None = ITEM) -> Change:
    return Change(action, WEB, "uid", "7", fields=fields, manifest=manifest)


def test_what_the_server_calls_the_same_is_equal_and_what_it_changes_differs() -> None:
    body = document(data={"cpu": "1000m", "a": "1", "b": "1"}, spec={"list": {"x": "1"}})
    lives = live(body) | {"data": {"cpu": "1", "a": "1", "b": "2"}}
    gaps = FieldGaps()
    gap_of(body, lives, gaps=gaps)
    same = gaps.of(change(Action.UNCHANGED))
    assert same
    assert told(same)["data.cpu"] == (EQUAL, "1000m", "1", "anneal", "the same to the API server")
    becomes = (FieldChange("data.b", "1", "2", "kubectl-edit"), FieldChange("data.c", "", "3", "kubectl-edit"), FieldChange("new", "4", ""))
    found = gaps.of(change(Action.UPDATE, *becomes))
    assert found
    assert [each for each in found.fields if each.state is not EQUAL] == [
        GapField("data.b", DIFFERS, "1", "2", "kubectl-edit"),
        GapField("data.c", UNDECLARED, "", "3", "kubectl-edit", GOES),
        GapField("new", DIFFERS, "4", "", "", NOT_THERE),
    ]
    lives["metadata"]["managedFields"].append(entry({"f:data": {"f:dropped": {}}}))
    lives["data"]["dropped"] = "1"
    gap_of(body, lives, gaps=gaps)
    anew, kept = gaps.of(change(Action.RECREATE)), gaps.of(change(Action.UNCHANGED))
    assert anew
    assert kept
    assert (told(anew)["data.b"][0], told(anew)["data.dropped"][0]) == (DIFFERS, UNDECLARED)
    assert told(kept)["data.dropped"][0] is ITSELF, "no run removes it: the plan knows"
    assert gaps.of(change(Action.PRUNE, manifest=None)) is None
    assert gaps.of(Change(Action.CREATE, Identity("", "ConfigMap", "shop", "new"), manifest=ITEM)) is None


def test_equal_fields_that_arent_listed_leave_the_count_when_the_plan_changes_them() -> None:
    gap = ObjectGap((), tuple((path, path == "data") for path in ("spec.a.b", "spec.a[x=1].c", "spec.ab", "data")), 2)

    def left(*changes: FieldChange) -> list[str]:
        return [path for path, _ in gap.judged(change(Action.UPDATE, *changes)).equal]

    assert left(FieldChange("spec.a", "1", '{"b": 1}')) == ["spec.ab", "data"]
    assert left(FieldChange("data[order]", "1", "2"), FieldChange("spec.ab", "1", "2")) == ["spec.a.b", "spec.a[x=1].c"]
    assert gap.judged(change(Action.UPDATE, FieldChange("spec.a", "***", "***"))).counts["differs"] == 1
    assert left(FieldChange("spec.a", "***", "***")) == ["spec.ab", "data"], "what is masked may be a map"
    assert gap.judged(change(Action.UNCHANGED)).equal == gap.equal


@pytest.mark.parametrize(
    ("changed", "others"),
    [("app.kubernetes.io/version", ("app", "apps")), ("app", ("app.kubernetes.io/version", "app.kubernetes.io/name"))],
)
def test_a_key_with_dots_isnt_within_the_key_that_it_begins_with(changed: str, others: tuple[str, ...]) -> None:
    body = document(metadata={"labels": {changed: "new"}})
    lives = live(body)
    lives["metadata"]["labels"] |= {changed: "old"} | dict.fromkeys(others, "x")
    lives["metadata"]["managedFields"].append(
        entry({"f:metadata": {"f:labels": {f"f:{name}": {} for name in others}}}, "kubectl-label", "Update")
    )
    found = gap_of(body, lives).judged(change(Action.UPDATE, FieldChange(f"metadata.labels.{changed}", "new", "old", "anneal")))
    assert {path: each[0] for path, each in told(found).items()} == {
        f"metadata.labels.{changed}": DIFFERS,
        **{f"metadata.labels.{name}": UNDECLARED for name in others},
    }


def test_a_port_is_named_as_the_server_names_it_whether_git_writes_its_protocol_or_not() -> None:
    body = document("Service", spec={"ports": [{"port": 81}]})
    lives = live(document("Service", spec={"ports": [{"port": 80, "protocol": "TCP"}]}))
    becomes = (
        FieldChange("spec.ports[port=81,protocol=TCP]", '{"port": 81}', ""),
        FieldChange("spec.ports[port=80,protocol=TCP]", "", '{"port": 80}'),
    )
    found = gap_of(body, lives).judged(change(Action.UPDATE, *becomes))
    assert {path: each[0] for path, each in told(found).items()} == {becomes[0].path: DIFFERS, becomes[1].path: UNDECLARED}


def test_the_protocol_of_an_unchanged_list_is_filled_in() -> None:
    body = document("NetworkPolicy", api="networking.k8s.io/v1", spec={"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]})
    lives = live(body)
    lives["spec"]["ports"][0]["protocol"] = "TCP"
    assert told(gap_of(body, lives)) == {
        "spec.ports[port=80,protocol=TCP].port": (EQUAL, "80", "80", "anneal", ""),
        "spec.ports[port=80,protocol=TCP].protocol": (ITSELF, "", "TCP", "anneal", FILLED),
        "spec.ports[port=53,protocol=UDP].port": (EQUAL, "53", "53", "anneal", ""),
        "spec.ports[port=53,protocol=UDP].protocol": (EQUAL, "UDP", "UDP", "anneal", ""),
    }


def test_what_others_add_to_a_set_is_undeclared() -> None:
    body = document("Widget", api="acme.io/v1", spec={"set": ["a"], "list": ["a"]})
    lives = live(body, {"f:spec": {"f:set": {'v:"a"': {}}, "f:list": {}}}) | {"spec": {"set": ["a", "b"], "list": ["a", "b"]}}
    lives["metadata"]["managedFields"].append(entry({"f:spec": {"f:set": {'v:"b"': {}}}}, "other", "Update"))
    found = gap_of(body, lives).judged(change(Action.UNCHANGED))
    assert told(found)["spec.set"] == (UNDECLARED, '["a"]', '["a", "b"]', "other", MORE)
    masked = gap_of(body, lives, hidden=hiding(body, "/spec/set")).judged(change(Action.UNCHANGED))
    assert "spec.set" not in told(masked), "that all of it lives would say what it is"
    lives["spec"]["set"] = ["b", "c"]
    assert told(gap_of(body, lives))["spec.set"][0] is DIFFERS, "what git declares is gone"


@pytest.mark.parametrize(
    ("declared", "state", "why"),
    [("x", ITSELF, DROPPED), ({}, EQUAL, "the same to the API server"), (False, EQUAL, "the same to the API server")],
)
def test_what_the_server_doesnt_keep_is_equal_only_where_nothing_is_lost(declared: Any, state: FieldState, why: str) -> None:
    body = document("Widget", api="acme.io/v1", spec={"a": 1, "b": declared})
    lives = live(body) | {"spec": {"a": 1}}
    found = gap_of(body, lives).judged(change(Action.UNCHANGED))
    assert (told(found)["spec.b"][0], told(found)["spec.b"][4]) == (state, why)


def test_a_comparison_tells_the_gap_of_what_it_compares_and_of_nothing_else() -> None:
    declared = {item.identity: item for item in desired(document(data={"a": "1"}))}
    gaps = FieldGaps()
    found = Comparison(OURS, declared, Ignoring(()), undeclared={}, gaps=gaps)
    found.see([live(declared[WEB].manifest.body())])
    assert (list(found.same), gaps.found[WEB].counts["equal"]) == ([WEB], 1)
    other = Identity("", "ConfigMap", "shop", "other")
    body = document(name="other")
    found.taken_over(other, body, live(body), adopted=False)
    assert list(gaps.found) == [WEB]
