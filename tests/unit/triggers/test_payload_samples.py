"""Our own samples of every provider and event: what each is read as, and that only its own secret and its own bytes prove it."""

from __future__ import annotations

import json

import pytest

from handler.model.errors import BadPayload, BadSignature
from handler.model.target_matching import repository_key
from handler.triggers import WEBHOOKS, payload
from tests.fakes.host_webhooks import ALIASES, KEYS, PROOF, PROVIDERS, PUSHES, SAMPLES, SAMPLES_DIRECTORY, Sample, accepted, headers, read
from tests.fakes.signed_webhooks import SHOP
from tests.unit.rows import each_row

KNOWN = {repository_key(url) for url in (SHOP, *ALIASES)}


@each_row("sample", SAMPLES)
def test_a_sample_is_read_as_what_it_is(sample: Sample) -> None:
    found = read(sample.provider, sample.body, event=sample.event)
    assert (found.provider, found.kind, found.changes, found.more) == (sample.provider, sample.kind, sample.changes, False)
    assert (found.pull_request, found.comment) == (sample.number, sample.comment)
    if sample.kind in ("push", "pull-request"):
        assert {repository_key(url) for url in found.urls} & KNOWN
    assert bool(found.note) is (sample.kind == "other")
    assert found.delivery == ("build-118" if "deliveryId" in sample.document else "0f6b4a8e-9a11")


@each_row("provider", PROVIDERS)
def test_who_pushed_is_recorded(provider: str) -> None:
    named = {"azuredevops": "ada@example.com", "generic": "nightly"}
    assert read(provider, PUSHES[provider].body, event=PUSHES[provider].event).actor == named.get(provider, "ada")


@each_row("provider", PROVIDERS)
def test_a_push_is_read_however_long_the_name_of_who_pushed(provider: str) -> None:
    push = PUSHES[provider]
    name = read(provider, push.body, event=push.event).actor
    body = push.body.replace(f'"{name}"'.encode(), f'"{name * 500}"'.encode())
    found = read(provider, body, event=push.event)
    assert (found.kind, found.changes, found.actor) == ("push", push.changes, (name * 500)[: payload.MAX_NAME])


def test_no_sample_is_forgotten_and_each_row_has_samples() -> None:
    on_disk = {f"{path.parent.name}/{path.stem}" for path in SAMPLES_DIRECTORY.glob("*/*.json")}
    assert on_disk == {str(sample) for sample in SAMPLES}
    assert list(WEBHOOKS) == list(PROVIDERS)


UNNAMED = {
    *("github/create", "github/delete", "github/pull_request_review-submitted", "github/pull_request_review_comment-created"),
    *("gitea/create", "gitea/delete", "bitbucket/cloud-pullrequest-approved"),
}
"""Only a header names the event of these."""


INDISTINCT = {"bitbucket/cloud-comment_updated"}
"""Those look like another event of their host, which is read instead."""


@each_row("sample", SAMPLES)
def test_the_shape_of_a_payload_tells_its_provider_and_event(sample: Sample) -> None:
    shapes = {name: found for name, trigger in WEBHOOKS.items() if (found := trigger.shape(sample.document)) is not None}
    assert list(shapes) == ([] if str(sample) in UNNAMED else [sample.provider])
    for named in shapes.values():
        event = WEBHOOKS[sample.provider].read(named, sample.body)
        read_as = (event.kind, event.changes, event.pull_request, event.comment)
        assert str(sample) in INDISTINCT or read_as == (sample.kind, sample.changes, sample.number, sample.comment)


@each_row("provider", PROVIDERS)
def test_each_of_several_secrets_is_accepted_and_says_whom_it_speaks_for(provider: str) -> None:
    sample = PUSHES[provider]
    known = accepted("another-secret-0123", KEYS[provider.upper()], "a-third-secret-0123")
    event, targets = WEBHOOKS[provider].verified(headers(provider, sample.body, sample.event), sample.body, known)
    assert (event.kind, sorted(targets)) == ("push", ["shop"])


@each_row("provider", PROVIDERS)
def test_no_other_webhook_secret_proves_a_delivery(provider: str) -> None:
    sample = PUSHES[provider]
    sent = headers(provider, sample.body, sample.event)
    for known in (accepted("another-secret-0123"), []):
        with pytest.raises(BadSignature) as raised:
            WEBHOOKS[provider].verified(sent, sample.body, known)
        assert str(raised.value) == "webhook: missing or wrong signature"


