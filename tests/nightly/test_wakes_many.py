"""Very many targets that wait: a chain and a fan-out, pushed at once and in the worst order, come to their end in two runs each."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping, Sequence

import pytest

from handler.app.wakes import Wakes
from handler.config.settings import Settings, Target
from handler.model.event import Job
from handler.model.result import Outcome
from handler.model.run_event import RunEnded
from tests.fakes.apiserver import Call
from tests.fakes.engine import SHOP, cluster, engine
from tests.fakes.git_host import GitHost

CHAIN: Mapping[str, tuple[str, ...]] = {"t0": ()} | {f"t{number}": (f"t{number - 1}",) for number in range(1, 100)}
FAN_OUT: Mapping[str, tuple[str, ...]] = {"t0": ()} | {f"t{number}": ("t0",) for number in range(1, 300)}


class Asked(Counter[str]):
    """Counts LISTs of records."""

    def way(self, call: Call, do: object) -> object:
        self["lists"] += call.asked.method == "GET" and call.asked.path.endswith("/anneal-system/configmaps")
        return do()  # type: ignore[operator]  # what answers


@pytest.mark.parametrize("waits", [CHAIN, FAN_OUT], ids=["chain", "fan-out"])
def test_one_push_for_all_ends_in_two_runs_each(waits: Mapping[str, tuple[str, ...]]) -> None:
    targets = tuple(Target(name, SHOP, ("shop",), path=name, namespace="shop", depends_on=first) for name, first in waits.items())
    settings, host, asked = Settings(targets), GitHost(), Asked()
    sha = host.commit({f"{name}/web.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n" for name in waits})
    host.push(sha)
    handler = engine(cluster(), host, settings, way=asked.way)  # type: ignore[arg-type]  # it passes on what it gets
    jobs = deque(Job(name, "push", hint=sha) for name in reversed([*waits]))
    ends: dict[str, list[Outcome]] = {name: [] for name in waits}

    def wake(ticks: Sequence[Job]) -> None:
        jobs.extend(job for job in ticks if job not in jobs)  # as a queue coalesces them

    wakes = Wakes(settings, handler.records, wake)
    while jobs:
        job = jobs.popleft()
        result = handler.run(job)
        ends[job.target].append(result.outcome)
        wakes.hear(RunEnded.of(job, result, 0.0))
    assert ends.pop("t0") == [Outcome.APPLIED]
    assert set(map(tuple, ends.values())) == {(Outcome.WAITING, Outcome.APPLIED)}
    assert asked["lists"] == len({first for name in waits for first in waits[name]}), "one for each that others depend on"
