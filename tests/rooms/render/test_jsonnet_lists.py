"""What an instance's trigger lists is imported by programs, whole and in both engines, and what its Secrets say is shown by nothing."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from handler.app.outside_inputs import TargetInputs
from handler.config.git_settings import Repository
from handler.config.renderer_settings import JSONNET, RendererSettings
from handler.config.settings import Target
from handler.model.errors import AnnealError, OperatorError, RendererUnavailable
from handler.model.render import Rendered, RenderRequest
from handler.render import RENDERERS, Sandbox, render_tools
from handler.render.programs import private_directories
from handler.render.set_digest import set_digest
from handler.render.target_render import render_target
from tests.fakes.source_tree import FakeTree
from tests.rooms.render.jsonnet_programs import PROGRAM, both, config, data_of, refused, rendered, where
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


def taken(sandbox: Sandbox, text: str, engine: str = PROGRAM, **more: Any) -> Rendered:
    """Render a program as a target does."""
    request = RenderRequest("deploy", options=RendererSettings("jsonnet"), **more)
    with where(engine):
        return render_target(RENDERERS["jsonnet"], FakeTree({MAIN: text}), request, sandbox)


@both
def test_what_listed_secrets_say_is_hidden_where_it_lands(sandbox: Sandbox, engine: str) -> None:
    found = taken(sandbox, SECRET, engine, outside=inputs(secret()))
    assert data_of(found)["a"]["url"] == f"db://shop:{PASSWORD}"
    assert [each.hidden for each in found.manifests] == [("/data/url",)]
    failing = LISTED + "error 'it is ' + std.base64Decode(own[0].data.password)"
    with pytest.raises(AnnealError) as refused:
        taken(sandbox, failing, engine, outside=inputs(secret()))
    assert "it is placeholder" in str(refused.value)
    assert PASSWORD not in str(refused.value)


def test_the_program_gets_secrets_in_memory_else_the_library_or_none(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private_directories, "_in_memory", lambda _: False)
    monkeypatch.setattr(sandbox._memory, "_base", "")
    pod = live("Pod", "a", status={"phase": "Up"})
    for listed, configuration in (([secret()], pod), ([], secret())):
        found = taken(sandbox, LISTED + config("a", "{ n: std.toString(own) }"), outside=inputs(*listed), configuration=configuration)
        assert [name for name in dict(found.reads.paths) if name.startswith("//tool/")] == [render_tools.read_name(render_tools.LIBRARY)]
    found = taken(sandbox, NAMES, outside=inputs(pod), configuration=pod)
    assert [name for name in dict(found.reads.paths) if name.startswith("//tool/")] == [render_tools.read_name(JSONNET)]
    monkeypatch.setattr(render_tools, "_library", lambda: "")
    with pytest.raises(RendererUnavailable, match="Secrets on disk"):
        taken(sandbox, SECRET, outside=inputs(secret()), configuration=pod)


def test_what_a_configuration_says_that_is_a_secret_is_hidden_where_it_lands(sandbox: Sandbox) -> None:
    text = "local c = import 'generic-operator/config'; " + config("a", "{ p: std.base64Decode(c.data.password), n: c.metadata.name }")
    found = taken(sandbox, text, configuration=secret())
    assert (data_of(found)["a"]["p"], [each.hidden for each in found.manifests]) == (PASSWORD, [("/data/p",)])


def test_digests_reveal_no_secret_and_still_tell_its_versions_apart(sandbox: Sandbox) -> None:
    """A read's digest is in the record, and a set's: a short secret could be tried until either fits."""
    one, other, later = (
        taken(sandbox, SECRET, outside=inputs(each)) for each in (secret(), secret("another-horse-battery"), secret(version="2"))
    )
    assert one.reads == other.reads != later.reads
    assert set_digest(one) == set_digest(other) != set_digest(later)


@pytest.mark.parametrize("objects", [[], [live("Pod", "a", status={"phase": "Up"})]])
def test_the_set_of_a_list_without_secrets_is_the_same_while_it_makes_the_same(sandbox: Sandbox, objects: list[dict[str, Any]]) -> None:
    text = LISTED + config("a")
    beside = [live("Pod", "b", status={"phase": "Down"})]
    one, other = (taken(sandbox, text, outside=inputs(*each)) for each in (objects, beside))
    assert set_digest(one) == set_digest(other)
    assert [each.hidden for each in one.manifests] == [()]
