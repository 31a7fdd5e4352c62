"""Two worlds that differ only in what a Secret holds, or in whether it lives, tell the same of what git says: byte for byte, anywhere.

No text of git is compared with a value: an author who writes a guess sees it as he wrote it, in either world.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from handler.config.post_build import PostBuild, SubstituteFrom
from handler.config.settings import Settings
from handler.config.settings_shape import Json
from handler.inspect.inspector import Inspector
from handler.inspect.inventory_look import look
from handler.inspect.look import Ask
from handler.inspect.plan_questions import facts
from handler.model.event import Job
from handler.model.result import Outcome, Result
from handler.model.to_json import plain
from tests.fakes.apiserver.connection import Call, Reply
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import ONE, cluster, engine, state_of
from tests.fakes.git_host import GitHost

pytestmark = pytest.mark.slow

MAPS, SECRETS = "/api/v1/namespaces/shop/configmaps", "/api/v1/namespaces/shop/secrets"
SECRET, OTHER = "hunter2-horse:battery", "correct/another=staple"
VARYING = re.compile(
    r"[0-9a-f]{8}-[0-9a-f-]{27}|\b[0-9a-f]{40}\b|shop\.[0-9a-f]{12}|/[0-9a-f]{16}\b|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z?"
    r"|\b[0-9]{10}\.[0-9]+|\"(?:duration|seconds|succeeded|resourceVersion)\": \"?[0-9.e-]+"
)
"""Ids, digests of them, and times, which no two runs share."""
GUESSES = st.sampled_from([SECRET, OTHER, SECRET[:8], f"a {OTHER} b", base64.b64encode(SECRET.encode()).decode(), "horse", "battery"])
TEXTS = GUESSES | st.text(st.characters(codec="ascii", exclude_characters="$", min_codepoint=32), max_size=20)


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": data}


class World:
    """A target and its cluster, in which a Secret lives that holds `value`; empty: none lives."""

    def __init__(self, value: str, made_by: Settings = ONE) -> None:
        self.server, self.host, self.refuses = cluster(), GitHost(), ""

        def way(call: Call, do: Callable[[], Reply]) -> Reply:
            if self.refuses and call.asked.method == "PATCH" and call.asked.path == f"{MAPS}/web":
                return 422, {"kind": "Status", "code": 422, "reason": "Invalid", "message": f"data: Invalid value: {self.refuses}"}, {}
            return do()

        self.told: list[Any] = []
        self.handler = engine(self.server, self.host, made_by, way=way)
        self.handler._options = replace(self.handler._options, announce=self.told.append)
        if value:
            body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "words", "namespace": "shop"}}
            data = {"pw": base64.b64encode(value.encode()).decode()}
            self.server.must(Asked("POST", SECRETS, {}, {**body, "data": data}, "", ""))

    def push(self, *bodies: dict[str, Any]) -> None:
        self.host.push(self.host.commit({f"shop/{each['metadata']['name']}.yaml": json.dumps(each) for each in bodies}))

    def edit(self, body: dict[str, Any]) -> None:
        self.server.must(Asked("PATCH", f"{MAPS}/web", {"fieldManager": "kubectl-edit"}, body, "application/merge-patch+json", ""))

    def run(self, trigger: str, **job: Any) -> Any:
        """Run, and return what every reader sees of it."""
        result = self.handler.run(Job("shop", trigger, **job))
        return result.outcome, bare(result)

    def seen(self) -> Any:
        """Return what each look shows, and the record."""
        inspector, state = Inspector(self.handler), state_of(self.handler)
        tree = look(self.handler, self.handler.target("shop"), state).tree()
        told = replace(state, reads="", settings="", digest="", attempt=None)
        orphans = [each for each in plain(facts(inspector.orphans("shop")))["orphans"] if each["object"] != "Secret/shop/words"]
        return facts(inspector.gap(Ask("shop"))), orphans, tree, told, self.told


def bare(result: Result) -> Any:
    """Return a result without what is never shown of it: the objects themselves."""
    stages = tuple(tuple(map(_bare, stage)) for stage in result.plan.stages) if result.plan else ()
    plan = result.plan and replace(result.plan, stages=stages, prunes=tuple(map(_bare, result.plan.prunes)), hold=None)
    return replace(result, plan=plan, written=tuple(map(_bare, result.written)), run="", duration=0.0)


def _bare(change: Any) -> Any:
    return replace(change, manifest=None, managed_fields=b"", resource_version="")


def story(world: World, texts: list[str], varies: str = "") -> str:
    """Return all that is shown of a target whose files say these texts, until it is refused; `varies`: a field by variable."""
    first, second, name = texts
    data = {"a": first, "b": second, "same": "x", **({"v": varies} if varies else {})}
    told: list[Any] = []
    world.push(config_map("web", **data), config_map("gone", x=first))
    told += [world.run("oneoff", dry_run=True), world.run("push"), world.run("oneoff", dry_run=True)]
    world.edit({"data": {"a": second, "theirs": name}, "metadata": {"annotations": {"acme.io/was": first}}})
    told += [world.run("oneoff", dry_run=True), world.seen()]
    world.push({**config_map("web", **data, more=name), "metadata": {"name": "web", "namespace": "shop", "labels": {"l": "x"}}})
    told += [world.run("oneoff", dry_run=True)]
    world.refuses = f"{first!r} and {second!r}"
    told += [world.run("push"), world.seen()]
    return VARYING.sub("", json.dumps(plain(told), default=str))


@settings(max_examples=6, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(TEXTS, min_size=3, max_size=3))
def test_whether_a_secret_lives_is_told_by_nothing(texts: list[str]) -> None:
    one, other = (story(World(value), texts) for value in (SECRET, ""))
    assert one == other


BY_VARIABLE = replace(
    ONE, targets=(replace(ONE.targets[0], post_build=PostBuild(Json("{}"), (SubstituteFrom("Secret", "words"),)), namespace="shop"),)
)


@settings(max_examples=6, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(TEXTS, min_size=3, max_size=3))
def test_what_a_secret_holds_that_git_takes_a_value_from_is_told_by_nothing(texts: list[str]) -> None:
    one, other = (story(World(value, BY_VARIABLE), texts, "x-${pw}") for value in (SECRET, OTHER))
    assert one == other
    assert f"x-{SECRET}" not in one


@pytest.mark.parametrize("guess", [SECRET, SECRET[:8], f"a {SECRET} b"])
def test_a_guess_is_shown_as_it_was_written(guess: str) -> None:
    assert json.dumps(guess)[1:-1] in story(World(SECRET, BY_VARIABLE), [guess, "b", "c"], "x-${pw}")


def test_the_worlds_of_these_tests_differ() -> None:
    """A story is one of runs that plan, apply, and are refused."""
    world = World(SECRET, BY_VARIABLE)
    world.push(config_map("web", v="x-${pw}"))
    assert world.run("push")[0] is Outcome.APPLIED
    assert world.server.must(Asked("GET", f"{MAPS}/web", {}, None, "", ""))["data"] == {"v": f"x-{SECRET}"}
    world.push(config_map("web", v="x-${pw}", a="1"))
    world.refuses = "it"
    assert world.run("push")[0] is Outcome.FAILED
