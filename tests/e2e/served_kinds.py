"""What the API server serves follows a CRD a moment later: tests that begin after that moment wait for it."""

from __future__ import annotations

from tests.e2e.one_target import Shop
from tests.patience import until


def until_served(shop: Shop, version: str, *, served: bool = True) -> None:
    """Wait until the API server lists a version of the shop's Offers, and answers for it; or neither."""
    until(lambda: _is_told(shop, version) is _answers(shop, version) is served, f"{version} is {'not ' if served else ''}served")


def _is_told(shop: Shop, version: str) -> bool:
    """Ask a fresh discovery."""
    return shop.handler_at(shop.kubectl.kubeconfig).discovery(shop.target).find(f"{shop.group}/{version}", "Offer") is not None


def _answers(shop: Shop, version: str) -> bool:
    return shop.kubectl.tried("get", "--raw", f"/apis/{shop.group}/{version}/offers").returncode == 0
