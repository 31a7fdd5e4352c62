"""What only live has and the server won't let go: it is named with its manager, and the lines for git are printed."""

from __future__ import annotations

from typing import Any

from handler.plan.live_only import each_without, refusal
from tests.unit.plan.samples import desired, document, entry

CLAIM: dict[str, Any] = {"f:spec": {"f:storageClassName": {}, "f:volumeName": {}}}


def claim(**spec: Any) -> dict[str, Any]:
    return document("PersistentVolumeClaim", spec=spec, metadata={"managedFields": [entry(CLAIM, "kubectl-edit", "Update")]})


def told(live: dict[str, Any], *paths: tuple[Any, ...]) -> tuple[str, str]:
    (item,) = desired(document(live["kind"]))
    found = refusal(item, live, paths, "spec is immutable")
    assert found.place == item.manifest.place
    return found.message, found.fix


def test_each_field_is_asked_about_alone_and_what_isnt_there_not_at_all() -> None:
    live = claim(storageClassName="fast")
    (only,) = each_without(live, CLAIM)
    assert only == (("spec", "storageClassName"), live | {"spec": None})


def test_the_field_its_manager_the_servers_words_and_the_line_for_git() -> None:
    assert told(claim(storageClassName="fast"), ("spec", "storageClassName")) == (
        "live alone has spec.storageClassName: fast (by kubectl-edit), and the server refuses to drop it: spec is immutable",
        'declare what lives, nothing need be deleted: write into it spec: {storageClassName: "fast"}',
    )


def test_a_field_of_no_manager_in_a_list_is_named_by_its_path() -> None:
    pod = document("Pod", spec={"containers": [{"name": "web", "image": "a"}]})
    message, fix = told(pod, ("spec", "containers", (("name", "web"),), "image"))
    assert message.startswith("live alone has spec.containers[name=web].image: a, and")
    assert fix.endswith('write into it spec.containers[name=web].image: "a"')


def test_of_many_fields_five_are_named() -> None:
    live = claim(**{f"f{number}": number for number in range(7)})
    message, fix = told(live, *(("spec", f"f{number}") for number in range(7)))
    assert " and 2 more, and the server refuses" in message
    assert fix.count("spec: {") == 5


def test_the_value_of_a_secret_is_not_printed() -> None:
    live = document("Secret", data={"password": "aHVudGVy"})
    message, fix = told(live, ("data", "password"))
    assert "aHVudGVy" not in message + fix
    assert fix == "declare these fields with their live values"
