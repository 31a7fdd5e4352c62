"""One target's part of a pull request's plan: what it is compared with, what is seen of it, and what must not be."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from handler.app.pull_requests.target_preview import UNPLANNED
from handler.config.feedback_settings import PullRequestSettings
from handler.config.git_settings import Revision
from handler.config.post_build import PostBuild, SubstituteFrom
from handler.config.settings import Settings, Target
from handler.model.commit_status import StatusState
from handler.model.errors import AccessDenied, AnnealError, ClusterUnavailable
from handler.model.event import Job
from handler.model.names import Identity
from handler.model.result import Outcome
from handler.state.record import Attempt
from handler.state.store import StateStore
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import cluster
from tests.unit.app.pull_requests_in_memory import CANARY, Pulls, objects, target
from tests.unit.state.samples import NOON, TOKEN

pytestmark = pytest.mark.slow


def declared(kind: str, **values: str) -> str:
    key = "stringData" if kind == "Secret" else "data"
    return f"apiVersion: v1\nkind: {kind}\nmetadata: {{name: web, namespace: shop, labels: {{}}}}\n{key}: {json.dumps(values)}\n"


@pytest.fixture
def pulls() -> Pulls:
    return Pulls.deployed()


@pytest.mark.parametrize(
    ("error", "is_tried"), [(ClusterUnavailable.of("https://10.0.0.9", "down"), True), (AccessDenied.of("x", "no"), False)]
)
def test_a_target_that_cant_be_planned_now_hides_no_other_and_shows_nothing_of_why(error: AnnealError, is_tried: bool) -> None:
    pulls = Pulls(cluster("shop", "cart"), Settings(targets=(target(), target("cart"))))
    pulls.deploy()
    pulls.proposes({"shop/web.yaml": objects("2"), "cart/web.yaml": objects("3", "cart")})
    known = pulls.handler.brief_store

    def store(target: Target) -> StateStore:
        if target.name == "cart":
            raise error
        return known(target)

    pulls.handler.brief_store = store  # type: ignore[method-assign]  # as a cluster that is silent
    result = pulls.run()
    assert bool(result.again) is is_tried
    assert "data.key: 1 → 2" in pulls.api.text
    assert f"target cart: {UNPLANNED}" in pulls.api.text
    assert "2 targets of 2 read what changes: **1 to change, 1 target can't be planned**." in pulls.api.text
    assert "10.0.0.9" not in pulls.api.text
    assert pulls.shown == [(StatusState.FAILURE, f"cart: target cart: {UNPLANNED}")]
    pulls.handler.brief_store = known  # type: ignore[method-assign]  # it answers again
    pulls.run()
    assert "data.key: 1 → 3" in pulls.api.text
    assert pulls.shown[-1] == (StatusState.SUCCESS, "2 to change")


@pytest.mark.parametrize(("text", "said"), [("{", "1 target can't be planned"), (objects("1") + "# said", "nothing to change")])
def test_what_isnt_planned_is_no_plan_of_nothing(pulls: Pulls, text: str, said: str) -> None:
    pulls.proposes({"shop/web.yaml": text})
    pulls.run()
    assert f"1 target of 1 reads what changes: **{said}**." in pulls.api.text


def test_a_target_that_reads_nothing_of_the_change_is_counted_alone() -> None:
    pulls = Pulls(cluster("shop", "cart"), Settings(targets=(target(), target("cart"))))
    pulls.deploy()
    pulls.proposes({"cart/web.yaml": objects("3", "cart")})
    pulls.run()
    assert "1 target of 2 reads what changes: **1 to change**. 1 target untouched." in pulls.api.text


def test_a_target_whose_branch_reads_otherwise_than_what_is_deployed_is_no_untouched_one(pulls: Pulls) -> None:
    """The branch takes in another directory's file, which what is deployed has never read."""
    more = objects("1").replace("web", "more")
    pulls.git.links = {"shop/more.yaml": "../common/more.yaml"}
    pulls.git.push(pulls.git.commit({"shop/web.yaml": objects("1"), "common/more.yaml": more}))
    pulls.proposes({"common/more.yaml": more.replace("1", "2")})
    pulls.run()
    assert "untouched" not in pulls.api.text
    assert "ConfigMap/shop/more" in pulls.api.text


@pytest.mark.parametrize("value", ["2", "{"], ids=["good", "broken"])
def test_a_target_that_isnt_deployed_yet_or_is_broken_is_untouched_by_what_it_doesnt_read(pulls: Pulls, value: str) -> None:
    pulls.git.push(pulls.git.commit({"shop/web.yaml": objects(value) if value == "2" else value}))
    pulls.proposes({"README.md": "Hello"})
    pulls.run()
    assert "1 target untouched" in pulls.api.text
    assert pulls.shown == [(StatusState.SUCCESS, "changes nothing")]


@pytest.mark.parametrize("now", [{"revision": Revision(branch="main"), "path": "other"}, {"namespaces": ("shop", "more")}])
def test_a_target_whose_settings_have_changed_since_is_planned_by_git_alone(pulls: Pulls, now: dict[str, Any]) -> None:
    """What lives may be of the settings before: of values that aren't in git, or of another path."""
    files = {f"{now.get('path', 'shop')}/web.yaml": objects("1")}
    pulls.git.push(pulls.git.commit({**pulls.git.commits[pulls.git.head], **files}))
    pulls.settings = Settings(targets=(replace(target(), **now),))
    pulls.handler = pulls.made()
    pulls.proposes({f"{now.get('path', 'shop')}/web.yaml": objects("2")})
    pulls.run()
    assert "the target isn't deployed with its settings yet" in pulls.api.text
    assert "data.key: 1 → 2" in pulls.api.text


# --- what only the server writes otherwise
OTHER = objects("1").replace("web", "more")


