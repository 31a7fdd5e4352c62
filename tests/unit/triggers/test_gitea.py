"""Gitea and Forgejo deliveries."""

from __future__ import annotations

import json

import pytest

from handler.model.errors import BadPayload, BadSignature
from tests.fakes.host_webhooks import KEYS, OTHER, PUSHES, SAMPLES, TAG_OBJECT, Sample, headers, hexadecimal, read

BODY = PUSHES["gitea"].body
RIGHT = hexadecimal(BODY, KEYS["GITEA"])


def changed(**more: object) -> bytes:
    return json.dumps(PUSHES["gitea"].document | more).encode()


@pytest.mark.parametrize("sample", [sample for sample in SAMPLES if sample.provider == "gitea" and sample.headers], ids=str)
def test_what_a_real_gitea_has_sent_is_proven_by_its_own_headers(sample: Sample) -> None:
    found = read("gitea", sample.body, sample.headers)
    assert (found.kind, found.delivery) == (sample.kind, sample.headers["X-Gitea-Delivery"])
    assert sample.headers["X-Gitea-Event"] == sample.event
    with pytest.raises(BadSignature):
        read("gitea", sample.body + b"\n", sample.headers)


def test_forgejos_own_headers_do_alone() -> None:
    sent = {"X-Forgejo-Signature": RIGHT, "X-Forgejo-Event": "push", "X-Forgejo-Delivery": "f-1"}
    found = read("gitea", BODY, sent)
    assert (found.kind, found.delivery) == ("push", "f-1")


def test_of_two_signatures_none_may_be_wrong() -> None:
    both = headers("gitea", BODY, "push") | {"X-Forgejo-Signature": RIGHT, "X-Forgejo-Event": "push"}
    assert read("gitea", BODY, both).kind == "push"
    for name in ("X-Gitea-Signature", "X-Forgejo-Signature"):
        with pytest.raises(BadSignature):
            read("gitea", BODY, both | {name: "0" * 64})


def test_githubs_headers_which_they_send_too_prove_nothing() -> None:
    with pytest.raises(BadSignature):
        read("gitea", BODY, {"X-Hub-Signature-256": f"sha256={RIGHT}", "X-GitHub-Event": "push", "X-Gitea-Event": "push"})


def test_a_tag_without_a_head_commit_hints_at_what_it_has() -> None:
    found = read("gitea", changed(ref="refs/tags/v1", after=TAG_OBJECT, head_commit=None))
    assert found.changes[0].after == TAG_OBJECT
    assert read("gitea", changed(ref="refs/tags/v1", after=TAG_OBJECT, head_commit={"id": OTHER})).changes[0].after == OTHER


def test_the_pusher_stands_in_for_the_sender() -> None:
    assert read("gitea", changed(sender=None, pusher={"login": "bob"})).actor == "bob"


@pytest.mark.parametrize(
    "odd", [{"ref": "main"}, {"repository": None}, {"repository": {"clone_url": ""}}, {"head_commit": [], "ref": "refs/tags/x"}]
)
def test_a_push_of_another_shape_is_refused(odd: dict[str, object]) -> None:
    with pytest.raises(BadPayload):
        read("gitea", changed(**odd))
