"""Taking over: what a plan says of fields that others wrote, and what an apply does to them."""

from __future__ import annotations

import yaml

from handler.model.errors import Problem
from handler.model.plan import Change
from handler.model.result import Outcome, Result
from tests.e2e.documents import Document
from tests.e2e.one_target import Shop, told
from tests.e2e.plan_and_live import untold
from tests.e2e.workload_status import deployments_seen
from tests.patience import until


def refusal(shop: Shop) -> Problem:
    result = shop.run()
    assert (result.outcome, result.code, len(result.problems)) == (Outcome.FAILED, "plan-refused", 1), told(result)
    return result.problems[0]


def written(problem: Problem) -> Document:
    """Read the lines for git that a refusal prints."""
    lines = problem.fix.partition("write into it ")[2]
    assert lines, problem
    found = [yaml.safe_load(line) for line in lines.split("; ")]
    return {key: value for each in found for key, value in each.items()}


LAST_APPLIED = "metadata.annotations.kubectl.kubernetes.io/last-applied-configuration"


def planned(shop: Shop, trigger: str = "push") -> dict[str, Change]:
    """Plan; return the changes by the kind of their object."""
    result = shop.run(trigger, dry_run=True)
    assert result.plan, told(result)
    return {change.identity.kind: change for change in result.plan.changes}


def carried_out(shop: Shop, documents: list[Document], trigger: str = "push") -> tuple[dict[str, Change], Result]:
    """Plan, run, and compare what the plan said with what kubectl reads before and after; return the plan."""
    until(lambda: deployments_seen(shop, documents))
    before, versions = {document["kind"]: shop.live(document) for document in documents}, shop.versions(documents)
    changes = planned(shop, trigger)
    assert shop.versions(documents) == versions
    result = shop.applied(trigger)
    for kind, was in before.items():
        is_now = shop.live(next(document for document in documents if document["kind"] == kind))
        assert was
        assert is_now
        assert untold(was, is_now, changes[kind].fields) == []
        assert was["metadata"]["uid"] == is_now["metadata"]["uid"]
    until(lambda: deployments_seen(shop, documents))
    result = shop.run("drift")
    assert result.outcome is Outcome.UNCHANGED, (told(result), result.plan and result.plan.changes)
    return changes, result


def gone(change: Change) -> set[str]:
    return {field.path for field in change.fields if not field.declared}
