"""What a reader of a pull request sees of an object: git's two declarations, and of what lives only what may be shown."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.model.field_masking import MASKED
from handler.model.manifest import Manifest
from handler.model.names import FIELD_MANAGER, GroupKind, Identity
from handler.model.plan import Action, Change, FieldChange
from handler.plan.diff import field_changes
from handler.plan.takeover import foreseen
from handler.plan.visible_fields import UNSEEN, MergedObject, by_git, by_name, changed

CONFIG = Identity("", "ConfigMap", "shop", "a")
CANARY = "hunter2-canary"
Body = dict[str, Any]


def body_of(**data: Any) -> Body:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}, "data": data}


def manifest(**data: Any) -> Manifest:
    return Manifest.of(body_of(**data), "a.yaml:1")


def fields_of(value: Any) -> Body:
    """Return `fieldsV1` of a value: elements of lists by their names; other lists are leaves."""
    if isinstance(value, dict):
        return {f"f:{key}": fields_of(each) for key, each in value.items()}
    if isinstance(value, list) and value and all(isinstance(each, dict) and "name" in each for each in value):
        return {f'k:{{"name":"{each["name"]}"}}': {".": {}, **fields_of(each)} for each in value}
    return {}


def entry(owned: Mapping[str, Any], api_version: str, manager: str = FIELD_MANAGER, operation: str = "Apply") -> Body:
    declared = {key: each for key, each in owned.items() if key not in ("apiVersion", "kind", "metadata")}
    return {"manager": manager, "operation": operation, "apiVersion": api_version, "fieldsV1": fields_of(declared)}


def lives(body: Body, *entries: Body) -> Body:
    """Return an object as it lives, with its owners."""
    return {**body, "metadata": {**body["metadata"], "managedFields": list(entries)}}


def merged(
    live: Body, now: Body, then: Body, kind: GroupKind = CONFIG.group_kind, wanted: Body | None = None
) -> list[tuple[str, str, str]]:
    """Return what is shown of a member: path, live, declared. `wanted`: what an apply of `now` makes of it."""
    found = MergedObject(kind, live, now, then, now)
    wanted = wanted or foreseen(live, copy.deepcopy(now), None)
    return [(each.path, each.live, each.declared) for each in dict.fromkeys((*found.changes(), *found.drift(wanted, settled=False)))]


def seen(live: Body, now: Body, then: Body, owned: Body | None = None) -> dict[str, tuple[str, str]]:
    """Return what is shown of each field: live, declared. `owned`: what our apply wrote, None: what git declares before."""
    ours = now if owned is None else owned
    theirs = {key: each for key, each in live.items() if key not in ours}
    entries = (entry({"data": ours}, "v1"), entry({"data": theirs}, "v1", "controller", "Update"))
    found = lives(body_of(**live), *(each for each in entries if each["fieldsV1"]["f:data"]))
    return {path: (was, becomes) for path, was, becomes in merged(found, body_of(**now), body_of(**then))}


def test_a_field_that_git_declares_shows_what_lives_there() -> None:
    assert seen({"k": "1"}, {"k": "1"}, {"k": "2"}) == {"data.k": ("1", "2")}
    assert seen({"k": "0"}, {"k": "1"}, {"k": "2"}) == {"data.k": ("0", "2")}, "what was merged isn't deployed yet"
    assert seen({"k": "0"}, {"k": "1"}, {"k": "1"}) == {"data.k": ("0", "1")}
    assert seen({"k": "2"}, {"k": "1"}, {"k": "2"}) == {}


@pytest.mark.parametrize("written", ["by hand", "1", "2"])
def test_what_another_has_written_shows_no_live_value(written: str) -> None:
    """Not even that it is what is declared."""
    assert seen({"k": written}, {"k": "1"}, {"k": "2"}, {}) == {"data.k": (UNSEEN, "2")}
    same = seen({"k": written}, {"k": "1"}, {"k": "1"}, {})
    assert same == ({} if written == "1" else {"data.k": (UNSEEN, "1")})


@pytest.mark.parametrize("operation", ["Update", "Apply"])
def test_a_write_under_our_name_that_is_no_apply_shows_nothing(operation: str) -> None:
    live = lives(body_of(k="by hand"), entry({"data": {"k": ""}}, "v1", operation=operation))
    assert merged(live, body_of(k="1"), body_of(k="2")) == [("data.k", "by hand" if operation == "Apply" else UNSEEN, "2")]


@pytest.mark.parametrize("live", ["guess", "else", None])
def test_what_git_declares_for_the_first_time_is_new_whatever_lives(live: str | None) -> None:
    found = {"other": "1"} | ({"k": live} if live else {})
    assert seen(found, {"other": "1"}, {"other": "1", "k": "guess"})["data.k"] == (UNSEEN, "guess")


def test_what_git_no_longer_declares_shows_what_goes() -> None:
    assert seen({"k": "1", "x": "1"}, {"k": "1", "x": "1"}, {"x": "1"}) == {"data.k": ("1", "")}


def test_what_goes_though_git_never_declared_it_stays_unseen_also_where_the_merge_declares_it() -> None:
    live = {"k": CANARY, "x": "1"}
    assert seen(live, {"x": "1"}, {"x": "1"}, live) == {f"data.{UNSEEN}": (UNSEEN, "")}
    assert seen(live, {"x": "1"}, {"x": "1", "k": CANARY}, live) == {f"data.{UNSEEN}": (UNSEEN, ""), "data.k": (UNSEEN, CANARY)}
    assert seen(live, {"x": "1"}, {"x": "1", "j": CANARY}, live) == {f"data.{UNSEEN}": (UNSEEN, ""), "data.j": (UNSEEN, CANARY)}


@pytest.mark.parametrize("live", [{"k": "else", "x": "1"}, {"k": "decided", "x": "1"}, {"k": "else", "x": "2"}, {"k": "mine", "x": "1"}])
@pytest.mark.parametrize("action", [Action.CREATE, Action.UPDATE, Action.UNCHANGED])
def test_where_a_value_may_have_decided_what_lives_git_alone_says_what_changes(live: dict[str, str], action: Action) -> None:
    now, then = manifest(k="else", x="1"), manifest(k="mine", x="1")
    body = then.body() | {"data": live}
    change = Change(action, CONFIG, "uid", fields=field_changes(CONFIG.group_kind, body, then.body()), manifest=then)
    seen = by_git(change, now, then)
    assert (seen.action, [(each.live, each.declared) for each in seen.fields]) == (Action.UPDATE, [("else", "mine")])
    assert by_git(change, None, then).action is Action.CREATE
    assert by_git(change, then, then).action is Action.UNCHANGED
    assert by_git(change, then, then, (now, then)).action is Action.UPDATE, "with other placeholders it differs"
    pruned = replace(change, action=Action.PRUNE)
    assert by_git(pruned, now, None).action is Action.PRUNE


@pytest.mark.parametrize("live", [[{"name": "main", "env": CANARY}], {"k": CANARY}])
def test_a_list_or_map_that_becomes_a_text_shows_nothing_that_others_have_put_into_it(live: Any) -> None:
    assert seen({"k": live}, {"k": "1"}, {"k": "2"}) == {"data.k": (UNSEEN, "2")}
    assert seen({"k": live}, {"k": "1"}, {"k": "1"}) == {"data.k": (UNSEEN, "1")}


WEB = {"name": "web", "image": "web:1", "args": ["--a"], "ports": [{"containerPort": 80}]}
SIDECAR = {"name": CANARY, "image": CANARY, "env": [{"name": "A", "value": CANARY}]}


def pods(*containers: dict[str, Any]) -> Manifest:
    spec = {"template": {"spec": {"containers": list(containers)}}}
    return Manifest.of(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "shop"}, "spec": spec}, "a.yaml:1"
    )


def of_pods(
    live: Manifest, now: Manifest, then: Manifest, owned: Manifest | None = None, wanted: Manifest | None = None
) -> list[tuple[str, str, str]]:
    """Return what is shown of a Deployment's fields, without the path to its containers. `owned`: what our apply wrote, None: `live`."""
    found = lives(live.body(), entry((owned or live).body(), "apps/v1"))
    shown = merged(found, now.body(), then.body(), live.identity.group_kind, wanted.body() if wanted else None)
    return [(path.removeprefix("spec.template.spec.containers"), was, becomes) for path, was, becomes in shown]


