"""Which live values of a plan a reader of a pull request sees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.model.field_masking import MASKED
from handler.model.manifest import Manifest
from handler.model.names import FIELD_MANAGER, Identity
from handler.model.plan import Action, Change, FieldChange
from handler.plan.diff import field_changes
from handler.plan.visible_fields import UNSEEN, by_git, by_name, changed, visible, with_masked, without_settled

CONFIG = Identity("", "ConfigMap", "shop", "a")
CANARY = "hunter2-canary"


def manifest(**data: str) -> Manifest:
    return Manifest.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}, "data": data}, "a.yaml:1")


def seen(live: dict[str, str], now: Manifest | None, then: Manifest) -> dict[str, tuple[str, str]]:
    """Return what is shown of each field: live, declared."""
    body = then.body() | {"data": live}
    change = Change(Action.UPDATE, CONFIG, fields=field_changes(CONFIG.group_kind, body, then.body()), manifest=then)
    return {each.path: (each.live, each.declared) for each in visible(change, now, then).fields}


def test_a_field_that_git_declares_shows_what_lives_there() -> None:
    assert seen({"k": "1"}, manifest(k="1"), manifest(k="2")) == {"data.k": ("1", "2")}


def test_drift_of_a_field_that_git_declares_before_and_after_is_shown() -> None:
    assert seen({"k": "by hand", "x": "1"}, manifest(k="1", x="1"), manifest(k="1", x="1")) == {"data.k": ("by hand", "1")}


def test_what_git_declares_for_the_first_time_shows_no_live_value() -> None:
    assert seen({"k": CANARY, "other": "1"}, manifest(other="1"), manifest(k="2", other="1")) == {"data.k": (UNSEEN, "2")}


def test_what_git_no_longer_declares_shows_what_goes() -> None:
    assert seen({"k": "1", "x": "1"}, manifest(k="1", x="1"), manifest(x="1")) == {"data.k": ("1", "")}


def test_what_lives_and_git_never_declared_stays_unseen() -> None:
    assert seen({"k": CANARY, "x": "1"}, manifest(x="1"), manifest(x="1")) == {f"data.{UNSEEN}": (UNSEEN, "")}


def test_where_the_base_declares_nothing_of_an_object_or_cannot_be_rendered_no_live_value_is_shown() -> None:
    assert seen({"k": CANARY}, None, manifest(k="2")) == {"data.k": (UNSEEN, "2")}


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


def test_a_map_that_appears_beside_a_canary_shows_nothing_of_it() -> None:
    then = Manifest.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}, "data": {"x": "1"}}, "")
    now = Manifest.of({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "shop"}}, "")
    change = Change(Action.UPDATE, CONFIG, fields=(FieldChange("data", '{"x": "1"}', f'{{"k": "{CANARY}"}}', "someone"),), manifest=then)
    assert visible(change, now, then).fields == (FieldChange("data", '{"x": "1"}', UNSEEN),)


@pytest.mark.parametrize("live", [f'[{{"name": "main", "env": "{CANARY}"}}]', f'{{"k": "{CANARY}"}}'])
def test_a_list_or_map_that_becomes_a_text_shows_nothing_that_others_have_put_into_it(live: str) -> None:
    now, then = manifest(k="1"), manifest(k="2")
    change = Change(Action.UPDATE, CONFIG, fields=(FieldChange("data.k", "2", live), FieldChange("data.other", "2", live)), manifest=then)
    assert [each.live for each in visible(change, now, then).fields] == [UNSEEN, UNSEEN]


WEB = {"name": "web", "image": "web:1", "args": ["--a"], "ports": [{"containerPort": 80}]}
SIDECAR = {"name": CANARY, "image": CANARY, "env": [{"name": "A", "value": CANARY}]}


def pods(*containers: dict[str, Any]) -> Manifest:
    spec = {"template": {"spec": {"containers": list(containers)}}}
    return Manifest.of(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "a", "namespace": "shop"}, "spec": spec}, "a.yaml:1"
    )


def of_pods(live: Manifest, now: Manifest | None, then: Manifest, wanted: Manifest | None = None) -> list[tuple[str, str, str]]:
    """Return what is shown of a Deployment's fields, without the path to its containers. `wanted`: what the server makes of it."""
    kind = live.identity.group_kind
    change = Change(Action.UPDATE, live.identity, fields=field_changes(kind, live.body(), (wanted or then).body()), manifest=then)
    return [
        (each.path.removeprefix("spec.template.spec.containers"), each.live, each.declared) for each in visible(change, now, then).fields
    ]


