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


def digest(*manifests: Manifest, secrets: tuple[str, ...] = (), encrypted: tuple[str, ...] = (), reads: ReadSet | None = None) -> str:
    rendered = Rendered(manifests, reads or ReadSet(()), secrets=secrets, encrypted=encrypted)
    return set_digest(rendered, {each.identity: each.identity for each in manifests})


def base(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


SECRETS: dict[str, Callable[[str], Manifest]] = {
    "a key of a Secret": lambda value: manifest("Secret", data={"pin": base(value)}),
    "a file in a Secret": lambda value: manifest("Secret", data={"a.yaml": base(f"user: ann\npin: '{value}'\n")}),
    "a text": lambda value: manifest("ConfigMap", data={"pin": value}),
    "a part of a text": lambda value: manifest("ConfigMap", data={"url": f"postgres://u:{value}-long@db"}),
}


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize(("one", "other"), [("4711", "0815"), ("x", "y"), ("hünter-2", "hunter-33")])
def test_a_secret_isnt_in_the_digest(name: str, one: str, other: str) -> None:
    made = SECRETS[name]
    if len(one) < 4 and name in ("a file in a Secret", "a part of a text"):
        one, other = f"{one}-long-enough", f"{other}-long-enough"
    found = {value: digest(made(value), secrets=(value, f"{value}-long"), encrypted=("1" * 40,)) for value in (one, other)}
    assert found[one] == found[other]
    assert digest(made(one), secrets=(one, f"{one}-long"), encrypted=("2" * 40,)) != found[one], "the file was encrypted anew"
    assert digest(made(one)) != digest(made(other))


def test_what_is_no_secret_is_in_the_digest_and_versions_of_values_stand_for_them() -> None:
    found = [digest(manifest("Secret", data={"pin": base("4711"), "plain": base(each)}), secrets=("4711",)) for each in "ab"]
    assert found[0] != found[1]
    one = manifest("ConfigMap", data={"a": "4711"})
    read = [ReadSet.of({"//values/Secret/s": each, "//values/ConfigMap/c": other}) for each, other in ("11", "21", "12")]
    first, second, third = (digest(one, secrets=("4711",), reads=each) for each in read)
    assert first != second
    assert first == third, "what a ConfigMap says is in the digest itself"


def test_a_rollout_that_was_encrypted_isnt_in_the_digest() -> None:
    found = [Rendered((), ReadSet(()), rollout=manifest("Rollout", spec={"a": each}), secrets=(each,)) for each in ("4711", "0815")]
    assert set_digest(found[0], {}) == set_digest(found[1], {})


def test_a_set_without_secrets_has_the_digest_that_it_always_had() -> None:
    one, other = manifest("Secret", data={"pin": base("4711")}), manifest("ConfigMap", data={"a": "b"})
    rendered = Rendered((one, other), ReadSet(()), rollout=manifest("Rollout"))
    assert set_digest(rendered, {each.identity: each.identity for each in (one, other)}) == digest_of((one, other, manifest("Rollout")))
    assert set_digest(replace(rendered, rollout=None), {each.identity: each.identity for each in (one, other)}) == digest_of((one, other))