def test_an_element_that_only_lives_is_not_named() -> None:
    git = pods(WEB)
    assert of_pods(pods(WEB, SIDECAR), git, git) == [(f"[{UNSEEN}]", UNSEEN, "")]
    injected = pods(WEB | {"env": [{"name": CANARY, "value": CANARY}]})
    assert of_pods(injected, git, git) == [(f"[name=web].{UNSEEN}", UNSEEN, "")]
    with_env = pods(WEB | {"env": [{"name": "B", "value": "1"}]})
    assert of_pods(injected, with_env, with_env) == [
        ("[name=web].env[(not shown)]", UNSEEN, ""),
        ("[name=web].env[name=B]", "", _env("B", "1")),
    ]
    volume = pods(WEB | {"volumeMounts": [{"mountPath": f"/{CANARY}"}]})
    assert of_pods(volume, git, git) == [(f"[name=web].{UNSEEN}", UNSEEN, "")]


def _env(name: str, value: str) -> str:
    return f'{{"name": "{name}", "value": "{value}"}}'


def test_an_element_that_git_declares_is_named_by_what_names_it() -> None:
    assert of_pods(pods(WEB | {"image": "by hand"}), pods(WEB), pods(WEB)) == [("[name=web].image", "by hand", "web:1")]
    now, then = pods(WEB), pods(WEB | {"ports": [{"containerPort": 81}]})
    assert of_pods(pods(WEB), now, then) == [
        ("[name=web].ports[containerPort=80]", '{"containerPort": 80}', ""),
        ("[name=web].ports[containerPort=81]", UNSEEN, '{"containerPort": 81}'),
    ]
    added = pods(WEB, {"name": "new", "image": "new:1"})
    assert of_pods(pods(WEB), pods(WEB), added) == [("[name=new]", UNSEEN, '{"image": "new:1", "name": "new"}')]
    assert of_pods(added, added, pods(WEB)) == [("[name=new]", '{"image": "new:1", "name": "new"}', "")]


