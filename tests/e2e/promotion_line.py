"""Targets of one repository that follow each other, on the real cluster and a real git host, by a clock that tests move forward."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from typing import Any

from handler.config.git_settings import Promoted, Repository, Revision
from handler.config.settings import Settings, Target
from handler.model.health import HealthState
from handler.model.result import Outcome, Result
from handler.render.sandbox import Sandbox
from infra.githost import Host, Work
from tests.e2e.documents import Document, config_map
from tests.e2e.one_target import STATES, Shop, told
from tests.kubectl import Kubectl
from tests.patience import until

SOAK = 1800.0


@dataclass
class PromotionLine:
    """Targets in one namespace, each with a path; `sources` says whom each of them follows. `ahead`: seconds that their clocks are."""

    space: str
    host: Host
    sandbox: Sandbox
    kubectl: Kubectl
    sources: dict[str, tuple[str, ...]]
    soak: float = SOAK
    ahead: float = 0.0
    settings: Settings = field(init=False)
    shops: dict[str, Shop] = field(init=False)
    work: Work = field(init=False)

    def __post_init__(self) -> None:
        self.work = Work.of(self.host, self.space)
        self.shops = {name: self._shop(name, sources) for name, sources in self.sources.items()}
        self.kubectl.create_namespace(self.space)
        self.configure()

    def name(self, short: str) -> str:
        return f"{self.space}-{short}"

    def _shop(self, name: str, sources: tuple[str, ...]) -> Shop:
        follows = Revision(promoted=Promoted(tuple(map(self.name, sources)), self.soak)) if sources else Revision(branch="main")
        repository = Repository(url=self.host.url_of(self.space))
        target = Target(self.name(name), repository, (self.space,), revision=follows, path=name, namespace=self.space)
        return Shop(target.name, self.work, self.kubectl, self.sandbox, target)

    def configure(self, **changes: dict[str, Any]) -> None:
        """Change settings of targets, and begin with fresh handlers, as after a restart."""
        for name, shop in self.shops.items():
            shop.target = replace(shop.target, **changes.get(name, {}))
        self.settings = Settings(targets=tuple(shop.target for shop in self.shops.values()), state_namespace=STATES)
        handler = None
        for shop in self.shops.values():
            shop.settings = self.settings
            handler = handler or shop.handler_at(shop.kubectl.kubeconfig, clock=lambda: time.time() + self.ahead, looks=True)
            shop.handler = handler

    def push(self, value: str, *documents: Document, sign: Any = None) -> str:
        """Push a commit by which each target declares this value, and these documents."""
        for name in self.shops:
            self.work.remove(name)
            for document in (config_map(self.space, f"own-{name}", {"value": value}), *documents):
                named = {**document, "metadata": {**document["metadata"], "name": f"{document['metadata']['name']}-{name}"}}
                self.work.write(f"{name}/{document['kind']}-{document['metadata']['name']}.yaml", json.dumps(named, indent=1))
        sha = sign(self.work, f"Value {value}") if sign else self.work.commit(f"Value {value}")
        self.work.push()
        return str(sha)

    def later(self, seconds: float) -> None:
        self.ahead += seconds

    def run(self, name: str, trigger: str = "tick", **fields: Any) -> Result:
        return self.shops[name].run(trigger, **fields)

    def done(self, name: str, trigger: str = "tick", **fields: Any) -> Result:
        result = self.run(name, trigger, **fields)
        assert result.outcome in (Outcome.APPLIED, Outcome.UNCHANGED), told(result)
        return result

    def well(self, name: str, trigger: str = "tick", **fields: Any) -> None:
        """Run a target, and let ticks look until all of it is healthy."""
        self.done(name, trigger, **fields)

        def is_healthy() -> bool:
            self.done(name)
            return self.shops[name].state().health.state == HealthState.HEALTHY

        until(is_healthy)

    def on(self, name: str) -> str:
        """Return the commit that a target has once a tick has looked at it."""
        self.done(name)
        return self.shops[name].state().commit

    def value(self, name: str) -> str:
        """Return what lives."""
        live = self.shops[name].live(config_map(self.space, f"own-{name}-{name}"))
        return str(live["data"]["value"]) if live else ""

    def close(self) -> None:
        self.kubectl.leave_namespaces(self.space)