def said_of(pulls: Pulls) -> str:
    """Return what is said of a pull request that adds another object, where the server has written a value of the first one otherwise."""
    identity = Identity("", "ConfigMap", "shop", "web")
    live = pulls.server.store.get(identity)
    assert live
    pulls.server.store.put(identity, live.row, live.body | {"data": {"key": "one"}}, live.owners, dry=False)
    pulls.proposes({"shop/more.yaml": OTHER})
    pulls.run()
    assert "ConfigMap/shop/more" in pulls.api.text
    return pulls.api.text


def test_what_the_server_wrote_otherwise_of_what_is_deployed_is_no_change(pulls: Pulls) -> None:
    assert "ConfigMap/shop/web" not in said_of(pulls)


def test_of_a_branch_that_isnt_deployed_what_lives_otherwise_is_a_change(pulls: Pulls) -> None:
    pulls.git.push(pulls.git.commit({"shop/web.yaml": objects("2")}))
    assert "data.key: one → 2" in said_of(pulls)


def test_while_an_attempt_is_open_what_lives_otherwise_is_a_change(pulls: Pulls) -> None:
    """It may have written what lives."""
    attempt = Attempt("c" * 40, "1" * 64, "2" * 64, TOKEN, NOON)
    pulls.handler.store(pulls.settings.targets[0]).update(lambda state: replace(state, attempt=attempt))
    assert "data.key: one → 1" in said_of(pulls)


def test_where_the_server_judges_its_answer_counts(pulls: Pulls) -> None:
    pulls.settings = Settings(targets=(target(pull_requests=PullRequestSettings("shop/planner")),))
    pulls.handler = pulls.made()
    assert "data.key: one → 1" in said_of(pulls)


@pytest.fixture
def substituted(pulls: Pulls) -> Pulls:
    """A target whose values come from a ConfigMap of the cluster, and a branch of `files` that is deployed."""
    post_build = PostBuild(substitute_from=(SubstituteFrom("ConfigMap", "values"),))
    pulls.settings = Settings(targets=(target(post_build=post_build),))
    pulls.handler = pulls.made()
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "values", "namespace": "shop"}, "data": {"KEY": CANARY}}
    pulls.server.answer(Asked("POST", "/api/v1/namespaces/shop/configmaps", {}, body, "", ""))
    return pulls


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("${KEY}/shop:1", "${KEY}/evil:2"),
        ("good", "${KEY}evil"),
        ("${KEY:-registry}/shop:1", "evil.example/shop${KEY:0:0}"),
        ("shop", "shop${KEY:12}"),
    ],
)
def test_what_is_changed_beside_a_value_that_isnt_in_git_is_in_the_plan(substituted: Pulls, before: str, after: str) -> None:
    pulls = substituted
    pulls.git.push(pulls.git.commit({"shop/web.yaml": objects(before)}))
    pulls.deploy()
    pulls.proposes({"shop/web.yaml": objects(after)})
    pulls.run()
    assert pulls.shown == [(StatusState.SUCCESS, "1 to change")]
    assert "~ change ConfigMap/shop/web" in pulls.api.text
    assert "placeholders stand for values" in pulls.api.text
    assert not {CANARY, CANARY[12:], CANARY[::-1]} & set(pulls.api.text.split())
    assert CANARY not in pulls.api.text


def test_deletions_of_what_isnt_deployed_yet_are_said_where_values_arent_in_git(substituted: Pulls) -> None:
    pulls = substituted
    more = {f"shop/{name}.yaml": objects("${KEY}").replace("web", name) for name in ("a", "b")}
    pulls.git.push(pulls.git.commit({"shop/web.yaml": objects("1"), **more}))
    pulls.deploy()
    pulls.git.push(pulls.git.commit({"shop/web.yaml": objects("1")}))
    pulls.proposes({"shop/web.yaml": objects("2")})
    pulls.run()
    assert pulls.shown == [(StatusState.SUCCESS, "2 to delete, 1 to change")]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (declared("ConfigMap", **{"admin-token": "a"}), declared("ConfigMap", **{"admin-token": "z"}), "data.admin-token: *** → ***"),
        (declared("ConfigMap", a="1", **{"db-password": "x"}), declared("ConfigMap", a="1"), "data.db-password: *** → (removed)"),
        (declared("Secret", url="good"), declared("Secret", url="evil"), "data.url: *** → ***"),
        (declared("Secret"), declared("Secret").replace("labels: {}", "labels: {a: b}"), "metadata.labels.a: (none) → b"),
    ],
    ids=["token", "removed", "secret", "label"],
)
def test_a_hidden_value_that_git_declares_otherwise_is_no_plan_of_nothing(pulls: Pulls, before: str, after: str, said: str) -> None:
    pulls.git.push(pulls.git.commit({"shop/web.yaml": before}))
    pulls.run()
    assert pulls.handler.run(Job("shop", "tick")).outcome is not Outcome.FAILED
    pulls.proposes({"shop/web.yaml": after})
    pulls.run()
    assert pulls.shown[-1][1] == "1 to change"
    assert said in pulls.api.text
    assert not any(f": {value}" in pulls.api.text for value in ("good", "evil"))


def test_what_lived_of_values_that_arent_in_git_stays_unseen_when_they_are_configured_no_longer(substituted: Pulls) -> None:
    pulls = substituted
    pulls.git.push(pulls.git.commit({"shop/web.yaml": objects("${KEY:-1}")}))
    pulls.deploy()
    pulls.settings = Settings(targets=(target(),))
    pulls.handler = pulls.made()
    pulls.proposes({"shop/web.yaml": objects("2")})
    pulls.run()
    assert CANARY not in pulls.api.text
    assert "data.key" in pulls.api.text
