"""What an instance's trigger lists is imported by programs, whole and in both engines, and what its Secrets say is shown by nothing."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from handler.app.outside_inputs import TargetInputs
from handler.config.git_settings import Repository
from handler.config.settings import Target
from handler.model.errors import OperatorError
from handler.render import Sandbox
from handler.render.set_digest import set_digest
from tests.rooms.render.jsonnet_programs import both, config, data_of, refused, rendered
from tests.rooms.render.kustomize_trees import public_tools

MAIN = "deploy/main.jsonnet"
PASSWORD = "correct-horse-battery"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with public_tools(), Sandbox() as sandbox:
        yield sandbox


def live(kind: str, name: str, version: str = "1", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": f"uid-{name}", "resourceVersion": version, "managedFields": [{}]}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **more}


def secret(password: str = PASSWORD, version: str = "1") -> dict[str, Any]:
    return live("Secret", "db", version, data={"password": base64.b64encode(password.encode()).decode()})


def inputs(*objects: dict[str, Any]) -> TargetInputs:
    """What a target's trigger lists, under the name `own`."""

    def lists(name: str) -> list[dict[str, Any]]:
        if name != "own":
            raise OperatorError.of("target shop", f"its trigger watches no resource {name}", fix="it watches: own")
        return list(objects)

    target = Target("shop", Repository("https://git.example.com/shop.git"), ("shop",))
    return TargetInputs(target, None, None, None, lists=lists)  # type: ignore[arg-type]  # nothing else is asked


LISTED = "local own = import 'locutus-runtime/own/list'; "
NAMES = LISTED + config("a", "{ names: std.join(' ', [each.metadata.name + each.status.phase for each in own]), all: std.toString(own) }")
SECRET = LISTED + config("a", "{ url: 'db://shop:' + std.base64Decode(own[0].data.password) }")


@both
def test_a_list_has_whole_objects_by_their_keys_and_is_read_only_where_it_is_imported(sandbox: Sandbox, engine: str) -> None:
    objects = [live("Pod", name, status={"phase": "Up"}) for name in ("b", "a")]
    found = rendered(sandbox, {MAIN: NAMES}, engine, more={"outside": inputs(*objects)})
    assert data_of(found)["a"]["names"] == "aUp bUp"
    assert "managedFields" not in data_of(found)["a"]["all"]
    reads = dict(found.reads.paths)
    assert reads["//instance/list/own"] == inputs(*objects).ask("//instance/list/own")
    assert reads["//instance/list/own"] != inputs(objects[0]).ask("//instance/list/own")
    without = rendered(sandbox, {MAIN: config("a")}, engine, more={"outside": inputs(*objects)})
    assert not [name for name in dict(without.reads.paths) if name.startswith("//instance")]


@both
def test_a_list_that_isnt_watched_is_refused_with_its_place(sandbox: Sandbox, engine: str) -> None:
    text = "\nlocal other = import 'locutus-runtime/other/list'; other"
    (problem,) = refused(sandbox, {MAIN: text}, engine, more={"outside": inputs()})
    assert (problem.message, problem.fix) == ("its trigger watches no resource other", "it watches: own")
    assert problem.place.startswith(f"{MAIN}:2")


@both
def test_what_listed_secrets_say_is_masked(sandbox: Sandbox, engine: str) -> None:
    found = rendered(sandbox, {MAIN: SECRET}, engine, more={"outside": inputs(secret())})
    assert data_of(found)["a"]["url"] == f"db://shop:{PASSWORD}"
    assert {PASSWORD, secret()["data"]["password"]} <= set(found.secrets)
    failing = LISTED + "error 'it is ' + std.base64Decode(own[0].data.password)"
    (problem,) = refused(sandbox, {MAIN: failing}, engine, more={"outside": inputs(secret())})
    assert PASSWORD not in str(problem)


def test_a_masked_configuration_that_is_a_secret(sandbox: Sandbox) -> None:
    text = "local c = import 'generic-operator/config'; " + config("a", "{ p: std.base64Decode(c.data.password) }")
    assert PASSWORD in rendered(sandbox, {MAIN: text}, more={"configuration": secret()}).secrets


def test_digests_reveal_no_secret_and_still_tell_its_versions_apart(sandbox: Sandbox) -> None:
    """A read's digest is in the record, and a set's: a short secret could be tried until either fits."""
    one, other, later = (
        rendered(sandbox, {MAIN: SECRET}, more={"outside": inputs(each)})
        for each in (secret(), secret("another-horse-battery"), secret(version="2"))
    )
    assert one.reads == other.reads != later.reads
    assert set_digest(one) == set_digest(other) != set_digest(later)


@pytest.mark.parametrize("objects", [[], [live("Pod", "a", status={"phase": "Up"})]])
def test_the_set_of_a_list_without_secrets_is_the_same_while_it_makes_the_same(sandbox: Sandbox, objects: list[dict[str, Any]]) -> None:
    text = LISTED + config("a")
    beside = [live("Pod", "b", status={"phase": "Down"})]
    one, other = (rendered(sandbox, {MAIN: text}, more={"outside": inputs(*each)}) for each in (objects, beside))
    assert set_digest(one) == set_digest(other)
    assert not one.secrets
