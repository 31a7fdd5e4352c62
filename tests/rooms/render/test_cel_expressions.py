"""Expressions of the operator about live objects, in the real sandbox: Flux' order, Flux' answers, and budgets that hold."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from handler.config.settings import HealthCheckExpr
from handler.engine.health import custom_health
from handler.engine.health.custom_health import FUNCTIONS, CustomHealth
from handler.model.health import Answer, Health, Status
from handler.model.names import GroupKind, identity_of
from handler.render.cel_expressions import judge
from handler.render.sandbox import Sandbox

OFFER = HealthCheckExpr(
    "example.com/v1",
    "status.phase == 'Open'",
    kind="Offer",
    in_progress="status.phase == 'Priced'",
    failed="status.phase in ['Refused', 'Priced']",
)
READY = "status.conditions.filter(e, e.type == 'Ready').all(e, e.status == 'True')"
NESTED = (
    "[1, 2, 3, 4, 5, 6, 7, 8].map(a, [1, 2, 3, 4, 5, 6, 7, 8].map(b, status.list.map(c, status.list.map(d, a + b + c + d)))).size() > 0"
)
SLOW = "status.list.exists(a, -a - 1 in status.list)"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as made:
        yield made


def live(status: Any, name: str = "tea", kind: str = "Offer", version: str = "1", generation: int = 1, **parts: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "shop", "uid": f"{kind}-{name}", "resourceVersion": version, "generation": generation}
    return {"apiVersion": "example.com/v1", "kind": kind, "metadata": {**metadata, **parts}, "status": status}


def one(sandbox: Sandbox, entry: HealthCheckExpr, body: dict[str, Any], generation: int = 0) -> Health:
    found = CustomHealth([entry], sandbox).verdict(body, generation)
    assert found
    return found


def spied(monkeypatch: pytest.MonkeyPatch) -> list[list[bytes]]:
    """Return what children are sent from now on."""
    sent: list[list[bytes]] = []
    real = Sandbox.run

    def run(own: Sandbox, function: str, options: Any, parts: list[bytes], *more: Any) -> Any:
        sent.append(parts)
        return real(own, function, options, parts, *more)

    monkeypatch.setattr(Sandbox, "run", run)
    return sent


def test_each_cel_answer_is_read_as_it_was_written() -> None:
    for answer in (Answer(""), Answer("current"), Answer("failed", "no such key: a"), Answer("inProgress", "Iteration", spent=True)):
        assert Answer.decode(answer.encode()) == answer


@pytest.mark.parametrize("said", [b"", b"7", b"[]", b'["current", "", 1]', b'["ready", "", false]', b'["", "wrong", false]', b'{"a": 1}'])
def test_a_malformed_cel_answer_is_refused(said: bytes) -> None:
    with pytest.raises(ValueError, match=r"no answer|Expecting"):
        Answer.decode(said)


@pytest.mark.parametrize(
    ("phase", "status", "message"),
    [
        ("Open", Status.CURRENT, ""),
        ("Priced", Status.IN_PROGRESS, "`inProgress` of healthCheckExprs holds: Priced: “waits for the vendor”"),
        ("Refused", Status.FAILED, "`failed` of healthCheckExprs holds: Refused: “waits for the vendor”"),
        ("Other", Status.IN_PROGRESS, "`current` of healthCheckExprs doesn't hold: Other: “waits for the vendor”"),
    ],
)
def test_the_first_expression_that_is_true_decides(sandbox: Sandbox, phase: str, status: Status, message: str) -> None:
    assert one(sandbox, OFFER, live({"phase": phase, "message": "waits for the vendor"})) == Health(status, message)


@pytest.mark.parametrize(
    ("changes", "status", "name", "said"),
    [
        ({"current": READY, "in_progress": "", "failed": ""}, {"phase": "x"}, "current", "no such key: conditions"),
        ({}, {"other": 1}, "inProgress", "no such key: phase"),
        ({"in_progress": "self.x"}, {"phase": "Open"}, "inProgress", "no such field: self"),
        ({"failed": "status.phase"}, {"phase": "Open"}, "failed", "is no truth value but string"),
        ({"failed": "status.n / 0 == 1"}, {"phase": "Open", "n": 1}, "failed", "divide by zero"),
        ({"failed": "status.a[0]"}, {"phase": "Open", "a": []}, "failed", "Index error: index=0 size=0"),
    ],
)
def test_a_cel_expression_that_fails_to_evaluate_is_in_progress_with_its_cause(
    sandbox: Sandbox, changes: Any, status: Any, name: str, said: str
) -> None:
    message = f"`{name}` of healthCheckExprs can't be evaluated: “{said}”"
    assert one(sandbox, replace(OFFER, **changes), live(status)) == Health(Status.IN_PROGRESS, message)


@pytest.mark.parametrize(
    ("body", "generation", "found"),
    [
        (live({"phase": "Open"}, deletionTimestamp="2026-01-01T00:00:00Z"), 0, (Status.TERMINATING, "is being deleted")),
        (live({"phase": "Open"}), 2, (Status.IN_PROGRESS, "is shown as of generation 1, 2 was written")),
        (
            live({"phase": "Open", "observedGeneration": 1}, generation=2),
            0,
            (Status.IN_PROGRESS, "its controller hasn't seen the newest change yet (generation 2, seen: 1)"),
        ),
        (
            live({"phase": "Open", "observedGeneration": 3}, generation=2),
            0,
            (Status.IN_PROGRESS, "its status is of another generation (generation 2, seen: 3)"),
        ),
        (live({"phase": "Open", "observedGeneration": "1"}, generation=2), 0, (Status.CURRENT, "")),
    ],
)
def test_the_generation_comes_before_the_expressions_where_it_is_a_number(sandbox: Sandbox, body: Any, generation: int, found: Any) -> None:
    assert one(sandbox, OFFER, body, generation) == Health(*found)


def test_the_objects_ready_is_told_where_it_has_one(sandbox: Sandbox) -> None:
    conditions = [{"type": "Synced", "status": "False", "reason": "R"}, {"type": "Ready", "status": "False", "message": "no vendor\n"}]
    body = live({"phase": "Priced", "conditions": conditions})
    assert one(sandbox, OFFER, body).message == "`inProgress` of healthCheckExprs holds: Ready is False: “no vendor”"


def test_any_top_level_field_is_a_variable_and_nothing_else_is_sent(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = spied(monkeypatch)
    entry = HealthCheckExpr("v1", "data['state'] == 'b3Blbg==' && kind == 'Secret' && has(metadata.name)", kind="Secret")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "managedFields": [{}]}, "data": {"state": "b3Blbg=="}}
    asked = {**secret, "stringData": {"password": "swordfish"}}
    assert one(sandbox, entry, asked).healthy
    [[body]] = sent
    assert json.loads(body) == {"kind": "Secret", "metadata": {"name": "a"}, "data": {"state": "b3Blbg=="}}


def test_what_cel_says_of_a_secret_is_not_told_because_it_may_quote_a_value(sandbox: Sandbox) -> None:
    entry = HealthCheckExpr("v1", "data[data.key] == 'x'", kind="Secret")
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"key": "swordfish"}}
    assert one(sandbox, entry, secret) == Health(Status.IN_PROGRESS, "`current` of healthCheckExprs can't be evaluated")


def test_a_kind_has_the_targets_entry_before_the_installations_and_its_own_before_its_groups(sandbox: Sandbox) -> None:
    group = HealthCheckExpr("example.com/v1", "false", failed="true")
    judge = CustomHealth([group, OFFER, replace(OFFER, api_version="example.com/v9", current="status.phase == 'Sold'")], sandbox)
    found = judge.verdicts([live({"phase": "Sold"}), live({"phase": "Sold"}, kind="Bid"), {**live({}), "apiVersion": "other.com/v1"}])
    assert [(identity.kind, health.status) for identity, health in found.items()] == [("Offer", Status.CURRENT), ("Bid", Status.FAILED)]
    assert judge.covers(GroupKind("example.com", "Whatever"))
    assert not judge.covers(GroupKind("", "ConfigMap"))


def test_many_objects_are_judged_in_one_render_child_and_unchanged_ones_once(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = spied(monkeypatch)
    judge = CustomHealth([OFFER], sandbox)
    objects = [live({"phase": "Open" if number % 2 else "Refused"}, f"o{number:03}") for number in range(450)]
    found = judge.verdicts(objects)
    assert [health.healthy for health in found.values()] == [bool(number % 2) for number in range(450)]
    assert list(found) == [identity_of(each) for each in objects]
    assert [len(call) for call in calls] == [200, 200, 50]
    assert judge.verdicts(objects) == found
    assert [len(call) for call in calls] == [200, 200, 50]
    assert judge.verdicts([live({"phase": "Open"}, "o000", version="2")])[identity_of(objects[0])].healthy
    assert [len(call) for call in calls] == [200, 200, 50, 1]


def test_the_cache_of_cel_verdicts_is_bounded(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom_health, "_KEPT", 3)
    judge = CustomHealth([OFFER], sandbox)
    judge.verdicts([live({"phase": "Open"}, f"o{number}") for number in range(9)])
    assert list(judge._kept) == ["Offer-o6", "Offer-o7", "Offer-o8"]


def test_an_object_that_takes_too_many_steps_is_unknown(sandbox: Sandbox) -> None:
    body = live({"phase": "Open", "list": list(range(500))})
    found = one(sandbox, replace(OFFER, in_progress="", failed=NESTED), body)
    assert found == Health(Status.UNKNOWN, "`failed` of healthCheckExprs takes more than 10,000 steps on it")
    assert not found.healthy


def test_an_object_over_the_time_or_memory_limit_is_unknown_and_others_are_judged(sandbox: Sandbox) -> None:
    """A list of 10,000 times 12 is looked through 10,000 times: some thousand million comparisons, in few steps."""
    slow = replace(OFFER, kind="Slow", in_progress="", failed="", current=SLOW)
    large = replace(slow, kind="Large", current="status.a.replace('a', status.a).replace('a', status.a).replace('a', status.a) == ''")
    bodies = [
        live({"phase": "Open"}, "a"),
        live({"list": [*range(9990)] * 12}, kind="Slow"),
        live({"phase": "Open"}, "b"),
        live({"a": "a" * 1000}, kind="Large"),
        live({"phase": "Refused"}, "c"),
    ]
    found = [*CustomHealth([OFFER, slow, large], sandbox).verdicts(bodies).items()]
    judged = {identity.name if identity.kind == "Offer" else identity.kind: (health.status, health.message) for identity, health in found}
    assert (judged["a"], judged["b"], judged["c"][0]) == ((Status.CURRENT, ""), (Status.CURRENT, ""), Status.FAILED)
    took = "healthCheckExprs of Slow.example.com: the evaluation takes more than 1 s of processor time on it"
    assert judged["Slow"] in ((Status.UNKNOWN, took), (Status.UNKNOWN, "`current` of healthCheckExprs takes more than 10,000 steps on it"))
    assert judged["Large"][0] is Status.UNKNOWN
    assert judged["Large"][1].startswith("healthCheckExprs of Large.example.com: the evaluation takes more ")


def test_no_render_child_is_started_without_health_check_exprs(sandbox: Sandbox) -> None:
    with Sandbox() as own:
        assert CustomHealth([], own).verdicts([live({})]) == {}
        assert own._beside == {}
        CustomHealth([OFFER], own).verdicts([live({"phase": "Open"})])
        assert list(own._beside) == [FUNCTIONS]


@pytest.mark.parametrize("expression", ["optional.of(status.?phase)", "optional.ofNonZeroValue(status.phase)", "optional.none()"])
def test_an_optional_is_no_truth_value_and_kills_no_child(expression: str) -> None:
    (answer, _) = judge({"entries": [["", "", expression]], "of": [0]}, [json.dumps(live({"phase": "Open"})).encode()])
    assert Answer.decode(answer or b"").wrong.startswith("is no truth value")
