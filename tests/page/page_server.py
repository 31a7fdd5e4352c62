"""`anneal serve` with a page: people sign in with static tokens, each of a role of its own."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from infra import ports
from tests.e2e.one_target import PATH, STATES, Shop
from tests.e2e.serve_process import Serving
from tests.fakes.clock import NEVER

OPERATOR, VIEWER, STRANGER = ("the token of a person who acts", "the token of a person who looks", "the token of a person without a role")
NEIGHBOUR = "the token of a person of one target"
_SECRETS = {
    "key": "a key of at least thirty-two characters",
    "ada": OPERATOR,
    "grace": VIEWER,
    "mallory": STRANGER,
    "lin": NEIGHBOUR,
}

NOTHING: Mapping[str, Any] = MappingProxyType({})

PageServer = Callable[..., Serving]


@contextlib.contextmanager
def page_servers(directory: Path) -> Iterator[PageServer]:
    """Start servers: `start(shop, page=False, interval="1s")` returns one that is ready; its `url` is what `open_page` takes.

    Shops are its targets, `more` says more of some, by name; `targets`: others; `page`: whether it has one; the rest is configuration.
    """
    with contextlib.ExitStack() as opened:

        def start(*shops: Shop, page: bool = True, more: Mapping[str, Any] = NOTHING, **settings: Any) -> Serving:
            kept = opened.enter_context(ports.keep())
            address = "{}:{}".format(*kept.getsockname())
            place = directory / f"server-{kept.getsockname()[1]}"
            place.mkdir()
            config = place / "anneal.yaml"
            pages = {"page": page_settings(f"http://{address}", place, [each.name for each in shops[:1]])} if page else {}
            targets = [_target(each) | more.get(each.name, {}) for each in shops] + settings.pop("targets", [])
            config.write_text(json.dumps({**_USUAL, **pages, "targets": targets, **settings}))
            server = Serving(config, place / "log", bind=address)
            opened.callback(server.stop)
            return server.start().ready()

        yield start


@pytest.fixture
def page_server(tmp_path: Path) -> Iterator[PageServer]:
    """Start servers of the test's own: see `page_servers`."""
    with page_servers(tmp_path) as start:
        yield start


def page_settings(url: str, place: Path, first: Sequence[str] = ()) -> dict[str, Any]:
    """Return the configuration's `page`; secrets are written to `place`.

    ada operates and reads logs, grace looks at all, lin operates the `first` targets, mallory has no role.
    """
    for name, text in _SECRETS.items():
        (place / name).write_text(text)
    return {
        "url": url,
        "key": {"file": str(place / "key")},
        "tokens": [{"name": name, "secret": {"file": str(place / name)}} for name in _SECRETS if name != "key"],
        "roles": [
            {"role": "operator", "users": ["ada"], "targets": ["*"], "logs": ["*"]},
            {"role": "viewer", "users": ["grace"], "targets": ["*"]},
            *({"role": "operator", "users": ["lin"], "targets": [name]} for name in first),
        ],
    }


_USUAL = {
    "apiVersion": "anneal.dev/v1alpha1",
    "kind": "Config",
    "stateNamespace": STATES,
    "interval": "1h",
    "driftInterval": NEVER,
    "webhooks": {"github": {"secrets": [{"env": "HOOK"}]}},
    "replay": {"tokens": [{"name": "ops", "secret": {"env": "OPS"}, "may": ["replay", "approve", "rollback", "read"]}]},
}


def _target(shop: Shop) -> dict[str, Any]:
    return {
        "name": shop.name,
        "repository": {"url": shop.target.repository.url},
        "path": PATH,
        "namespaces": list(shop.target.namespaces),
        "clusterScoped": list(shop.target.cluster_scoped),
        "cluster": {"kubeconfig": {"file": str(shop.kubectl.kubeconfig)}},
    }