def test_what_stands_at_a_position_may_be_another_element_than_gits() -> None:
    live, git = pods(WEB | {"args": [f"--key={CANARY}", "--a"]}), pods(WEB)
    assert of_pods(live, git, git) == [("[name=web].args[0]", UNSEEN, "--a"), ("[name=web].args[(not shown)]", UNSEEN, "")]
    assert of_pods(git, git, pods(WEB | {"args": ["--b"]})) == [("[name=web].args[0]", "--a", "--b")]


def test_what_a_server_or_an_apply_makes_of_a_list_shows_as_git_declares_it() -> None:
    git = pods(WEB, {"name": "b"})
    live, wanted = pods({"name": "b"}, SIDECAR, WEB), pods(WEB, SIDECAR, {"name": "b", "image": CANARY})
    seen = of_pods(live, git, git, git, wanted)
    assert ("[order]", UNSEEN, UNSEEN) in seen
    assert not [each for each in seen if CANARY in "".join(each)]
    turned = pods(WEB | {"args": [CANARY, "x"]}), pods(WEB | {"args": ["x", CANARY]})
    assert not [each for each in of_pods(turned[0], git, git, git, turned[1]) if CANARY in "".join(each)]
    annotated = [
        Manifest.of({**git.body(), "metadata": {"name": "a", "namespace": "shop", "annotations": {"at": at}}}, "")
        for at in (CANARY, CANARY * 2)
    ]
    assert of_pods(annotated[0], git, git, git, annotated[1]) == [("metadata.(not shown)", UNSEEN, UNSEEN)]


