"""How a target's tree becomes objects, as frozen values: which renderer, its options, and where charts may come from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from handler.config.git_settings import BasicAuth, SecretRef
from handler.config.settings_shape import Json
from handler.config.settings_shape import doc as _doc

AUTO, FILE, KUSTOMIZE, HELM, NIX = "auto", "file", "kustomize", "helm", "nix"
JSONNET = "jsonnet"


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart that git doesn't hold: `oci`, or `repository` and `name`."""

    version: str = _doc("Version, or a range that is resolved once a commit.", kind="chartVersion")
    oci: str = _doc("oci:// URL of the chart, its name included.", "", kind="ociUrl")
    repository: str = _doc("URL of a chart repository, the directory of its index.yaml.", "", kind="chartUrl")
    name: str = _doc("Name of the chart in the repository.", "", kind="chartName")
    digest: str = _doc("sha256 that the chart's archive must have; empty: what is locked in git, or was recorded first.", "", kind="sha256")

    def __str__(self) -> str:
        return f"{self.oci or '/'.join((self.repository.rstrip('/'), self.name))} {self.version}"


@dataclass(frozen=True, slots=True)
class ValuesFrom:
    """Helm values in the target's cluster, in its namespace, read with its rights."""

    kind: Literal["ConfigMap", "Secret"] = _doc("Kind of the object.")
    name: str = _doc("Its name.", kind="objectName")
    key: str = _doc("Key that holds the values as YAML, or one value where targetPath is written.", "values.yaml", kind="dataKey")
    target_path: str = _doc("Path of the one value that the key holds, e.g. database.password.", "")
    optional: bool = _doc("Go without it where it is missing.", False)


@dataclass(frozen=True, slots=True)
class RendererSettings:
    """Which renderer turns the tree into documents, and its options."""

    type: str = _doc(
        "Name of a renderer. auto: `path` itself decides: a Chart.yaml is helm's, a kustomization kustomize's, a main.jsonnet jsonnet's,"
        " all else are files.",
        AUTO,
        kind="renderer",
    )
    include: tuple[str, ...] = _doc("file: globs below `path`.", kind="glob", factory=lambda: ("**/*.yaml", "**/*.yml", "**/*.json"))
    exclude: tuple[str, ...] = _doc("file: globs below `path` left out again.", kind="glob", factory=tuple)
    generate: bool = _doc("kustomize: make a kustomization of all manifests below `path` where it has none, as Flux does.", False)
    helm_charts: bool = _doc("kustomize: inflate `helmCharts`.", False)
    release_name: str = _doc("helm: name of the release; empty: the target's.", "", kind="releaseName")
    values_files: tuple[str, ...] = _doc("helm: files of values, from `path`; later ones stand above.", kind="valuesFile", factory=tuple)
    values: Json = _doc("helm: values; they stand above those of files.", Json(""))
    values_from: tuple[ValuesFrom, ...] = _doc("helm: values of the cluster; they stand above those of files.", factory=tuple)
    set: Json = _doc("helm: single values by their path, e.g. {image.tag: v1}; they stand above all others.", Json(""))
    skip_crds: bool = _doc("helm: leave out what a chart has in crds/.", False)
    chart: Chart | None = _doc("helm: a chart from elsewhere; without it `path` is the chart.", None)
    modules: str = _doc("nix: expression of a list of NixOS modules, read in `path`; empty: [ ./kubernixos.nix ].", "", kind="nix")
    packages: str = _doc("nix: expression of nixpkgs; empty: <nixpkgs> of nixPath, or the repository's directory nixpkgs.", "", kind="nix")
    nix_path: Json = _doc("nix: directories of the handler's machine by name, e.g. {nixpkgs: /opt/nixpkgs}.", Json(""))
    sources: tuple[str, ...] = _doc(
        "nix: files and directories, from `path`, that expressions reach without naming them.", kind="source", factory=tuple
    )
    show_trace: bool = _doc("nix: mistakes show how nix came there.", False)

    entrypoint: str = _doc("jsonnet: file of the program, from `path`.", "main.jsonnet", kind="treeFile")
    jpath: tuple[str, ...] = _doc(
        "jsonnet: directories of imports, below `path` and from the repository's root; later ones are searched first, vendor and lib last.",
        kind="treeFile",
        factory=tuple,
    )
    ext_vars: Json = _doc("jsonnet: external variables; a text is a string, anything else is code, as JSON.", Json(""))
    top_level_arguments: Json = _doc("jsonnet: arguments where the program is a function; as extVars.", Json(""))
    config: Json = _doc("jsonnet: what `import 'generic-operator/config'` and `std.extVar('config')` are.", Json(""))
    config_file: str = _doc("jsonnet: the same, as a file of JSON or YAML, from `path`.", "", kind="treeFile")

    @property
    def chosen(self) -> str:
        """The renderer that is written; globs are for files. `auto`: the tree decides."""
        return FILE if self.type == AUTO and self._written(OF_FILES) else self.type

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs that it runs; of `auto`, which the tree decides, none is known."""
        return {
            KUSTOMIZE: (KUSTOMIZE, HELM) if self.helm_charts else (KUSTOMIZE,),
            HELM: (HELM,),
            NIX: (NIX,),
            JSONNET: (JSONNET,),
        }.get(self.chosen, ())

    def _written(self, names: tuple[str, ...]) -> bool:
        blank = RendererSettings()
        return any(getattr(self, name) != getattr(blank, name) for name in names)


GONE = {"engine": "leave it out: Google's jsonnet is the one engine (docs/renderers.md, The engines)"}
"""Options that a former release had -> the way on."""
OF_FILES = ("include", "exclude")
OPTIONS: dict[str, tuple[str, ...]] = {
    KUSTOMIZE: ("generate", "helm_charts"),
    HELM: ("release_name", "values_files", "values", "values_from", "set", "skip_crds", "chart"),
    JSONNET: ("entrypoint", "jpath", "ext_vars", "top_level_arguments", "config", "config_file"),
    NIX: ("modules", "packages", "nix_path", "sources", "show_trace"),
}
"""The options of each renderer that has its own; all others take those of files."""


@dataclass(frozen=True, slots=True)
class ChartSource:
    """Where a target's charts may come from: nothing else is ever asked."""

    url: str = _doc(
        "Prefix of URLs: oci://, https:// or http://; charts, indexes and tokens are fetched below it only.", kind="chartPrefix"
    )
    auth: BasicAuth | None = _doc("Credentials, sent to this origin only.", None)
    ca_file: str = _doc("Authority that signs its certificate (PEM); empty: the system's.", "", kind="file")


def options_of(options: object) -> RendererSettings:
    """Return the options that a render was asked for with; those of another renderer's type are the defaults."""
    return options if isinstance(options, RendererSettings) else RendererSettings()


def chart_references(sources: tuple[ChartSource, ...]) -> Iterator[tuple[str, SecretRef]]:
    """Yield what signs in to a target's chart sources, each with its place below `charts`."""
    for source in sources:
        if source.auth:
            yield f"[{source.url}].auth.password", source.auth.password


def shape_of(settings: RendererSettings) -> dict[str, Any]:
    """Return what of a renderer's settings shapes its objects: what isn't written is left out, so that new options change no digest.

    What the tree decides is called `file`, as before there was anything to decide.
    """
    whole, blank = asdict(settings), asdict(RendererSettings())
    shape = {name: value for name, value in whole.items() if name in OF_FILES or value != blank[name]}
    shape.pop("show_trace", None)  # what a mistake says, not what is made
    return {**shape, "type": {AUTO: FILE, FILE: "files"}.get(settings.type, settings.type)}
