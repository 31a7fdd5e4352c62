"""Which modules a command line has loaded at its end, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def loaded(place: Path, *arguments: str, code: int = 0, environ: Mapping[str, str] | None = None) -> frozenset[str]:
    """Run `anneal` and return the names of all modules it has loaded. `place`: a directory for what it says."""
    told = place / "modules.json"
    program = (
        "import json, sys\n"
        "from handler.cli import main\n"
        "try:\n"
        "    main()\n"
        "finally:\n"
        f"    open({str(told)!r}, 'w').write(json.dumps(sorted(sys.modules)))\n"
    )
    run = subprocess.run(
        [sys.executable, "-P", "-c", program, *arguments],
        env={**os.environ, **(environ or {}), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        cwd=place,
    )
    assert run.returncode == code, f"{' '.join(arguments)}: {run.returncode}\n{run.stdout}\n{run.stderr}"
    return frozenset(json.loads(told.read_text()))


VENDORS = {
    *("apig_wsgi", "boto3", "botocore", "cel_expr_python", "cryptography", "dulwich", "flask", "gunicorn", "jsonschema", "jwt"),
    *("kubernetes", "paramiko", "prometheus_client", "pydantic", "pysequoia", "requests", "rich", "semantic_version"),
    *("standardwebhooks", "urllib3", "werkzeug", "yaml"),
}


def of_vendors(modules: frozenset[str]) -> set[str]:
    return {name.split(".")[0] for name in modules} & VENDORS
