"""No pull request shows a value of a Secret that git only names, nor an object that isn't the target's, however it is written."""

from __future__ import annotations

import base64
import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from handler.config.post_build import PostBuild, SubstituteFrom
from handler.config.settings import Settings
from handler.model.names import PART_OF, applyset_id
from handler.model.result import Outcome
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import cluster, state_of
from tests.unit.app.pull_requests_in_memory import CANARY, DRIFT, Pulls, assert_nothing_shown, target

pytestmark = pytest.mark.slow

CORE = "/api/v1/namespaces/shop"
MERGE = "application/merge-patch+json"


def configured(name: str, **data: str) -> str:
    return json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "shop"}, "data": data})


def secret(pulls: Pulls, name: str, **values: str) -> None:
    """Have a Secret with these values, whatever it had."""
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "shop"}, "data": data}
    pulls.server.must(
        Asked("PATCH", f"{CORE}/secrets/{name}", {"fieldManager": "x", "force": "true"}, body, "application/apply-patch+yaml", "")
    )


def push(pulls: Pulls, text: str) -> None:
    pulls.git.push(pulls.git.commit({"shop/a.yaml": text}))
    pulls.handler = pulls.made()


def create(pulls: Pulls, name: str, value: str, **metadata: Any) -> None:
    """Create a ConfigMap by hand."""
    body = json.loads(configured(name, key=value))
    body["metadata"] |= metadata
    pulls.server.must(Asked("POST", f"{CORE}/configmaps", {"fieldManager": "kubectl-create"}, body, "", ""))


def plan(pulls: Pulls, **files: str) -> str:
    """Plan a pull request that changes these files; return its comment."""
    pulls.proposes({f"shop/{name}.yaml": text for name, text in files.items()})
    result = pulls.run()
    assert result.outcome is Outcome.PLANNED, result
    return pulls.api.text


@pytest.fixture
def pulls() -> Pulls:
    """A shop whose ConfigMap holds a password of the cluster."""
    hidden = PostBuild(substitute_from=(SubstituteFrom("Secret", "login"),))
    made = Pulls(cluster(), Settings(targets=(target(namespace="shop", post_build=hidden),)))
    secret(made, "login", PASSWORD=CANARY)
    push(made, configured("a", url="db=${PASSWORD};", plain="1", half="${PASSWORD:0:10}"))
    made.deploy()
    return made


def lines(text: str, guess: str) -> list[str]:
    """Return the lines of a plan, the same whatever the guess was, where none is confirmed."""
    return [line.replace(guess, "(the guess)") for line in text.splitlines() if line.startswith(("~", "+", "-", "    "))]


