"""A message: less than 2 KB whatever is asked, whole in what decides, and nothing else is read as one."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.model.event import MOST_COMMENTS, Delivery, Job
from handler.queues import message
from handler.queues.pending import Work
from tests.fakes.signed_webhooks import mutations
from tests.unit.rows import each_row

pytestmark = pytest.mark.slow

SHA = "4f1b0c7e2d9a5836be0174c2f6a98d3e5b7c1a20"
RUN = "shop.0123456789ab"
names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,54}[a-z0-9])?", fullmatch=True)
anything = st.text(max_size=600)
commits = st.sampled_from(["", SHA, "b" * 64])
deliveries = st.builds(Delivery, anything, anything, anything, commits | anything, anything, anything)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    """Anything that the door may ask for, and longer."""
    commit, pinning = draw(commits), draw(st.sampled_from(["commit", "unpin", "rollback", ""]))
    commit = commit if pinning == "commit" else ""
    return Job(
        draw(names),
        draw(st.sampled_from(["push", "replay", "tick", "drift", "oneoff"])),
        hint=draw(commits),
        commit=commit,
        force=draw(st.booleans()) and not commit and pinning != "rollback",
        dry_run=draw(st.booleans()),
        prune=draw(st.booleans()),
        approve=draw(st.from_regex(r"[A-Za-z0-9._-]{0,128}", fullmatch=True)),
        unpin=pinning == "unpin",
        rollback=pinning == "rollback",
        actor=draw(anything),
        deliveries=tuple(draw(st.lists(deliveries, max_size=20))),
        looks=draw(st.integers(0, 4)),
        asked=draw(st.floats(0, 1e9)),
    )


@st.composite
def plans(draw: st.DrawFn) -> Job:
    """Anything that the door may ask for of a pull request."""
    ids = st.from_regex(r"[A-Za-z0-9_-]{1,64}(/[A-Za-z0-9_-]{1,64})?", fullmatch=True)
    comments = tuple(draw(st.lists(ids, max_size=MOST_COMMENTS, unique=True)))
    name = f"{draw(names)}~{draw(st.integers(1, 10**9 - 1))}"
    return Job(name, "pull-request", comments=comments, changed=bool(comments) and draw(st.booleans()), actor=draw(anything))


@given(jobs() | plans())
def test_a_message_is_small_and_whole_in_what_decides(job: Job) -> None:
    run = f"{job.target}.0123456789ab"
    body = message.encode(Work(job, (run,)))
    assert len(body.encode()) < 2048
    found = message.decode(body)
    told = {"actor": "", "deliveries": (), "asked": 0.0}
    assert replace(found.job, **told) == replace(job, **told)  # type: ignore[arg-type]  # of three types
    assert found.runs == (run,)
    assert found.named == ((run,) if job.trigger in ("replay", "oneoff") else ())
    assert len(found.job.deliveries) >= min(len(job.deliveries), 2)


def test_of_many_deliveries_the_newest_are_kept_in_their_order() -> None:
    rows = tuple(Delivery(f"d{number}", "github", "refs/heads/main", SHA, "ada" * 60, "2026-03-01T12:00:00Z") for number in range(20))
    found = message.decode(message.encode(Work(Job("shop", "push", hint=SHA, deliveries=rows), (RUN,)))).job.deliveries
    assert 4 < len(found) < 20
    assert [each.id for each in found] == [each.id for each in rows[-len(found) :]]


def test_long_ids_that_begin_alike_stay_apart() -> None:
    rows = tuple(Delivery("x" * 500 + end, "generic", "refs/heads/main", SHA, "", "") for end in ("1", "2"))
    found = message.decode(message.encode(Work(Job("shop", "push", deliveries=rows), (RUN,)))).job.deliveries
    assert found[0].id != found[1].id


@each_row(
    "job",
    [
        Job("shop", "replay", commit=SHA, force=True),
        Job("shop", "replay", rollback=True, force=True),
        Job("shop", "replay", rollback=True, unpin=True),
        Job("shop", "replay", rollback=True, commit=SHA),
        Job("shop", "replay", unpin=True, commit=SHA),
        Job("shop", "replay", approve="x" * 129),
        Job("shop/other", "push"),
        Job("shop", "watch"),
        Job("shop", "push", looks=99),
        Job("shop~12", "push"),
        Job("shop", "push", comments=("6",)),
        Job("shop", "pull-request"),
        Job("shop~", "pull-request"),
        Job("shop~0", "pull-request"),
        Job("shop~012", "pull-request"),
        Job("shop~1000000000", "pull-request"),
        Job("shop~12~13", "pull-request"),
        Job("~12", "pull-request"),
        Job("Shop~12", "pull-request"),
        Job("shop.web.api~12", "pull-request"),
        Job("shop~12", "pull-request", comments=("../6",)),
        Job("shop~12", "pull-request", comments=("6/7/8",)),
        Job("shop~12", "pull-request", comments=("x" * 65,)),
        Job("shop~12", "pull-request", comments=tuple(map(str, range(MOST_COMMENTS + 1)))),
        Job("shop~12", "pull-request", commit=SHA),
    ],
)
def test_a_job_that_couldnt_be_decoded_isnt_encoded(job: Job) -> None:
    with pytest.raises(ValueError, match=r"."):
        message.encode(Work(job, (f"{job.target}.0123456789ab",)))


ROWS = (Delivery("d", "github", "r", SHA, "a", "t"),)
WHOLE = Work(Job("shop", "replay", hint=SHA, dry_run=True, approve="h1", actor="ada", deliveries=ROWS, looks=1), (RUN,), (RUN,))


def test_a_whole_message_is_read_back_without_the_time_of_the_local_clock() -> None:
    assert message.decode(message.encode(replace(WHOLE, job=replace(WHOLE.job, asked=123.0)))) == WHOLE


PLAN = Work(Job("shop~12", "pull-request", comments=("5/2",), changed=True, actor="bob"), ("shop~12.0123456789ab",))


def test_a_plan_is_of_a_version_of_its_own_and_is_read_back() -> None:
    body = message.encode(PLAN)
    assert message.decode(body) == PLAN
    assert json.loads(body) == {
        "v": 2,
        "run": "shop~12.0123456789ab",
        "target": "shop~12",
        "trigger": "pull-request",
        "comments": ["5/2"],
        "changed": True,
        "actor": "bob",
    }
    assert json.loads(message.encode(WHOLE))["v"] == 1, "a worker from before pull requests goes on with all the rest"


def test_a_plan_between_our_processes_names_its_version() -> None:
    written = json.loads(json.dumps(message.document(PLAN)))
    assert (written["v"], message.read(written)) == (2, PLAN)
    for changed in (written | {"v": 1}, {key: value for key, value in written.items() if key != "v"}):
        with pytest.raises(ValueError, match="version 1; this is 2"):
            message.read(changed)


@each_row("changed", mutations(json.loads(message.encode(WHOLE))) + mutations(json.loads(message.encode(PLAN))))
def test_hostile_fields_are_refused_or_mean_what_they_say(changed: object) -> None:
    try:
        work = message.decode(json.dumps(changed))
    except ValueError:
        return
    assert isinstance(changed, dict)
    assert message.decode(message.encode(work)) == work


@pytest.mark.parametrize(
    "body",
    [
        "",
        "null",
        "[]",
        "{",
        '{"v":1}',
        '{"v":2}',
        '{"v":true,"run":"shop.01","target":"shop","trigger":"tick"}',
        '{"v":1.0,"run":"shop.01","target":"shop","trigger":"tick"}',
        "[" * 30000,
        "{" * 9000,
        '{"v":1,"looks":' + "9" * 5000 + "}",
        '"' + "x" * 20000 + '"',
        message.encode(WHOLE).replace('"ada"', '"\\ud800"'),
        message.encode(WHOLE).replace('"v":1', '"v":2'),
    ],
    ids=lambda body: body[:8],
)
def test_what_is_no_message_is_a_value_error(body: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        message.decode(body)


@given(st.text(max_size=300))
def test_any_text_is_a_message_or_a_value_error(body: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        message.decode(body)


# --- what a queue knows it by
def delivered(delivery: str, target: str = "shop", **more: object) -> Job:
    return Job(target, "push", hint=SHA, deliveries=(Delivery(delivery, "github", "r", SHA, "", ""),), **more)  # type: ignore[arg-type]  # of several types


def known(job: Job) -> str:
    return message.deduplication(job, message.identified(job))


def test_a_delivery_is_deduplicated_by_its_id_and_target_under_one_run_id() -> None:
    assert known(delivered("d1")) == known(delivered("d1"))
    assert message.identified(delivered("d1")) == message.identified(delivered("d1"))
    others = [delivered("d2"), delivered("d1", "infra"), delivered("d1", looks=1), delivered("")]
    assert len({known(job) for job in (delivered("d1"), *others)}) == 5
    assert known(delivered("")) != known(delivered(""))  # a host that names none: each is its own


def test_a_named_request_is_never_deduplicated() -> None:
    assert known(Job("shop", "replay")) != known(Job("shop", "replay"))


def test_scheduled_jobs_are_deduplicated_by_their_moment() -> None:
    tick, drift = Job("shop", "tick", moment=60.5), Job("shop", "drift", moment=60.5)
    assert known(tick) == known(replace(tick)) != known(replace(tick, moment=120.5))
    assert known(tick) != known(drift) != known(replace(drift, target="infra"))
    assert known(Job("shop", "tick")) != known(Job("shop", "tick"))


@given(jobs() | plans(), st.lists(anything, max_size=3), anything)
def test_a_document_between_our_processes_holds_the_whole_job(job: Job, merged: list[str], actor: str) -> None:
    whole = replace(job, hint="a branch", asked=12.5, moment=3.25)
    work = Work(whole, ("shop.1", *merged), ("shop.1",), (("shop.1", actor),))
    assert message.read(json.loads(json.dumps(message.document(work)))) == work


def test_a_document_leaves_out_only_what_the_ids_say() -> None:
    acts = (SHA, True, True, False, "h1", True, True)
    ids = ("shop.1", 1, 12.5, (("shop.1", "ada"),), ("shop.2",), 3.25)
    whole = Job("shop", "replay", "a branch", *acts, "ada", ROWS, *ids, comments=("6",), changed=True)
    assert [field.name for field in fields(Job) if getattr(whole, field.name) == field.default] == ["promote"]
    with pytest.raises(ValueError, match="in the process that does it"):
        message.document(Work(replace(whole, promote=True), ("shop.1",)))
    written = json.loads(json.dumps(message.document(Work(whole, ("shop.1",)))))
    assert message.read(written).job == replace(whole, run="", named=(), joined=())


@pytest.mark.parametrize("version", [2, 0, "1", True, 1.0, None, {}])
def test_a_document_of_another_version_is_refused_by_name(version: object) -> None:
    written = message.document(WHOLE) | {"v": version}
    with pytest.raises(ValueError, match=r"^version .*; this is 1$") as refused:
        message.read(written)
    assert repr(version) in str(refused.value)


def test_a_document_without_a_version_is_read_as_this_one() -> None:
    written = message.document(WHOLE)
    del written["v"]
    assert message.read(written) == WHOLE


PLAN_RUN = "shop~12.0123456789ab"
BODY: dict[str, Any] = {"v": 2, "run": PLAN_RUN, "target": "shop~12", "trigger": "pull-request"}


def test_the_least_that_asks_for_a_plan_is_read() -> None:
    assert message.decode(json.dumps(BODY)) == Work(Job("shop~12", "pull-request"), (PLAN_RUN,))


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"unpin": True}, "asks for something else"),
        ({"rollback": True}, "asks for something else"),
        ({"noPrune": True}, "asks for something else"),
        ({"dryRun": True}, "asks for something else"),
        ({"force": True}, "asks for something else"),
        ({"approve": "h1"}, "asks for something else"),
        ({"commit": SHA}, "asks for something else"),
        ({"hint": SHA}, "asks for something else"),
        ({"changed": True}, "a comment on something else"),
        ({"run": "shop~13.0123456789ab"}, "the run isn't the target's"),
        ({"run": "shop.0123456789ab"}, "the run isn't the target's"),
        ({"target": "shop", "run": "shop.0123456789ab"}, "target is 'shop'"),
        ({"target": "shop~-1", "run": "shop~-1.0123456789ab"}, "target is 'shop~-1'"),
        ({"target": "shop~١٢", "run": "shop~١٢.0123456789ab"}, "target is"),
        ({"target": "shop~12\n", "run": "shop~12\n.0123456789ab"}, "target is"),
        ({"target": "shop_~12", "run": "shop_~12.0123456789ab"}, "target is 'shop_~12'"),
        ({"comments": ["6\n"]}, "comments aren't ids"),
        ({"comments": "6"}, "comments aren't ids"),
        ({"comments": [6]}, "comments aren't ids"),
        ({"changed": 1, "comments": ["6"]}, "changed is neither true nor false"),
        ({"v": 1}, "version 1; this is 2"),
        ({"v": 2.0}, "version 2.0; this is 2"),
        ({"v": True}, "version True; this is 2"),
        ({"trigger": "push"}, "version 2; this is 1"),
        ({"trigger": ["pull-request"]}, "version 2; this is 1"),
    ],
    ids=str,
)
def test_a_message_for_a_plan_says_nothing_else(more: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        message.decode(json.dumps(BODY | more))


def test_a_wish_for_a_plan_is_known_by_its_run_alone() -> None:
    """The same event may be sent again after a lost answer; a second `/anneal plan` is another wish."""
    heard = Delivery("d1", "github", "", "", "ada", "")
    plan = Job("shop~12", "pull-request", comments=("6",), deliveries=(heard,))
    first, second = message.identified(plan), message.identified(plan)
    assert first != second
    assert message.deduplication(plan, first) == message.deduplication(plan, first) != message.deduplication(plan, second)


def test_a_look_again_at_a_host_that_failed_keeps_who_asked() -> None:
    again = Work(Job("shop~12", "pull-request", comments=("6",), changed=True, actor="ada", looks=3), (PLAN_RUN,))
    assert message.decode(message.encode(again)) == again
