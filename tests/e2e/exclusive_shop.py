"""A shop with an exclusive namespace, and clocks that the test moves on, its own and the API server's: what drift runs delete, and when."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from handler.app.build import Handler
from handler.cluster.api import Api
from handler.config.settings import HoldAbove, Prune, Target
from handler.engine.run.dependencies import Dependencies
from handler.model.plan import Action
from handler.model.result import Result
from handler.state.record import Orphan
from handler.state.record_format import seconds_of
from tests.e2e.documents import Document, config_map
from tests.e2e.one_target import DONE, Shop, told

GRACE = 3600.0
BOLD = Prune(hold_above=HoldAbove(1000, 1.0))
"""Nothing waits for an approval."""


@dataclass
class ExclusiveShop:
    """Runs of a shop by a clock that begins now; `web` is all that it declares at first."""

    shop: Shop
    ahead: float = 0.0
    web: Document = field(init=False)

    def __post_init__(self) -> None:
        self.web = config_map(self.shop.name, "web")
        self.configure(exclusive=(self.shop.name,), orphan_grace=GRACE, namespaces=(self.shop.name,), prune=BOLD)
        self.shop.push(self.web)
        self.run("push")

    def configure(self, **changes: Any) -> None:
        """Change settings, and begin with a fresh handler, which reads the test's clock."""
        self.shop.configure(**changes)
        self.use(self.shop.handler)

    def use(self, handler: Handler) -> None:
        """Let a handler make the runs, by the test's clock."""
        self.shop.handler, make = handler, handler._dependencies

        def timed(target: Target) -> Dependencies:
            made = make(target)
            clock, api = made.clock, made.planner.api
            api.server_time = lambda: Api.server_time(api) + self.ahead  # type: ignore[method-assign]  # the seam
            return replace(made, clock=lambda: clock() + self.ahead)

        handler._dependencies = timed  # type: ignore[method-assign]  # the seam

    def run(self, trigger: str = "drift", **fields: Any) -> Result:
        result = self.shop.run(trigger, **fields)
        assert result.outcome in DONE, told(result)
        return result

    def pruned(self, trigger: str = "drift") -> set[str]:
        """Run; return the names of what was deleted."""
        result = self.run(trigger)
        return {change.identity.name for change in result.written if change.action is Action.PRUNE}

    def plant(self, *documents: Document) -> list[Document]:
        """Create objects by hand; return them as they live."""
        self.shop.kubectl.apply(*documents, options=["--server-side", "--field-manager=by-hand"])
        live = [self.shop.live(document) for document in documents]
        assert all(live), live
        return [each or {} for each in live]

    def orphans(self) -> dict[str, Orphan]:
        """Return what the record knows of the exclusive namespace, by name."""
        return {each.identity.name: each for each in self.shop.state().orphans if each.unmarked}

    def wait_for(self, orphan: Orphan) -> None:
        """Move the clocks on to when an orphan may be deleted, whatever fraction of a second the API server leaves out of its date."""
        self.ahead += max(seconds_of(orphan.until) + 2 - self.now(), 0.0)

    def now(self) -> float:
        return server_time(self.shop)


def server_time(shop: Shop) -> float:
    return shop.handler.dependencies(shop.name).planner.api.server_time()
