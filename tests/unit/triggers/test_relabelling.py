"""An object's key leads to its instance's as Prometheus relabels: whole keys, `drop` drops, `$1` is the first group."""

from __future__ import annotations

import pytest

from handler.config.trigger_settings import KeyTransformation
from handler.triggers.relabelling import instance_key

PREFIXED = "([a-z0-9]([-a-z0-9]*[a-z0-9])?)/grafana-(.*)"
GRAFANA = (KeyTransformation("keep", PREFIXED), KeyTransformation(regex=PREFIXED, replacement="$1/$3"))


@pytest.mark.parametrize(
    ("key", "transformations", "found"),
    [
        ("shop/main", (), "shop/main"),
        ("shop/main", (KeyTransformation(),), "shop/main"),
        ("shop/grafana-main", GRAFANA, "shop/main"),
        ("shop/prometheus-main", GRAFANA, None),
        ("a-b/grafana-x.y", GRAFANA, "a-b/x.y"),
        ("shop/main", (KeyTransformation("drop", "shop/.*"),), None),
        ("bank/main", (KeyTransformation("drop", "shop/.*"),), "bank/main"),
        ("bank/shop/", (KeyTransformation("drop", "shop/"),), "bank/shop/"),
        ("shop/main-0", (KeyTransformation("keep", "main"),), None),
        ("shop/main-0", (KeyTransformation(regex="(.*)-[0-9]+", replacement="${1}"),), "shop/main"),
        ("shop/main-0", (KeyTransformation(regex="nothing", replacement="other"),), "shop/main-0"),
        ("shop/main", (KeyTransformation(regex="(?P<space>.*)/.*", replacement="${space}/all"),), "shop/all"),
        ("shop/main", (KeyTransformation(regex="(.*)/(x)?.*", replacement="$1/$$2$2$9$none"),), "shop/$2"),
        ("shop/main", (KeyTransformation(regex=".*", replacement=""),), None),
        ("shop/main", (KeyTransformation(regex=".*", replacement="$\u00b2x$\u0663$99999999999999999999"),), None),
        ("node-1", (KeyTransformation(regex="node-(.*)", replacement="machine-$1"),), "machine-1"),
    ],
)
def test_a_key_leads_to_its_instance(key: str, transformations: tuple[KeyTransformation, ...], found: str | None) -> None:
    assert instance_key(key, transformations) == found
