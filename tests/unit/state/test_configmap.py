from __future__ import annotations

import base64
import copy
import gzip
import hashlib
import json
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handler.model.errors import StateInvalid
from handler.model.names import Identity
from handler.state.configmap import decode, encode, read_summary, summary_of
from handler.state.record import HeldPlan, Orphan, Pin, Progress, Run, RunStatus, Stalled, State, StepRecord, TargetHealth
from handler.state.record_format import write_record
from handler.state.record_values import RecordedCommitStatus, RecordedPullRequest
from handler.state.store import LIMIT, fitted, size
from handler.state.summary import LONGEST, Summary
from tests.unit.rows import each_row
from tests.unit.state.samples import NAMESPACE, NOON, TOOLING, blank, full, sha, states

pytestmark = pytest.mark.slow

Body = dict[str, Any]


def read(body: Body) -> State:
    return decode(body, NAMESPACE, "shop", TOOLING)


@pytest.mark.parametrize(("state", "keys"), [(blank(), ["repository", "target.json"]), (blank(repository=""), ["target.json"])])
def test_nothing_that_is_not_recorded_has_a_key(state: State, keys: list[str]) -> None:
    body = encode(state, NAMESPACE, TOOLING)
    assert list(body["data"]) == keys
    assert read(body) == state


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(states)
def test_an_encoded_state_is_read_again_as_it_was(state: State) -> None:
    written, body = fitted(state, NAMESPACE, TOOLING)
    assert read(body) == written
    again, same = fitted(written, NAMESPACE, TOOLING)
    assert again == written
    assert same == encode(written, NAMESPACE, TOOLING)
    assert (written.declared, written.attempt) == (state.declared, state.attempt)
    assert written.kinds == state.kinds | {each.group_kind for each in (*state.declared, *(orphan.identity for orphan in state.orphans))}


def test_an_edited_annotation_hides_no_kind_and_no_namespace_that_the_record_names() -> None:
    cron, claim = Identity("batch", "CronJob", "shop-jobs", "backup"), Identity("", "PersistentVolumeClaim", "shop-data", "db")
    state = blank(
        commit=sha(),
        declared=(cron, Identity("", "Namespace", "", "shop")),
        orphans=(Orphan("u-9", claim, NOON),),
        kinds=frozenset(each.group_kind for each in (cron, claim, Identity("", "Namespace", "", ""))),
        namespaces=frozenset({"shop-jobs", "shop-data"}),
    )
    body = encode(state, NAMESPACE, TOOLING)
    body["metadata"]["annotations"] |= {
        "applyset.kubernetes.io/contains-group-kinds": "",
        "applyset.kubernetes.io/additional-namespaces": "",
    }
    assert read(body) == state


def test_the_parent_of_an_applyset_is_marked_as_kubectl_does() -> None:
    metadata = encode(full(), NAMESPACE, TOOLING)["metadata"]
    assert metadata["name"] == "anneal-shop"
    assert metadata["labels"]["applyset.kubernetes.io/id"].startswith("applyset-")
    assert metadata["annotations"]["applyset.kubernetes.io/tooling"] == "anneal/v0.1.0"
    assert metadata["annotations"]["applyset.kubernetes.io/contains-group-kinds"] == (
        "ClusterRole.rbac.authorization.k8s.io,ConfigMap,Deployment.apps,Namespace"
    )
    assert metadata["annotations"]["applyset.kubernetes.io/additional-namespaces"] == "shop,shop-jobs"


def test_the_states_own_namespace_is_not_additional() -> None:
    body = encode(blank(namespaces=frozenset({NAMESPACE, "shop"})), NAMESPACE, TOOLING)
    assert body["metadata"]["annotations"]["applyset.kubernetes.io/additional-namespaces"] == "shop"


def test_small_parts_are_readable_and_large_ones_gzipped_alike_each_time() -> None:
    state = replace(full(), declared=tuple(Identity("apps", "Deployment", "shop", f"api-{number}") for number in range(5000)))
    body = encode(state, NAMESPACE, TOOLING)
    assert json.loads(body["data"]["attempt.json"])["commit"] == sha("e")
    assert "declared.json" not in body["data"]
    assert body["binaryData"] == encode(state, NAMESPACE, TOOLING)["binaryData"]
    assert size(body) < 100_000
    assert read(body) == state


