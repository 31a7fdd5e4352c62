"""Forms of issues and updates of dependencies: as the host reads them, and true to the code."""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

import yaml
from jsonschema.validators import validator_for

from infra.house.sources import ROOT

FORGE = ROOT / ".github"
TEMPLATES = FORGE / "ISSUE_TEMPLATE"
FORMS = sorted(path for path in TEMPLATES.glob("*.yml") if path.name != "config.yml")
SCHEMAS = {"github-issue-forms": FORMS, "github-issue-config": [TEMPLATES / "config.yml"], "dependabot": [FORGE / "dependabot.yml"]}


def document(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text())
    return found


def test_the_host_can_read_them() -> None:
    vendored = resources.files("check_jsonschema.builtin_schemas") / "vendor"
    for name, files in SCHEMAS.items():
        schema = json.loads((vendored / f"{name}.json").read_text())
        validator = validator_for(schema)(schema)
        assert [f"{path.name}: {error.message}" for path in files for error in validator.iter_errors(document(path))] == []
    for path in FORMS:
        asked = [part for part in document(path)["body"] if part["type"] != "markdown"]
        for names in ([part["id"] for part in asked], [part["attributes"]["label"] for part in asked]):
            assert len(set(names)) == len(names), path.name
