"""The rows of many targets of one repository: what a push costs that prunes nothing, and what one does that moves or prunes an object.

Renders of the siblings are counted where they happen, in the table of renderers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from handler.app.build import Handler
from handler.app.tables import Tables
from handler.config.git_settings import Repository
from handler.config.secrets import Secrets
from handler.config.settings import Settings, Target
from handler.model.event import Job
from handler.model.render import Rendered, RenderRequest
from handler.model.result import Outcome
from handler.model.tree import Tree
from handler.render import RENDERERS
from handler.render.sandbox import Sandbox
from infra.bench.bed import Bed
from infra.bench.objects import as_files, mixed
from infra.bench.rows import Row, timed
from infra.githost import Work

_SIBLINGS, _OBJECTS = 50, 20
_MOVED = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: moved, namespace: {space}}}\ndata: {{key: '{value}'}}\n"


@dataclass
class Counting:
    """A renderer, and how often it has rendered each path."""

    name: str = "file"
    found: Counter[str] = field(default_factory=Counter)

    def render(self, tree: Tree, request: RenderRequest, sandbox: Sandbox) -> Rendered:
        """Count, and render."""
        self.found[request.path] += 1
        return RENDERERS[self.name].render(tree, request, sandbox)


@dataclass
class _Monorepo:
    """Fifty targets of one repository, all in one namespace."""

    space: str
    work: Work
    handler: Handler
    counting: Counting

    @classmethod
    def of(cls, bed: Bed) -> _Monorepo:
        space, counting = bed.namespace(), Counting()
        work = Work.of(bed.host, f"monorepo-{space}")
        repository = Repository(bed.host.url_of(f"monorepo-{space}"))
        targets = tuple(Target(f"{space}-{number}", repository, (space,), path=f"apps/{number}") for number in range(_SIBLINGS))
        environ = {"KUBECONFIG": str(bed.kubeconfig)}
        settings = Settings(targets=targets, state_namespace=space)
        handler = Handler(settings, Secrets(), bed.sandbox, environ, tables=Tables(renderers={**RENDERERS, "file": counting}))
        for number in range(_SIBLINGS):
            bodies = mixed(_OBJECTS, space)
            for body in bodies:
                body["metadata"]["name"] = f"t{number}-{body['metadata']['name']}"
            for name, text in as_files(bodies).items():
                work.write(f"apps/{number}/{name}", text)
        return cls(space, work, handler, counting)

    def put(self, number: int, value: str = "1") -> None:
        """Declare the object that moves."""
        self.work.write(f"apps/{number}/moved.yaml", _MOVED.format(space=self.space, value=value))

    def drop(self, number: int) -> None:
        """Declare it no more."""
        self.work.remove(f"apps/{number}/moved.yaml")

    def pushed(self, message: str) -> None:
        """Push what was written, and begin to count."""
        self.work.commit(message)
        self.work.push()
        self.counting.found.clear()

    def run(self, number: int) -> tuple[float, int]:
        """Run one target; return the seconds it took and how often siblings were rendered."""
        seconds, result = timed(lambda: self.handler.run(Job(f"{self.space}-{number}", "push")))
        if result.outcome not in (Outcome.APPLIED, Outcome.UNCHANGED):
            raise RuntimeError(f"{result.outcome}: {result.message}")
        found, self.counting.found = self.counting.found, Counter()
        return seconds, sum(found.values()) - found[f"apps/{number}"]

    def goes(self, forgotten: bool, plain: float) -> Row:
        """Drop an object that no target takes. `forgotten`: no sibling's render is in memory any more; `plain`: seconds of one changed."""
        self.put(1)
        self.pushed("It comes")
        self.run(1)
        self.drop(1)
        self.pushed("It goes")
        for number in range(_SIBLINGS) if forgotten else ():
            self.handler.dependencies(f"{self.space}-{number}").preparer.forget()
        seconds, rendered = self.run(1)
        name = f"the same, an object goes, renders {'forgotten' if forgotten else 'in memory'}: siblings rendered"
        return Row(name, rendered, _SIBLINGS - 1 if forgotten else 0, "renders", details={"s": seconds, "one changed s": plain})


def siblings(bed: Bed) -> Iterator[Row]:
    """One changed object in one of fifty; then it moves to another, and then it goes."""
    repo = _Monorepo.of(bed)
    repo.put(0)
    repo.pushed("The first")
    for number in range(_SIBLINGS):
        repo.run(number)
    repo.put(0, "2")
    repo.pushed("A change")
    plain, rendered = repo.run(0)
    yield Row("50 targets of one repository, one object changed: siblings rendered", rendered, 0, "renders", details={"s": plain})
    repo.drop(0)
    repo.put(1, "2")
    repo.pushed("A move")
    taken, by_taker = repo.run(1)
    repo.run(0)
    yield Row("the same, an object moves: siblings rendered by the taker", by_taker, 1, "renders", details={"s": taken})
    for forgotten in (False, True):
        yield repo.goes(forgotten, plain)
