"""docs/operations.md has an entry for every error and every alert, and for nothing else; alerts use metrics that exist."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import yaml

from handler.feedback.prometheus import DoorMetrics, RunMetrics
from handler.model.errors import AnnealError, LeaseError, OperatorError, SenderError
from infra.house.sources import ROOT

TEXT = (ROOT / "docs" / "operations.md").read_text()
RULES: list[dict[str, Any]] = yaml.safe_load((ROOT / "infra" / "prometheus" / "alerts.yaml").read_text())["groups"][0]["rules"]
BASES = {"AnnealError", "TransientError"}  # never raised themselves
ENTRY = re.compile(
    r"^### (\S+)\n\n- \*\*Symptom\*\*: .+?\n- \*\*Cause\*\*: .+?\n- \*\*Command\*\*: .+?(?=\n\n|\n?\Z)", re.MULTILINE | re.DOTALL
)
for module in (path for path in (ROOT / "handler").rglob("*.py") if ', code="' in path.read_text()):
    import_module(".".join(module.relative_to(ROOT).with_suffix("").parts))  # an error is known once its module is loaded


def codes(cls: type[AnnealError] = AnnealError) -> set[str]:
    """Return the codes of what is raised."""
    own = {cls.code} if "code" in vars(cls) and cls.__name__ not in BASES else set()
    return own.union(*map(codes, cls.__subclasses__()))


def test_every_error_and_every_alert_has_an_entry_and_nothing_else_has() -> None:
    entries = ENTRY.findall(TEXT)
    assert len(entries) == len(set(entries)) == len(re.findall(r"^### ", TEXT, re.MULTILINE))
    assert set(entries) == codes() | {"internal"} | {rule["alert"] for rule in RULES}


def test_errors_stand_under_who_must_act() -> None:
    parts = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL))
    operators = codes(OperatorError) | {"internal"}
    assert set(re.findall(r"^### (\S+)", parts["Errors for the operator"], re.MULTILINE)) == operators
    assert set(re.findall(r"^### (\S+)", parts["Errors for the sender of a request"], re.MULTILINE)) == codes(SenderError)
    assert codes(LeaseError) <= set(re.findall(r"^### (\S+)", parts["No person must act"], re.MULTILINE))


def test_each_alert_uses_metrics_that_exist() -> None:
    exposed = DoorMetrics("1", lambda: 0.0, lambda: 0.0).text() + RunMetrics(lambda: 0.0, lambda: 0.0, lambda: 0.0).text()
    known = {name for name, _ in re.findall(r"^# TYPE (\S+) (\S+)$", exposed, re.MULTILINE)}
    for rule in RULES:
        used = {re.sub(r"_bucket$", "", name) for name in re.findall(r"\banneal_\w+", rule["expr"])}
        assert used, rule["alert"]
        assert used <= known, rule["alert"]