def test_control_characters_and_surrogates_of_a_commit_message_do_not_make_the_state_unreadable() -> None:
    run = Run("r1", "push", "applied", NOON, subject="a\x00b\ud800c\x1b[31m", author="x" * 5000)
    written, body = fitted(blank(history=(run,)), NAMESPACE, TOOLING)
    assert written.history[0].subject == "a\ufffdb\ufffdc\ufffd[31m"
    assert len(written.history[0].author) == 300
    json.dumps(body, ensure_ascii=False).encode()


def test_a_value_that_could_not_be_read_again_is_never_written() -> None:
    with pytest.raises(StateInvalid, match="commit: expected 40 to 64 hex digits"):
        fitted(blank(commit="main"), NAMESPACE, TOOLING)


def noise(count: int, length: int) -> tuple[str, ...]:
    source = random.Random(count)
    return tuple("".join(source.choices("abcdefghijklmnopqrstuvwxyz0123456789/-", k=length)) for _ in range(count))


def test_the_size_limit_drops_history_before_changed_subjects_and_declared_never() -> None:
    runs = tuple(Run(f"r{number}", "push", "applied", NOON, message=text) for number, text in enumerate(noise(20, 4000)))
    declared = tuple(Identity("", "ConfigMap", "shop", name.replace("/", "x")) for name in noise(3600, 200))
    owed, posted = (RecordedCommitStatus(each * 40, "success", "3 created", posted=each == "b") for each in "ab")
    state = blank(history=runs, declared=declared, reads_paths=("deploy",), commit_statuses=(owed, posted))
    state = replace(state, pull_requests=tuple(RecordedPullRequest(number) for number in range(200)))
    assert size(encode(state, NAMESPACE, TOOLING)) > LIMIT
    written, body = fitted(state, NAMESPACE, TOOLING)
    assert size(body) <= LIMIT
    assert (written.declared, written.commit_statuses, written.pull_requests) == (declared, (owed,), state.pull_requests[:20])
    assert written.history == runs[: len(written.history)]
    assert 0 < len(written.history) < 20
    assert written.reads_paths == ("deploy",)


def test_a_state_above_the_size_limit_that_cannot_be_trimmed_says_so() -> None:
    declared = tuple(Identity("", "ConfigMap", "shop", name.replace("/", "x")) for name in noise(6000, 240))
    with pytest.raises(StateInvalid, match="the record of 6000 objects needs"):
        fitted(blank(declared=declared), NAMESPACE, TOOLING)


def test_a_summary_of_long_texts_in_any_script_has_room() -> None:
    run = Run("shop.0123456789ab", "replay", "rolled-back", NOON, sha("a"), "🛒" * 300, "アニール" * 60, duration=86_400.123)
    known = replace(full(), history=(run,) * 20, status=replace(full().status, message="é" * 4000), held=None)
    text = encode(known, NAMESPACE, TOOLING)["metadata"]["annotations"]["anneal.dev/summary"]
    summary = read_summary(text)
    assert summary is not None
    assert summary == Summary.of(known)
    assert (len(summary.recent), summary.pin) == (10, sha("f"))
    assert all(text.endswith("…") and len(text) > 10 for text in (summary.subject, summary.author, summary.why))


def test_a_summary_leaves_out_what_has_no_room_before_it_is_too_long_to_be_read() -> None:
    """Far outside of what runs write: commits of SHA-256, runs of centuries."""
    commit, attempt = "a" * 64, full().attempt
    attempt = replace(attempt, commit=commit) if attempt else None
    run = Run("shop.0123456789ab", "replay", "rolled-back", NOON, commit, "🛒" * 300, "アニール" * 60, duration=1e12)
    status = RunStatus("failed", NOON, message="é" * 4000, next_try=NOON)
    known = replace(full(), commit=commit, history=(run,) * 20, status=status, held=None, pin=Pin(commit), attempt=attempt)
    whole = Summary.of(known)
    assert whole.why
    assert len(json.dumps(write_record(whole), separators=(",", ":"))) > LONGEST
    assert read_summary(summary_of(known)) == replace(whole, why="")
    soaks = tuple(replace(each, commits=("9" * 64,), ended="rolled-back") for each in known.soaks) * 2
    longer = replace(known, soaks=soaks, history=(replace(run, outcome="a" * 40),) * 20)
    assert read_summary(summary_of(longer)) == replace(Summary.of(longer), why="", soaks=())


