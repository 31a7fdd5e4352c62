"""The digest of a rendered set says nothing of a secret; the label that `compat: kubernixos` puts on each object has upstream's length."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.model.manifest import Manifest, canonical, digest_of
from handler.model.names import KUBERNIXOS
from handler.model.render import Rendered, RenderRequest, UnstableFields
from handler.model.tree import ReadSet, Tree
from handler.render.sandbox import Sandbox
from handler.render.set_digest import labelled, set_digest
from handler.render.target_render import render_target


def manifest(kind: str, **fields: Any) -> Manifest:
    return Manifest.of({"apiVersion": "v1", "kind": kind, "metadata": {"name": "a", "namespace": "shop"}, **fields})


def digest(*manifests: Manifest, encrypted: tuple[str, ...] = (), reads: ReadSet | None = None, rollout: Manifest | None = None) -> str:
    return set_digest(Rendered(manifests, reads or ReadSet(()), encrypted=encrypted, rollout=rollout))


def base(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SECRETS: dict[str, Callable[[str], Manifest]] = {
    "a key of a Secret": lambda value: hiding(manifest("Secret", data={"pin": base(value)}), "/data/pin"),
    "a text": lambda value: hiding(manifest("ConfigMap", data={"pin": value}), "/data/pin"),
    "a number": lambda value: hiding(manifest("ConfigMap", spec={"count": len(value)}), "/spec/count"),
    "an element": lambda value: hiding(manifest("ConfigMap", spec={"args": ["-p", value]}), "/spec/args/1"),
}


def hiding(made: Manifest, *pointers: str) -> Manifest:
    return replace(made, hidden=pointers)


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize(("one", "other"), [("4711", "08156"), ("x", "yy"), ("hünter-2", "hunter-33")])
def test_a_secret_isnt_in_the_digest(name: str, one: str, other: str) -> None:
    made = SECRETS[name]
    found = {value: digest(made(value), encrypted=("1" * 40,)) for value in (one, other)}
    assert found[one] == found[other]
    assert digest(made(one), encrypted=("2" * 40,)) != found[one], "the file was encrypted anew"
    assert digest(replace(made(one), hidden=())) != digest(replace(made(other), hidden=()))


def test_what_is_no_secret_is_in_the_digest_and_versions_of_values_stand_for_them() -> None:
    found = [digest(hiding(manifest("Secret", data={"pin": base("4711"), "plain": base(each)}), "/data/pin")) for each in "ab"]
    assert found[0] != found[1]
    one = hiding(manifest("ConfigMap", data={"a": "4711"}), "/data/a")
    read = [ReadSet.of({"//values/Secret/s": each, "//values/ConfigMap/c": other}) for each, other in ("11", "21", "12")]
    assert len({digest(one, reads=each) for each in read}) == 3, "either may be in what is hidden"
    assert len({digest(replace(one, hidden=()), reads=each) for each in read}) == 1


def test_a_rollout_that_was_encrypted_isnt_in_the_digest() -> None:
    found = {digest(rollout=hiding(manifest("Rollout", spec={"a": each}), "/spec/a")) for each in ("4711", "0815")}
    assert len(found) == 1


def test_a_set_without_secrets_has_the_digest_that_it_always_had() -> None:
    one, other = manifest("Secret", data={"pin": base("4711")}), manifest("ConfigMap", data={"a": "b"})
    rendered = Rendered((one, other), ReadSet(()), rollout=manifest("Rollout"))
    assert set_digest(rendered, {each.identity: each.identity for each in (one, other)}) == digest_of((one, other, manifest("Rollout")))
    assert set_digest(replace(rendered, rollout=None), {each.identity: each.identity for each in (one, other)}) == digest_of((one, other))


def body(name: str, **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **metadata}, "data": {"key": name}}


def rendered(*bodies: dict[str, Any], **more: Any) -> Rendered:
    return Rendered(tuple(Manifest.of(each, f"{index}.yaml:1") for index, each in enumerate(bodies)), ReadSet(()), **more)


def labels(found: Rendered) -> list[dict[str, str]]:
    return [manifest.body()["metadata"]["labels"] for manifest in found.manifests]


def test_the_label_is_the_first_digits_of_the_sum_before_it_is_put() -> None:
    one, two = body("a"), body("b", labels={"app": "b"})
    found = labelled(rendered(one, two))
    whole = hashlib.sha256(b"[" + canonical(one) + b"," + canonical(two) + b"]").hexdigest()
    assert found.checksum == whole[:62]
    assert labels(found) == [{KUBERNIXOS: whole[:62]}, {"app": "b", KUBERNIXOS: whole[:62]}]
    assert [manifest.place for manifest in found.manifests] == ["0.yaml:1", "1.yaml:1"]


def test_the_label_reveals_no_text_that_was_encrypted_and_changes_with_its_file() -> None:
    def label(pin: str, blob: str) -> str:
        made = rendered(body("a", annotations={"pin": pin}), encrypted=(blob,))
        hiding = tuple(replace(each, hidden=("/metadata/annotations/pin",)) for each in made.manifests)
        return labelled(replace(made, manifests=hiding)).checksum

    assert label("471100", "b" * 40) == label("471101", "b" * 40)
    assert label("471100", "b" * 40) != label("471100", "c" * 40)


def test_the_renderers_own_checksum_counts() -> None:
    found = labelled(rendered(body("a"), checksum="c" * 62))
    assert (found.checksum, labels(found)) == ("c" * 62, [{KUBERNIXOS: "c" * 62}])


@pytest.mark.parametrize("declared", [None, {KUBERNIXOS: "mine"}, {}])
def test_a_declared_label_gives_way(declared: dict[str, str] | None) -> None:
    found = labelled(rendered(body("a", labels=declared)))
    assert labels(found) == [{KUBERNIXOS: found.checksum}]


def test_what_each_render_makes_anew_doesnt_change_the_label() -> None:
    first, second = body("a", annotations={"made": "1"}), body("a", annotations={"made": "2"})
    (manifest,) = rendered(first).manifests
    anew = {manifest.identity: UnstableFields(("/metadata/annotations/made",), "randAlphaNum at a.yaml:3")}
    assert labelled(rendered(first, unstable=anew)).checksum == labelled(rendered(second, unstable=anew)).checksum
    assert labelled(rendered(first)).checksum != labelled(rendered(second)).checksum


def test_the_label_is_put_where_it_is_asked_for_whatever_renders() -> None:
    class Fixed:
        def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
            del tree, request, sandbox
            return rendered(body("a"))

    def through(compat: str) -> Rendered:
        return render_target(Fixed(), None, RenderRequest("", compat=compat), None)  # type: ignore[arg-type]  # neither is looked at

    assert "labels" not in through("none").manifests[0].body()["metadata"]
    assert through("none").checksum == ""
    assert len(labels(through("kubernixos"))[0][KUBERNIXOS]) == 62