@each_row("sender", PROVIDERS)
@each_row("provider", PROVIDERS)
def test_a_signature_of_another_git_host_proves_nothing(provider: str, sender: str) -> None:
    """The provider is the path: a signature in another provider's spelling isn't looked at."""
    sample = PUSHES[provider]
    sent = headers(sender, sample.body, sample.event, KEYS[provider.upper()])
    if provider == sender:
        assert read(provider, sample.body, sent).changes
        return
    with pytest.raises(BadSignature):
        read(provider, sample.body, sent)


SIGNED = tuple(name for name in PROVIDERS if name not in ("gitlab", "azuredevops"))  # these two send the secret itself


@each_row("provider", SIGNED)
def test_a_signature_is_over_the_raw_bytes(provider: str) -> None:
    sample = PUSHES[provider]
    with pytest.raises(BadSignature):
        read(provider, sample.body + b" ", headers(provider, sample.body, sample.event))


@each_row("provider", SIGNED)
def test_any_other_spelling_of_a_signature_is_refused(provider: str) -> None:
    sample = PUSHES[provider]
    sent = headers(provider, sample.body, sample.event)
    right = sent[PROOF[provider]]
    digest = right.removeprefix("sha256=")
    prefix = right.removesuffix(digest)
    other = "" if prefix else "sha256="
    for wrong in (
        "",
        prefix + digest.upper(),
        prefix.upper() + digest if prefix else digest.title(),
        other + digest,
        f"sha1={digest[:40]}",
        f" {right}",
        f"{right} ",
        f"{right}\n",
        f"{right},{right}",
        right[:-1],
        f"{right}0",
        f"{prefix}é",
        prefix + "٣" * 64,
        prefix + "a" * 10240,
        "\ud800",
    ):
        with pytest.raises(BadSignature):
            read(provider, sample.body, sent | {PROOF[provider]: wrong})
    with pytest.raises(BadSignature):
        read(provider, sample.body, sent | {PROOF[provider].lower(): right})  # twice, in two spellings


@each_row("provider", PROVIDERS)
def test_no_payload_is_read_before_its_signature_is_verified(provider: str) -> None:
    with pytest.raises(BadSignature):
        read(provider, b"\xff not json", headers(provider, b"{}", "push", "another-secret-0123"))


@each_row("provider", PROVIDERS)
@each_row("name", ["", "x y", "a" * 65, "é", "a\nb", "\x1b[31m"])
def test_a_delivery_id_that_is_none_is_dropped(provider: str, name: str) -> None:
    document = PUSHES[provider].document
    document.pop("deliveryId", None)
    document.pop("id", None)  # Azure DevOps names the event there, too
    body = json.dumps(document).encode()
    sent = {key: name if value == "0f6b4a8e-9a11" else value for key, value in headers(provider, body, PUSHES[provider].event).items()}
    assert read(provider, body, sent).delivery == ""


@each_row("provider", ["github", "gitea", "bitbucket"])
@each_row("name", ["", "PUSH"])
def test_an_event_header_that_is_no_event_name_is_refused(provider: str, name: str) -> None:
    with pytest.raises(BadPayload, match="no event name"):
        read(provider, PUSHES[provider].body, event=name)


@each_row(("provider", "key"), [("gitlab", "object_kind"), ("azuredevops", "eventType")])
@each_row("name", ["", None, "Push Hook", [], "é\x1b"])
def test_an_event_name_in_the_payload_is_as_strict(provider: str, key: str, name: object) -> None:
    document = PUSHES[provider].document | {key: name, "event_name": None}
    with pytest.raises(BadPayload):
        read(provider, json.dumps(document).encode())


@pytest.mark.parametrize(
    ("provider", "event", "document"),
    [
        ("bitbucket", "repo:push", {"push": {"changes": []}, "repository": {}}),
        ("bitbucket", "repo:push", {"push": None}),
        ("bitbucket", "repo:refs_changed", {"changes": []}),
        ("azuredevops", "", {"eventType": "git.push", "resource": {"refUpdates": []}}),
    ],
)
def test_a_push_of_no_branch_and_no_tag_asks_for_nothing(provider: str, event: str, document: object) -> None:
    found = read(provider, json.dumps(document).encode(), event=event)
    assert (found.kind, found.note) == ("other", "a push without any branch or tag")


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["bitbucket", "azuredevops"])
def test_of_too_many_refs_the_first_are_listed_and_the_rest_is_not_forgotten(provider: str) -> None:
    document = PUSHES[provider].document
    listed = document["push"]["changes"] if provider == "bitbucket" else document["resource"]["refUpdates"]
    for count, more in ((payload.MAX_CHANGES, False), (payload.MAX_CHANGES + 1, True)):
        listed[:] = [listed[0]] * count
        found = read(provider, json.dumps(document).encode(), event="repo:push")
        assert (len(found.changes), found.more) == (payload.MAX_CHANGES, more)
