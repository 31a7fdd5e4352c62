"""The label that `compat: kubernixos` puts on each object: upstream's length, of what is declared before it, by any renderer."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import pytest

from handler.model.manifest import Manifest, canonical
from handler.model.names import KUBERNIXOS
from handler.model.render import Rendered, RenderRequest, UnstableFields
from handler.model.tree import ReadSet, Tree
from handler.render.sandbox import Sandbox
from handler.render.set_digest import labelled
from handler.render.target_render import render_target


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


def test_the_sum_is_of_the_set_and_changes_with_each_object() -> None:
    assert labelled(rendered(body("a"), body("b"))).checksum == labelled(rendered(body("b"), body("a"))).checksum
    assert labelled(rendered(body("a"), body("b"))).checksum != labelled(rendered(body("a"), body("b", labels={"x": "y"}))).checksum


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
