"""Which modules a command line has loaded at its end, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
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


def loaded_in_turn(place: Path, lines: Sequence[Sequence[str]]) -> dict[str, frozenset[str]]:
    """Run command lines in one process, and return what each has loaded that none before it had; those of the start are the first's."""
    told = place / "modules.json"
    program = (
        "import json, sys\n"
        "from handler.cli import main\n"
        "told, before = {}, set()\n"
        "for line in json.loads(sys.argv[1]):\n"
        "    sys.argv[1:] = line\n"
        "    try:\n"
        "        main()\n"
        "    except SystemExit as end:\n"
        "        assert not end.code, line\n"
        "    told[' '.join(line)] = sorted(set(sys.modules) - before)\n"
        "    before |= set(sys.modules)\n"
        f"open({str(told)!r}, 'w').write(json.dumps(told))\n"
    )
    command = [sys.executable, "-P", "-c", program, json.dumps(lines)]
    run = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False, cwd=place)
    assert run.returncode == 0, run.stdout + run.stderr
    return {line: frozenset(names) for line, names in json.loads(told.read_text()).items()}


VENDORS = {
    *("apig_wsgi", "boto3", "botocore", "cel_expr_python", "cryptography", "dulwich", "flask", "gunicorn", "jsonschema", "jwt"),
    *("kubernetes", "paramiko", "prometheus_client", "pydantic", "pysequoia", "requests", "rich", "semantic_version"),
    *("standardwebhooks", "urllib3", "werkzeug", "yaml"),
}


def of_vendors(modules: frozenset[str]) -> set[str]:
    return {name.split(".")[0] for name in modules} & VENDORS