def test_an_element_that_only_lives_is_not_named() -> None:
    git = pods(WEB)
    assert of_pods(pods(WEB, SIDECAR), git, git) == [(f"[{UNSEEN}]", UNSEEN, "")]
    assert of_pods(pods(WEB, SIDECAR), None, git) == [(f"[{UNSEEN}]", UNSEEN, "")]
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
    assert of_pods(pods(WEB | {"ports": [{"containerPort": 80, "protocol": "TCP"}]}), now, then) == [
        ("[name=web].ports[containerPort=80,protocol=TCP]", UNSEEN, ""),
        ("[name=web].ports[containerPort=81,protocol=TCP]", "", '{"containerPort": 81}'),
    ]
    added = pods(WEB, {"name": "new", "image": "new:1"})
    assert of_pods(pods(WEB), pods(WEB), added) == [("[name=new]", "", '{"image": "new:1", "name": "new"}')]
    assert of_pods(added, added, pods(WEB)) == [("[name=new]", '{"image": "new:1", "name": "new"}', "")]


def test_what_stands_at_a_position_may_be_another_element_than_gits() -> None:
    live, git = pods(WEB | {"args": [f"--key={CANARY}", "--a"]}), pods(WEB)
    assert of_pods(live, git, git) == [("[name=web].args[0]", UNSEEN, "--a"), ("[name=web].args[(not shown)]", UNSEEN, "")]
    assert of_pods(git, git, pods(WEB | {"args": ["--b"]})) == [("[name=web].args[0]", "--a", "--b")]


def test_what_a_server_or_an_apply_makes_of_a_list_shows_as_git_declares_it() -> None:
    git = pods(WEB, {"name": "b"})
    live, wanted = pods({"name": "b"}, SIDECAR, WEB), pods(WEB, SIDECAR, {"name": "b", "image": CANARY})
    seen = of_pods(live, git, git, wanted)
    assert ("[order]", UNSEEN, UNSEEN) in seen
    assert not [each for each in seen if CANARY in "".join(each)]
    turned = pods(WEB | {"args": [CANARY, "x"]}), pods(WEB | {"args": ["x", CANARY]})
    assert not [each for each in of_pods(turned[0], git, git, turned[1]) if CANARY in "".join(each)]
    annotated = [
        Manifest.of({**git.body(), "metadata": {"name": "a", "namespace": "shop", "annotations": {"at": at}}}, "")
        for at in (CANARY, CANARY * 2)
    ]
    assert of_pods(annotated[0], git, git, annotated[1]) == [("metadata.(not shown)", UNSEEN, UNSEEN)]


@pytest.mark.parametrize("text", ["x", {"a": "b"}, 5])
def test_where_a_list_becomes_another_type_nothing_of_it_is_shown(text: Any) -> None:
    then = pods(WEB).body()
    then["spec"]["template"]["spec"]["containers"] = text
    [(path, live, declared)] = of_pods(pods(WEB, SIDECAR), pods(WEB), Manifest.of(then, "a.yaml:1"))
    assert (path, live) == ("", UNSEEN)
    assert CANARY not in declared


def test_of_an_object_that_lives_while_the_base_is_not_known_only_its_name_shows() -> None:
    fields = (FieldChange("data.k", "2", CANARY),)
    for action in (Action.UPDATE, Action.UNCHANGED):
        seen = by_name(Change(action, CONFIG, "uid", fields=fields))
        assert (seen.action, seen.fields) == (Action.UPDATE, ())
    assert by_name(Change(Action.CREATE, CONFIG, fields=fields)).action is Action.CREATE


@given(st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["1", "2", CANARY])), st.data())
def test_a_value_that_git_never_had_is_shown_only_as_drift_of_what_it_declares(live: dict[str, str], data: st.DataObject) -> None:
    of_git = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(["1", "2"]))
    now, then = manifest(**data.draw(of_git)), manifest(**data.draw(of_git))
    declared: dict[str, Any] = now.body()["data"]
    for path, (shown, _) in seen(live, now, then).items():
        if CANARY in shown:
            assert path.removeprefix("data.") in declared


