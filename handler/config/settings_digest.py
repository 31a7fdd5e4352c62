"""One digest over every setting that shapes what a run brings about: the state records it, a change makes the next run plan fully.

Written by exclusion: a new setting counts until it is left out here, with the reason.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, fields
from typing import Any

from handler.config.renderer_settings import shape_of
from handler.config.settings import Target
from handler.model.manifest import canonical

_ABSENT: tuple[object, ...] = (None, "", (), "none")
_LATER = ("verify", "charts", "decryption", "post_build", "compat", "rollout", "exclusive", "trigger")
"""Settings that came later than the first records: where one isn't used, an upgrade changes no digest."""

STATE_FORMAT = 1  # version of what the state records; raising it makes every target plan fully once


def settings_digest(target: Target) -> str:
    """Return the sha256 of a target's settings in canonical JSON; lists whose order means nothing are sorted first."""
    shape: dict[str, Any] = asdict(Target(**{each.name: getattr(target, each.name) for each in fields(Target)}))
    for key in ("name", "renamed_from", "cluster"):  # the state is the target's own, in its own cluster
        del shape[key]
    looks = (
        "pull_requests",
        "drift",
        "validate",
        "suspend",
        "wait",
        "health_check_exprs",
        "rollback",
        "evidence",
        "orphan_grace",
        "depends_on",
    )
    for key in looks:  # when and how a run looks, not what it brings about
        del shape[key]
    for key in (each for each in _LATER if getattr(target, each) in _ABSENT):
        del shape[key]
    shape |= _of_instances(target, shape.get("trigger"))
    if target.verify:  # which keys count, not their order and comments
        shape["verify"]["ssh"] = sorted({" ".join(key.split()[:2]) for key in target.verify.ssh})
        shape["verify"]["pgp"] = sorted({block.strip() for block in target.verify.pgp})
    shape["renderer"] = shape_of(target.renderer)
    del shape["sandbox"]  # where it may run, not what it makes
    if target.charts:  # where they come from, not who signs in
        shape["charts"] = sorted(source.url for source in target.charts)
    if target.decryption:  # which keys and where they are, not their values
        shape["decryption"] |= {"age": sorted(map(str, target.decryption.age)), "kms": sorted(target.decryption.kms)}
    del shape["prune"]["hold_above"]  # when a person is asked, not what is done
    shape["repository"] = target.repository.url  # not aliases, sign-in or webhooks
    shape["revision"] = target.revision.ref or target.revision.semver or target.revision.commit
    if target.adopts:
        shape["adopt"] = sorted(set(target.adopts))
    shape["prune"]["kinds"] = sorted(set(target.prune.kinds))
    shape["recreate"]["kinds"] = sorted(set(target.recreate.kinds))
    for key in {"namespaces", "cluster_scoped", "exclusive"} & shape.keys():
        shape[key] = sorted(set(shape[key]))
    return hashlib.sha256(canonical({"format": STATE_FORMAT, "target": shape})).hexdigest()


def _of_instances(target: Target, trigger: Any) -> dict[str, Any]:
    """Return what shapes an instance: which objects configure it, its own, that one's definition; not what is written into a status."""
    if trigger and trigger["resource"]:
        del trigger["resource"]["write_status"]
    return {"instance": target.instance.digest, "definition": target.instance.definition} if target.instance else {}
