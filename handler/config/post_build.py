"""Variables that are written into a target's objects once they are rendered, spelled as Flux' `postBuild`. Frozen values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, cast

from handler.config.settings_shape import Json
from handler.config.settings_shape import doc as _doc


@dataclass(frozen=True, slots=True)
class SubstituteFrom:
    """A ConfigMap or Secret in the target's namespace, read with its rights: each key is a variable."""

    kind: Literal["ConfigMap", "Secret"] = _doc("Kind of the object.")
    name: str = _doc("Its name.", kind="objectName")
    optional: bool = _doc("Go without it where it is missing.", False)

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class PostBuild:
    """Which variables there are."""

    substitute: Json = _doc('Variables and their values, texts: {region: eu-1, replicas: "3"}; they stand above substituteFrom.', Json(""))
    substitute_from: tuple[SubstituteFrom, ...] = _doc("Where more variables are; later entries stand above earlier ones.", factory=tuple)
    substitute_strategy: Literal["Strict", "WithVariables", "Always"] = _doc(
        "Strict: an unknown name is refused. With the others it is empty, as in Flux; WithVariables does nothing without variables.",
        "Strict",
    )

    @property
    def values(self) -> Mapping[str, str]:
        """The variables that are written in the configuration."""
        return cast(dict[str, str], json.loads(self.substitute or "{}"))