def test_objects_that_a_merge_adds_drops_or_declares_otherwise_are_its_own() -> None:
    same, other = Identity("", "ConfigMap", "shop", "b"), Identity("", "ConfigMap", "shop", "c")
    now = {CONFIG: manifest(k="1"), same: manifest(k="1")}
    assert changed(now, {CONFIG: manifest(k="2"), same: manifest(k="1"), other: manifest()}) == {CONFIG, other}
    assert changed(now, {same: manifest(k="1")}) == {CONFIG}


@pytest.mark.parametrize("action", [Action.UPDATE, Action.UNCHANGED])
def test_a_hidden_value_that_git_declares_otherwise_is_a_change_without_a_look_at_what_lives(action: Action) -> None:
    now, then = manifest(**{"admin-token": "a", "x": "1"}), manifest(**{"admin-token": "b", "x": "2"})
    seen = with_masked(Change(action, CONFIG, "uid", manifest=then), now, then)
    assert (seen.action, [(each.path, each.live, each.declared) for each in seen.fields]) == (
        Action.UPDATE,
        [("data.admin-token", MASKED, MASKED)],
    )
    assert with_masked(Change(action, CONFIG, "uid", manifest=then), then, then).action is action
    for other in (Action.CREATE, Action.PRUNE, Action.SKIP):
        assert with_masked(Change(other, CONFIG, "uid"), now, then) == Change(other, CONFIG, "uid")


# --- what only the server writes otherwise
def settled(now: Manifest | None, then: Manifest | None, *fields: FieldChange, reason: str = "", action: Action = Action.UPDATE) -> Change:
    return without_settled(Change(action, CONFIG, "uid-1", "7", reason=reason, fields=fields, manifest=then), now, then)


def numbered(value: Any) -> Manifest:
    return Manifest.of(manifest().body() | {"data": {"k": value}}, "a.yaml:1")


WRITTEN = FieldChange("data.k", "2000m", "2", FIELD_MANAGER)


def test_what_git_declares_alike_and_only_we_have_written_is_no_change() -> None:
    same = manifest(k="2000m", x="1")
    assert settled(same, same, WRITTEN) == Change(Action.UNCHANGED, CONFIG, "uid-1", "7", manifest=same)
    left = FieldChange("data.x", "1", "9", FIELD_MANAGER)
    assert settled(manifest(k="2000m", x="0"), same, WRITTEN, left).fields == (left,)
    assert settled(same, same, replace(WRITTEN, live="")).action is Action.UNCHANGED, "the server leaves it out"
    assert settled(same, same, WRITTEN, reason="adopted").action is Action.UPDATE


@pytest.mark.parametrize(
    ("now", "then", "change"),
    [
        (manifest(k="2000m"), manifest(k="2000m"), replace(WRITTEN, manager="kubectl")),
        (manifest(k="2000m"), manifest(k="2000m"), replace(WRITTEN, manager="")),
        (manifest(k="1"), manifest(k="2000m"), WRITTEN),
        (manifest(x="1"), manifest(x="1"), WRITTEN),
        (manifest(k="2000m"), manifest(x="1"), replace(WRITTEN, declared="")),
        (manifest(k="2000m"), manifest(k="2000m"), replace(WRITTEN, path="data.k.more")),
        (None, manifest(k="2000m"), WRITTEN),
        (manifest(k="2000m"), None, WRITTEN),
        (manifest(password="x"), manifest(password="x"), replace(WRITTEN, path="data.password")),
        (manifest(k="x" * 1000), manifest(k="x" * 999 + "y"), WRITTEN),
        (numbered(80), numbered("80"), WRITTEN),
        (numbered(1), numbered(True), WRITTEN),
        (numbered(None), numbered(None), WRITTEN),
    ],
)
def test_what_another_has_written_or_git_declares_otherwise_or_isnt_seen_is_a_change(
    now: Manifest | None, then: Manifest | None, change: FieldChange
) -> None:
    assert settled(now, then, change).fields == (change,)


def test_a_change_that_shows_no_field_stays_one() -> None:
    same = manifest(k="2000m")
    assert settled(same, same).action is Action.UPDATE
    assert settled(same, same, WRITTEN, action=Action.RECREATE).fields == (WRITTEN,)