def test_a_substituted_value_is_a_placeholder_whatever_a_pull_request_makes_of_it(pulls: Pulls, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said = plan(
        pulls,
        a=configured("a", url="now plain", plain="2", half="guess"),
        b=configured("b", whole="${PASSWORD}", half="${PASSWORD:0:10}", rest="${PASSWORD:10}", loud="${PASSWORD^^}", long="n=${#PASSWORD}"),
    )
    assert "data.plain: 1 → 2" in said
    assert "placeholder; → now plain" in said
    assert "+ create ConfigMap" in said
    assert_nothing_shown(pulls, caplog, CANARY)


@pytest.mark.parametrize("guess", [f"db={CANARY};", "db=wrong;"])
def test_a_guess_is_not_told_from_the_value(pulls: Pulls, guess: str, caplog: pytest.LogCaptureFixture) -> None:
    said = plan(pulls, a=configured("a", url=guess, plain="1", half="x"), c=configured("c", key="1"))
    assert lines(said, guess) == [
        "~ change ConfigMap/shop/a  shop/a.yaml:1",
        "    data.half: placeholde → x",
        "    data.url: db=placeholder; → (the guess)",
        "+ create ConfigMap/shop/c  shop/c.yaml:1",
    ]
    assert [each.text for each in pulls.api.statuses] == ["1 to change, 1 to create"]
    assert not any("guess" in each.getMessage() for each in caplog.records)


@pytest.mark.parametrize(
    ("before", "tip", "guess"),
    [
        ("db=${PASSWORD:-none}", None, None),
        ("x${PASSWORD:2:1}${PASSWORD:11}", None, None),
        ("db=${PASSWORD}", configured("a", url="vault", plain="1", half="x"), None),
        ("db=${PASSWORD}", "a: [broken", f"db={CANARY}"),
        ("db=${PASSWORD}", "a: [broken", "db=wrong"),
    ],
    ids=["default", "pieces", "not deployed yet", "broken, guessed", "broken, not guessed"],
)
def test_what_lives_of_a_value_shows_by_no_default_piece_or_commit_before(
    pulls: Pulls, caplog: pytest.LogCaptureFixture, before: str, tip: str | None, guess: str | None
) -> None:
    push(pulls, configured("a", url=before, plain="1", half="x"))
    pulls.deploy()
    if tip:
        push(pulls, tip)
    changed = {"a": configured("a", url=guess, plain="1", half="x")} if guess else {}
    said = plan(pulls, c=configured("c", key="1"), **changed)
    told = ["~ change ConfigMap/shop/a  shop/a.yaml:1", "    data.url: db=placeholder → (the guess)"] if guess else []
    assert lines(said, guess or "no guess") == [*told, "+ create ConfigMap/shop/c  shop/c.yaml:1"]
    if not guess:
        assert_nothing_shown(pulls, caplog, CANARY)


@pytest.mark.parametrize("value", ["", CANARY])
@pytest.mark.parametrize("guess", ["db=none", f"db={CANARY}", "db=wrong"])
def test_neither_a_guess_nor_an_empty_value_is_told_where_a_default_stands_beside_the_variable(
    pulls: Pulls, value: str, guess: str
) -> None:
    push(pulls, configured("a", url="db=${PASSWORD:-none}", plain="${ABSENT:-one}", half="x"))
    secret(pulls, "login", PASSWORD=value)
    pulls.deploy()
    said = plan(pulls, a=configured("a", url=guess, plain="${ABSENT:=two}", half="x"))
    assert lines(said, guess) == [
        "~ change ConfigMap/shop/a  shop/a.yaml:1",
        "    data.plain: one → two",
        "    data.url: db=placeholder → (the guess)",
    ]


def test_what_lives_by_hand_in_a_member_shows_nowhere_beside_values_that_are_not_in_git(
    pulls: Pulls, caplog: pytest.LogCaptureFixture
) -> None:
    by_hand = {"data": {"extra": DRIFT, "plain": "by hand"}}
    pulls.server.must(Asked("PATCH", f"{CORE}/configmaps/a", {"fieldManager": "kubectl-patch"}, by_hand, MERGE, ""))
    said = plan(pulls, a=configured("a", url="db=${PASSWORD};", plain="1", half="${PASSWORD:0:10}", extra="mine"))
    assert "by hand" not in said
    assert "data.extra: " in said
    assert_nothing_shown(pulls, caplog, CANARY, DRIFT)


def test_a_strangers_object_is_not_looked_at_and_its_values_show_nowhere(pulls: Pulls, caplog: pytest.LogCaptureFixture) -> None:
    create(pulls, "theirs", DRIFT)
    create(pulls, "forged", DRIFT, labels={PART_OF: applyset_id("anneal-shop", "anneal-system")})
    secret(pulls, "login-of-others", key=DRIFT)
    body = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "login-of-others", "namespace": "shop"},
        "stringData": {"key": DRIFT},
    }
    said = plan(pulls, theirs=configured("theirs", key="1"), forged=configured("forged", key="1"), login=json.dumps(body))
    made = sorted(line.split()[2].rpartition("/")[2] for line in said.splitlines() if line.startswith("+ create"))
    assert made == ["forged", "login-of-others", "theirs"]
    assert_nothing_shown(pulls, caplog, CANARY, DRIFT)


def test_the_plan_of_a_pull_request_writes_nothing_but_which_comment_is_ours(pulls: Pulls) -> None:
    def objects() -> dict[str, Any]:
        return {str(identity): stored.body for identity, stored in pulls.server.store.all() if identity.namespace == "shop"}

    before, record = objects(), state_of(pulls.handler)
    plan(pulls, c=configured("c", key="1"))
    assert objects() == before
    assert replace(state_of(pulls.handler), pull_requests=()) == record
    assert len(state_of(pulls.handler).pull_requests) == 1
