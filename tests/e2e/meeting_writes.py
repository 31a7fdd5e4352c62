"""A run in which a chosen request meets what another writes just before it."""

from __future__ import annotations

from collections.abc import Callable

from handler.model.result import Result
from tests.e2e.api_proxy import Chosen, is_object_write
from tests.e2e.killed_runs import Wire
from tests.e2e.one_target import Shop
from tests.rooms.cluster.faulty_proxy import Handler


def run_meeting(shop: Shop, wired: Wire, chosen: Chosen, act: Callable[[], object], trigger: str = "push") -> Result:
    """Run the target; `act` comes in ahead of the first chosen request."""
    wire = wired()

    def meet(_: Handler) -> bool:
        act()
        return True

    wire.meet(1, meet, chosen)
    result = shop.handler_at(wire.kubeconfig).run(shop.job(trigger))
    assert wire.count, "the chosen request never came"
    return result


def write_of(method: str, name: str) -> Chosen:
    """The write of one object, named as in its URL."""
    return lambda asked, path: asked == method and is_object_write(asked, path) and path.partition("?")[0].endswith(name)