DAYS = tuple(f"2026-03-0{day}T12:00:00Z" for day in range(9, 0, -1))
DEPLOYED = "1" * 12


@pytest.mark.parametrize(
    ("runs", "since"),
    [
        ((), ""),
        ((("failed", "b", ""), ("applied", "a", DEPLOYED)), DAYS[1]),
        ((("unchanged", "a", ""), ("failed", "b", ""), ("applied", "a", DEPLOYED), ("applied", "b", DEPLOYED)), DAYS[2]),
        ((("rolled-back", "a", DEPLOYED), ("failed", "b", ""), ("applied", "a", DEPLOYED)), DAYS[0]),
        ((("unchanged", "a", DEPLOYED), ("rolled-back", "a", DEPLOYED), ("failed", "b", ""), ("applied", "a", DEPLOYED)), DAYS[1]),
        ((("applied", "a", DEPLOYED), ("applied", "b", DEPLOYED), ("applied", "a", DEPLOYED)), DAYS[0]),
        ((("applied", "b", DEPLOYED), ("applied", "a", DEPLOYED)), ""),
    ],
    ids=["none", "failed after", "compared after", "gone back to", "compared since", "rolled back by hand", "not the newest"],
)
def test_a_commit_is_applied_since_it_was_deployed_last_after_another(runs: tuple[tuple[str, str, str], ...], since: str) -> None:
    history = tuple(
        Run("shop.0123456789ab", "push", outcome, day, sha(commit), "", "", digest=digest)
        for (outcome, commit, digest), day in zip(runs, DAYS, strict=False)
    )
    assert Summary.of(blank(commit=sha("a"), history=history)).applied == since


def test_a_summary_says_what_stands_in_the_way() -> None:
    sick = TargetHealth("degraded", worst=("Deployment/shop/api: no Node has room", "Job/shop/load: failed"))
    assert Summary.of(blank(health=sick)).why == "Deployment/shop/api: no Node has room"
    failed = RunStatus("failed", message="deploy/api.yaml:3: no such field\nand more")
    assert Summary.of(blank(health=sick, status=failed)).why == "deploy/api.yaml:3: no such field"
    held = HeldPlan("1" * 12, ("11 deletions of 20 members", "more"), (), sha(), "", "", NOON)
    assert Summary.of(blank(health=sick, status=failed, held=held)).why == "11 deletions of 20 members"
    assert not Summary.of(blank()).why


@pytest.mark.parametrize("text", ["", "{", "[]", '{"commit": "main"}', '{"x": 1}', '{"held": 1}', "[" * 5000, "1" * 2000, "null"])
def test_a_broken_summary_is_no_summary(text: str) -> None:
    assert read_summary(text) is None


def packed(text: bytes) -> str:
    return base64.b64encode(gzip.compress(text)).decode()


def changed(part: str, key: str, value: Any) -> Body:
    body = encode(full(), NAMESPACE, TOOLING)
    place = body if part in body else body["metadata"]
    if value is None:
        del place[part][key]
    else:
        place[part][key] = value
    return body


