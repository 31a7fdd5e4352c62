"""Two targets of two repositories in one namespace, of which `apps` depends on `infra`, on the real cluster."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from handler.config.git_settings import Repository
from handler.config.settings import Settings, Target
from handler.render.sandbox import Sandbox
from handler.state.record import State
from infra.githost import Host, Work
from tests.e2e.documents import Document, config_map
from tests.e2e.one_target import PATH, STATES, Shop
from tests.kubectl import Kubectl


@dataclass
class Ordered:
    """`space`: their namespace. Each has an object of its own, which its repository declares in versions."""

    space: str
    infra: Shop
    apps: Shop
    settings: Settings = field(init=False)

    @classmethod
    def of(cls, space: str, host: Host, sandbox: Sandbox, kubectl: Kubectl, infra: Kubectl | None = None) -> Ordered:
        """`infra`: the way to another cluster of that target."""
        shops = []
        for name, way in ((f"{space}-infra", infra or kubectl), (f"{space}-apps", kubectl)):
            work, repository = Work.of(host, name), Repository(url=host.url_of(name))
            shops.append(Shop(name, work, way, sandbox, Target(name, repository, (space,), path=PATH)))
        made = cls(space, *shops)
        made.configure(apps={"depends_on": (made.infra.name,)})
        return made

    def configure(self, **changes: dict[str, Any]) -> None:
        """Change settings of `infra` or `apps`, and begin with a fresh handler, as after a restart."""
        for name, shop in (("infra", self.infra), ("apps", self.apps)):
            shop.target = replace(shop.target, **changes.get(name, {}))
        self.settings = Settings(targets=(self.infra.target, self.apps.target), state_namespace=STATES)
        for shop in (self.infra, self.apps):
            shop.settings = self.settings
        self.infra.handler = self.apps.handler = self.apps.handler_at(self.apps.kubectl.kubeconfig)

    def configuration(self, **settings: Any) -> dict[str, Any]:
        """Return a configuration file's content that says the same."""
        targets = [
            {
                "name": shop.name,
                "repository": {"url": shop.target.repository.url},
                "path": PATH,
                "namespaces": [self.space],
                "dependsOn": list(shop.target.depends_on),
                "cluster": {"kubeconfig": {"file": str(shop.kubectl.kubeconfig)}},
            }
            for shop in (self.apps, self.infra)
        ]
        header = {"apiVersion": "anneal.dev/v1alpha1", "kind": "Config", "stateNamespace": STATES}
        return header | {"webhooks": {"github": {"secrets": [{"env": "HOOK"}]}}, "targets": targets} | settings

    def push(self, shop: Shop, version: str, *more: Document) -> str:
        """Push a version of a target's own object, and more beside it; return the commit."""
        return shop.push(config_map(self.space, shop.name, {"version": version}), *more)

    def version(self, shop: Shop) -> str | None:
        """Return which version of a target's own object lives."""
        live = shop.live(config_map(self.space, shop.name))
        return live["data"]["version"] if live else None

    def record(self) -> tuple[str, State]:
        """Return the version of the record of `apps`, and what it says."""
        stored = self.apps.handler.store(self.apps.target).read()
        assert stored.state
        return stored.resource_version, stored.state
