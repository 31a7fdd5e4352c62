"""How a Rollout calls what a program made."""

from __future__ import annotations

from handler.model.manifest import Manifest
from handler.render.identity_keys import identity_keys


def made(kind: str, name: str, namespace: str = "", version: str = "v1") -> Manifest:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return Manifest.of({"apiVersion": version, "kind": kind, "metadata": metadata}, "x:1")


def test_an_object_is_called_by_kind_namespace_and_name() -> None:
    one, other = made("Deployment", "api", "shop", "apps/v1"), made("Namespace", "shop")
    assert identity_keys([one, other]) == {"Deployment/shop/api": (one.identity,), "Namespace/shop": (other.identity,)}


def test_a_hashed_name_is_called_without_its_hash_too_unless_two_would_be() -> None:
    one = made("ConfigMap", "settings-4h2mbtbbt6", "shop")
    assert set(identity_keys([one])) == {"ConfigMap/shop/settings-4h2mbtbbt6", "ConfigMap/shop/settings"}
    assert "ConfigMap/shop/settings" not in identity_keys([one, made("ConfigMap", "settings-6gc9d749f7", "shop")])
    plain = made("ConfigMap", "settings", "shop")
    assert identity_keys([one, plain])["ConfigMap/shop/settings"] == (plain.identity,)
    assert set(identity_keys([made("Deployment", "api-4h2mbtbbt6"), made("ConfigMap", "api-aaaaaaaaaa")])) == {
        "Deployment/api-4h2mbtbbt6",
        "ConfigMap/api-aaaaaaaaaa",
    }


def test_what_two_objects_are_called_names_none() -> None:
    assert identity_keys([made("Ingress", "a", version="networking.k8s.io/v1"), made("Ingress", "a", version="example.com/v1")]) == {}