HOME = encode(full(), NAMESPACE, TOOLING)["data"]["target.json"]
BROKEN = {
    "no label": (changed("labels", "applyset.kubernetes.io/id", None), "isn't Anneal's"),
    "other id": (changed("labels", "applyset.kubernetes.io/id", "applyset-x-v1"), "but this name and namespace make"),
    "other tool": (changed("annotations", "applyset.kubernetes.io/tooling", "kubectl/v1.36.3"), "another tool's ApplySet"),
    "no tool": (changed("annotations", "applyset.kubernetes.io/tooling", None), "another tool's ApplySet"),
    "no kinds": (changed("annotations", "applyset.kubernetes.io/contains-group-kinds", None), "contains-group-kinds`: is missing"),
    "bad kind": (changed("annotations", "applyset.kubernetes.io/contains-group-kinds", "A,,B"), "'' isn't a name"),
    "bad namespace": (changed("annotations", "applyset.kubernetes.io/additional-namespaces", "a,../b"), "'../b' isn't a name"),
    "no home": (changed("data", "target.json", None), "`target.json`: is missing"),
    "not JSON": (changed("data", "attempt.json", "{"), "data key `attempt.json`"),
    "NaN": (changed("data", "history.json", "[NaN]"), "NaN isn't JSON"),
    "wrong type": (changed("data", "attempt.json", "[]"), "expected an object"),
    "not a sha": (changed("data", "commit", "../../etc"), "data key `commit`: commit: expected 40 to 64 hex digits"),
    "a sha and more": (changed("data", "commit", sha() + "\n"), "commit: expected 40 to 64 hex digits"),
    "no text": (changed("data", "commit", 7), "commit: expected 40 to 64 hex digits"),
    "a second commit": (changed("data", "applied.json", json.dumps({"commit": sha("b")})), "commit stands in another key, too"),
    "no repository": (changed("data", "repository", None), "`repository`: is missing, and something is applied"),
    "missing field": (changed("data", "pin.json", "{}"), "commit is missing"),
    "unknown field": (changed("data", "pin.json", json.dumps({"commit": sha(), "evil": 1})), "'evil' is unknown here"),
    "not a tool": (
        changed("data", "held.json", json.dumps({**write_record(full().held), "once": {"adopt": ["flux; id"]}})),
        "expected a tool, or the id of an ApplySet",
    ),
    "unknown key": (changed("data", "evil.json", "{}"), "`evil.json`: is unknown here"),
    "bad time": (changed("data", "suspend.json", '{"by": "x", "until": "9999-99-99T00:00:00Z"}'), "until:"),
    "negative": (changed("data", "status.json", '{"failures": -1}'), "failures: expected a number"),
    "bool as int": (changed("data", "status.json", '{"failures": true}'), "failures: expected a number"),
    "huge int": (changed("data", "status.json", '{"failures": ' + "9" * 5000 + "}"), "`status.json`"),
    "surrogate": (changed("data", "suspend.json", '{"by": "\\ud800"}'), "by: expected printable text"),
    "escape": (changed("data", "suspend.json", '{"by": "\\u001b[2J"}'), "by: expected printable text"),
    "deep": (changed("data", "declared.json", "[" * 100_000), "`declared.json`"),
    "bad identity": (changed("data", "declared.json", '["apps/Deployment:shop/a/b"]'), "expected <group>/<Kind>"),
    "twice": (changed("binaryData", "pin.json.gz", packed(b"{}")), "is there twice"),
    "not base64": (changed("binaryData", "readsPaths.json.gz", "%%%"), "`readsPaths.json.gz`"),
    "cut gzip": (changed("binaryData", "x.json.gz", "AAAA"), "is unknown here"),
    "other target": (changed("data", "target.json", json.dumps(json.loads(HOME) | {"target": "x"})), "of target 'x'"),
    "another repository": (
        changed("data", "target.json", json.dumps(json.loads(HOME) | {"repository": "u"})),
        "repository stands in another",
    ),
}


@each_row("name", BROKEN)
def test_a_broken_state_is_refused_by_name_with_the_way_out(name: str) -> None:
    body, expected = BROKEN[name]
    with pytest.raises(StateInvalid) as caught:
        read(body)
    assert expected in str(caught.value)
    assert all(problem.subject == "ConfigMap/anneal-system/anneal-shop" for problem in caught.value.problems)
    assert all(problem.fix for problem in caught.value.problems)


@pytest.mark.parametrize("packed_text", [b"[" + b" " * 50_000_000 + b"]", b"["])
def test_a_gzip_bomb_or_a_broken_one_is_refused(packed_text: bytes) -> None:
    body = encode(full(), NAMESPACE, TOOLING)
    del body["data"]["declared.json"]
    body["binaryData"]["declared.json.gz"] = packed(packed_text)
    with pytest.raises(StateInvalid, match=r"declared\.json\.gz"):
        read(body)


