"""Which labels a selector of deletions demands; what would also select objects without labels is refused."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes.client import V1LabelSelector

from handler.library.delete_selector import DeleteSelector, SelectorRefused


def admits(selector: Any, **labels: str) -> bool:
    return DeleteSelector.of(selector).admits({"metadata": {"labels": labels}})


@pytest.mark.parametrize(
    ("selector", "yes", "no"),
    [
        ("app=shop", {"app": "shop"}, {"app": "web"}),
        ("app==shop,tier=web", {"app": "shop", "tier": "web"}, {"app": "shop"}),
        (" app = shop , tier in ( web , api ) ", {"app": "shop", "tier": "api"}, {"app": "shop", "tier": "db"}),
        ("app,tier notin (db,cache)", {"app": "x"}, {"app": "x", "tier": "db"}),
        ("app!=web,example.com/owner", {"example.com/owner": ""}, {"example.com/owner": "", "app": "web"}),
        ("app, !old", {"app": "shop"}, {"app": "shop", "old": ""}),
        ({"app": "shop"}, {"app": "shop"}, {}),
        ({"matchLabels": {"app": "shop"}}, {"app": "shop", "b": "c"}, {"app": "web"}),
        (
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}, {"key": "old", "operator": "DoesNotExist"}]},
            {"app": "b"},
            {"app": "b", "old": "1"},
        ),
        (
            {"matchLabels": {"app": "a"}, "matchExpressions": [{"key": "t", "operator": "NotIn", "values": ["x"]}]},
            {"app": "a"},
            {"app": "a", "t": "x"},
        ),
        ({"matchExpressions": [{"key": "app", "operator": "Exists"}]}, {"app": ""}, {"other": ""}),
        (V1LabelSelector(match_labels={"app": "shop"}), {"app": "shop"}, {"app": "web"}),
    ],
)
def test_a_selector_admits_what_kubectl_would_select(selector: Any, yes: dict[str, str], no: dict[str, str]) -> None:
    assert admits(selector, **yes)
    assert not admits(selector, **no)


@pytest.mark.parametrize("selector", ["", " ", {}, {"matchLabels": {}}, {"matchExpressions": []}, "!old", "app!=web", "app notin (web)"])
def test_a_selector_of_objects_without_labels_is_refused_with_the_way_out(selector: Any) -> None:
    with pytest.raises(SelectorRefused, match="carries no label; give at least one label") as raised:
        DeleteSelector.of(selector)
    assert isinstance(raised.value, ValueError)


@pytest.mark.parametrize(
    "selector",
    [
        "app=shop,",
        "app=shop;",
        "app=a b",
        "in (a)",
        "app in a",
        "app>1",
        "-app=shop",
        "app=shop-",
        {"app": 1},
        {"app": None},
        {"matchLabels": {"app": "x"}, "app": "y"},
        {"matchExpressions": [{"key": "app", "operator": "Gt", "values": ["1"]}]},
        {"matchExpressions": [{"key": "app", "operator": "In"}]},
        {"matchLabels": {"app": "x"}, "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": "web"}]},
        {"matchExpressions": [{"key": "app", "operator": "In", "values": [["a"]]}]},
        {"matchExpressions": [{"key": "app", "operator": "Exists", "values": ["a"]}]},
        {"matchExpressions": {"key": "app"}},
        {"matchLabels": "app"},
        {1: "a"},
        ["app=shop"],
        b"app=shop",
        "app,tier notin (a b)",
    ],
)
def test_what_cannot_be_read_is_refused(selector: Any) -> None:
    with pytest.raises(SelectorRefused, match="delete_selector"):
        DeleteSelector.of(selector)
