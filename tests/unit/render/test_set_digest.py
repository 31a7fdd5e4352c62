"""The digest of a rendered set says nothing of a secret: two values make one digest, two versions of what holds them two."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handler.model.manifest import Manifest, digest_of
from handler.model.render import Rendered
from handler.model.tree import ReadSet
from handler.render.set_digest import set_digest


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