def test_every_mistake_is_reported_at_once() -> None:
    body = changed("data", "pin.json", "{}")
    body["data"]["suspend.json"] = "{}"
    with pytest.raises(StateInvalid) as caught:
        read(body)
    assert len(caught.value.problems) == 2


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=10), inner, max_size=3)),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_any_data_in_a_state_is_read_or_refused_but_never_crashes(data: st.DataObject) -> None:
    body = copy.deepcopy(encode(full(), NAMESPACE, TOOLING))
    key = data.draw(st.sampled_from(sorted(body["data"])))
    parsed = json.loads(body["data"][key]) if key.endswith(".json") else None
    if isinstance(parsed, dict) and data.draw(st.booleans()):
        parsed[data.draw(st.sampled_from(sorted(parsed)))] = data.draw(json_values)
        text = json.dumps(parsed)
    else:
        text = data.draw(st.one_of(st.text(max_size=80), json_values.map(json.dumps)))
    body["data"][key] = text
    try:
        state = read(body)
    except StateInvalid:
        return
    assert fitted(state, NAMESPACE, TOOLING)[0] == state


@pytest.mark.parametrize("text", [*noise(1, 1200), "\u8a9e" * 1200], ids=["noise", "cjk"])
def test_a_rollout_of_a_thousand_failed_steps_can_be_recorded(text: str) -> None:
    said = noise(1000, 1200) if text.isascii() else (text,) * 1000
    steps = tuple(
        StepRecord("one", f"step {number}", "Deployment/shop/api", "Canary", NOON, NOON, "failed", message)
        for number, message in enumerate(said)
    )
    state = blank(rollout=Progress(sha(), "d" * 64, NOON, steps=steps), reads_paths=("deploy",))
    written, _ = fitted(state, NAMESPACE, TOOLING)
    assert written.rollout
    assert [step.outcome for step in written.rollout.steps] == ["failed"] * 1000
    assert all(step.message and before.startswith(step.message) for step, before in zip(written.rollout.steps, said, strict=True))
    assert written.reads_paths == ("deploy",)


def test_the_size_limit_drops_what_steps_say_before_how_far_they_are() -> None:
    digests = [hashlib.sha256(str(number).encode()).hexdigest()[:12] for number in range(20_000)]
    stood = tuple(Stalled(digest, NOON) for digest in digests)
    steps = tuple(
        StepRecord("one", f"step {number}", "Deployment/shop/api", "Canary", NOON, message=message, stood=stood[number * 20 :][:20])
        for number, message in enumerate(noise(1000, 1200))
    )
    written, _ = fitted(blank(rollout=Progress(sha(), "d" * 64, NOON, steps=steps)), NAMESPACE, TOOLING)
    assert written.rollout
    assert written.rollout.steps == tuple(replace(step, message=step.message[:200], stood=()) for step in steps)


def test_a_hook_is_found_again_by_the_longest_name_that_it_can_have() -> None:
    name = str(Identity("g" * 253, "K" * 63, "n" * 63, "x" * 253))
    steps = (StepRecord("PreSync", name, name, "Hook"),)
    written, _ = fitted(blank(rollout=Progress(sha(), "d" * 64, NOON, steps=steps)), NAMESPACE, TOOLING)
    assert written.rollout
    assert written.rollout.steps == steps


@pytest.mark.parametrize(
    ("key", "value"), [("name", "../secrets"), ("name", ".."), ("namespace", "a/b"), ("plural", "x?y"), ("apiVersion", "v1/../x")]
)
def test_a_fact_of_a_refusal_leads_nowhere_else(key: str, value: str) -> None:
    """What a record names is asked of the API server."""
    body = encode(full(), NAMESPACE, TOOLING)
    status = json.loads(body["data"]["status.json"])
    status["refusal"]["facts"][0][key] = value
    body["data"]["status.json"] = json.dumps(status)
    with pytest.raises(StateInvalid, match=f"refusal: facts: {key}: expected"):
        read(body)