@pytest.mark.parametrize("text", ["x", {"a": "b"}, 5])
def test_where_a_list_becomes_another_type_nothing_of_it_is_shown(text: Any) -> None:
    then = pods(WEB).body()
    then["spec"]["template"]["spec"]["containers"] = text
    [(path, live, declared)] = of_pods(pods(WEB, SIDECAR), pods(WEB), Manifest.of(then, "a.yaml:1"), pods(WEB))
    assert (path, live) == ("", UNSEEN)
    assert CANARY not in declared


def test_of_an_object_that_lives_while_the_base_is_not_known_only_its_name_shows() -> None:
    fields = (FieldChange("data.k", "2", CANARY),)
    for action in (Action.UPDATE, Action.UNCHANGED):
        seen = by_name(Change(action, CONFIG, "uid", fields=fields))
        assert (seen.action, seen.fields) == (Action.UPDATE, ())
    assert by_name(Change(Action.CREATE, CONFIG, fields=fields)).action is Action.CREATE


def values(depth: int = 1) -> st.SearchStrategy[Any]:
    """What a field may hold: texts, maps, lists of named elements and of others."""
    text = st.sampled_from(["1", "2", CANARY])
    if not depth:
        return text
    named = st.lists(st.sampled_from("ab"), unique=True).flatmap(
        lambda names: st.tuples(*(st.fixed_dictionaries({"name": st.just(name)}, optional={"v": values(depth - 1)}) for name in names))
    )
    return st.one_of(text, st.dictionaries(st.sampled_from("ab"), values(depth - 1)), st.lists(text, max_size=2), named.map(list))


@given(st.data())
def test_whether_a_guess_is_what_lives_shows_nowhere(data: st.DataObject) -> None:
    """Of two objects that differ in what our apply didn't write alone, the same is seen, whatever the merge brings of it."""
    now = data.draw(st.dictionaries(st.sampled_from("abcd"), values()))
    then = data.draw(st.dictionaries(st.sampled_from("abcd"), values())) | {"guess": data.draw(values())}
    shared = {"data": now}
    others = [entry({"data": {"guess": each}}, "v1", "controller", "Update") for each in (CANARY, {"a": "b"})]
    found = []
    for hidden, other in zip((then["guess"], data.draw(values())), others, strict=True):
        live = lives(body_of(**now, guess=hidden), entry(shared, "v1"), other)
        found.append(merged(live, body_of(**now), body_of(**then)))
    assert found[0] == found[1]
    assert ("data.guess", UNSEEN) in [(path, was) for path, was, _ in found[0]]


@given(st.data())
def test_a_server_is_asked_nothing_that_the_merge_brings_where_live_may_not_be_seen(data: st.DataObject) -> None:
    now = data.draw(st.dictionaries(st.sampled_from("abcd"), values())) | {"x": "1"}
    guesses = [{**now, "guess": data.draw(values()), "a": data.draw(values())} for _ in range(2)]
    drifted = entry({"data": {key: each for key, each in now.items() if key != "a"}}, "v1")
    live = lives(body_of(**{**now, "a": CANARY}), drifted)
    asked = [
        MergedObject(CONFIG.group_kind, live, body_of(**now), body_of(**each), body_of(**now)).held(body_of(**each)) for each in guesses
    ]
    assert [each["data"].keys() - {"a"} for each in asked] == [now.keys() - {"a"}] * 2
    assert {str(each["data"].get("a")) for each, guess in zip(asked, guesses, strict=True) if guess["a"] != now.get("a")} <= {
        "None",
        str(now.get("a")),
    }


