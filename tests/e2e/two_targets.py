"""Two targets of one repository in one namespace, on the real cluster, and the questions that tests ask about what moves between them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

from handler.config.git_settings import Repository
from handler.config.settings import Settings, Target
from handler.model.names import IDENTITY
from handler.model.result import Outcome
from handler.render.sandbox import Sandbox
from infra.githost import Host, Work
from tests.e2e.documents import Document, config_map
from tests.e2e.one_target import STATES, Shop, told
from tests.kubectl import Kubectl


@dataclass
class Pair:
    """Targets a and b of one repository, in one namespace `space`; each has a path, and an object of its own always."""

    space: str
    work: Work
    a: Shop
    b: Shop
    settings: Settings = field(init=False)

    @classmethod
    def of(cls, space: str, host: Host, sandbox: Sandbox, kubectl: Kubectl) -> Pair:
        work, repository = Work.of(host, space), Repository(url=host.url_of(space))
        shops = [
            Shop(name, work, kubectl, sandbox, Target(name, repository, (space,), path=path, cluster_scoped=("Namespace",)))
            for name, path in ((f"{space}-a", "a"), (f"{space}-b", "b"))
        ]
        made = cls(space, work, *shops)
        made.configure()
        return made

    def configure(self, **changes: dict[str, Any]) -> None:
        """Change settings of `a` or `b`, and begin with fresh handlers, as after a restart."""
        for path, shop in (("a", self.a), ("b", self.b)):
            shop.target = replace(shop.target, **changes.get(path, {}))
        self.settings = Settings(targets=(self.a.target, self.b.target), state_namespace=STATES)
        handler = None
        for shop in (self.a, self.b):
            shop.settings = self.settings
            handler = handler or shop.handler_at(shop.kubectl.kubeconfig)
            shop.handler = handler

    def push(self, a: tuple[Document, ...] = (), b: tuple[Document, ...] = ()) -> str:
        """Make these documents the whole of the two paths."""
        for path, documents in (("a", a), ("b", b)):
            self.work.remove(path)
            for document in (config_map(self.space, f"own-{path}"), *documents):
                self.work.write(f"{path}/{document['kind']}-{document['metadata']['name']}.yaml", json.dumps(document, indent=1))
        sha = self.work.commit("What is declared where")
        self.work.push()
        return sha

    def applied(self, *shops: Shop) -> None:
        for shop in shops:
            result = shop.run()
            assert result.outcome in (Outcome.APPLIED, Outcome.UNCHANGED), told(result)

    def uids(self, *documents: Document) -> list[str]:
        """Return the uids of these and of all pods."""
        live = [self.a.live(document) for document in documents]
        assert all(live), live
        pods = self.a.kubectl("get", "pods", "-n", self.space)["items"]
        return [*((each or {})["metadata"]["uid"] for each in live), *sorted(pod["metadata"]["uid"] for pod in pods)]

    def owners(self, *documents: Document) -> set[str]:
        marks = [(self.a.live(document) or {})["metadata"]["annotations"][IDENTITY] for document in documents]
        return {mark.partition(":")[0] for mark in marks}