def test_objects_that_a_merge_adds_drops_or_declares_otherwise_are_its_own() -> None:
    same, other = Identity("", "ConfigMap", "shop", "b"), Identity("", "ConfigMap", "shop", "c")
    now = {CONFIG: manifest(k="1"), same: manifest(k="1")}
    assert changed(now, {CONFIG: manifest(k="2"), same: manifest(k="1"), other: manifest()}) == {CONFIG, other}
    assert changed(now, {same: manifest(k="1")}) == {CONFIG}


def test_only_a_change_beside_a_value_that_may_be_seen_is_one_that_a_refusal_may_name() -> None:
    live = body_of(ours="1", theirs="1", same="1")
    found = lives(live, entry({"data": {"ours": "", "same": ""}}, "v1"), entry({"data": {"theirs": ""}}, "v1", "controller", "Update"))
    now, then = body_of(ours="1", same="1"), body_of(ours="2", theirs="2", same="1")
    merged = MergedObject(CONFIG.group_kind, found, now, then, now)
    assert [merged.shows(f"data.{key}") for key in ("ours", "theirs", "same")] == [True, False, False]


def test_a_hidden_value_that_git_declares_otherwise_is_a_change_without_a_look_at_what_lives() -> None:
    now, then = {"admin-token": "a", "x": "1"}, {"admin-token": "b", "x": "1"}
    for live in ("a", "b", CANARY):
        assert seen({"admin-token": live, "x": "1"}, now, then) == {"data.admin-token": (MASKED, MASKED)}
    assert seen({"admin-token": CANARY, "x": "1"}, now, now) == {}
    assert seen({"admin-token": "a", "x": "1"}, now, {"x": "1"}) == {"data.admin-token": (MASKED, "")}


# --- what only the server writes otherwise
def settled(live: str, declared: Any, *managers: str) -> list[FieldChange]:
    """Return what is said of a field that the server may have written otherwise, and that these managers own."""
    found = lives(body_of(k=live), *(entry({"data": {"k": ""}}, "v1", each) for each in managers))
    now = body_of(k=declared)
    return list(MergedObject(CONFIG.group_kind, found, now, now, now).drift(now, settled=True))


def test_what_git_declares_alike_and_only_we_have_written_is_no_change() -> None:
    assert settled("2", "2000m", FIELD_MANAGER) == []
    assert settled("2", "2000m", FIELD_MANAGER, "kubectl") == [FieldChange("data.k", "2000m", "2")]
    assert settled("2", "2000m", "kubectl") == [FieldChange("data.k", "2000m", UNSEEN)]


@pytest.mark.parametrize(("now", "then"), [(80, "80"), (1, True), (1, 1.5)])
def test_a_value_of_another_type_is_another_value(now: Any, then: Any) -> None:
    assert seen({"k": now}, {"k": now}, {"k": then}) != {}


# --- what a server is asked
def asked(live: Manifest, now: Manifest, then: Manifest) -> list[dict[str, Any]]:
    """Return the containers that a server is asked about. `live`: as our apply wrote it."""
    found = lives(live.body(), entry(live.body(), "apps/v1"))
    held = MergedObject(live.identity.group_kind, found, now.body(), then.body(), now.body()).held(then.body())
    containers: list[dict[str, Any]] = held["spec"]["template"]["spec"]["containers"]
    return containers


def test_what_git_declares_for_the_first_time_is_asked_about_as_it_lives() -> None:
    new = {"name": "new", "image": "new:1"}
    changed = WEB | {"image": "web:2"}
    assert asked(pods(WEB), pods(WEB), pods(changed, new)) == [changed]
    ours = {"name": "new", "image": "new:0"}
    assert asked(pods(WEB, ours), pods(WEB), pods(changed, new)) == [changed, ours]
    assert asked(pods(WEB), pods(WEB), pods(WEB | {"args": ["--a", "--b"], "tty": True})) == [WEB], "a list as a whole"
    two = {"name": "two"}
    assert asked(pods(WEB, two), pods(WEB, two), pods(two, WEB)) == [two, WEB], "an order is git's"
    assert asked(pods(WEB, two), pods(WEB, two), pods(WEB)) == [WEB]
