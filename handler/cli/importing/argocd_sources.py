"""Sources of an Argo CD Application -> repository, path and renderer of a target each. Pure.

A source of manifests is a target of its own; one that only lends values files (`ref`) is the repository of the one that names it.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from typing import Any

from handler.cli.importing.argocd_parameters import BUILD_VALUES, OF_BUILD, helm_sets
from handler.cli.importing.custom_resource import CustomResource, Lost, Rows, SourceField
from handler.cli.importing.flux_sources import plain_range
from handler.cli.importing.references import References, put_repository
from handler.cli.importing.target_draft import NotATarget, TargetDraft, complaint

_REF = re.compile(r"\$([A-Za-z0-9_-]+)/(.*)")
_BUILD = "is written into the Application alone; write it into the kustomization.yaml below the path"
_VERSIONS = "version and API versions are those of the target's cluster"
_SHA = re.compile(r"[0-9a-f]{40}")
_RANGE = re.compile(r".*(?:[*<>=~^|,]| - ).*|\d+(?:\.\d+)?(?:\.x)+")
_VERSION_TAG = re.compile(r"v?\d+\.\d+(?:\.\d+)?(?:[-+][0-9A-Za-z.-]+)?")
_KINDS = ("helm", "kustomize", "directory")
_DECIDES = "what lies there decides how it is rendered; files below its sub-directories count, too"
_MANIFESTS = (".yaml", ".yml", ".json")

KUSTOMIZE_ROWS: Rows = {
    **{key: Lost(f"{_BUILD}: {key}", halts=True) for key in ("images", "patches", "components", "replicas", "namespace")},
    **{key: Lost(f"{_BUILD}: {key}", halts=True) for key in ("namePrefix", "nameSuffix", "commonLabels", "commonAnnotations")},
    "commonAnnotationsEnvsubst": Lost("nothing is substituted; write the values into git", halts=True),
    "forceCommonLabels": "labels are kustomization.yaml's own",
    "forceCommonAnnotations": "annotations are kustomization.yaml's own",
    "labelWithoutSelector": "labels are kustomization.yaml's own",
    "labelIncludeTemplates": "labels are kustomization.yaml's own",
    "ignoreMissingComponents": Lost("a component that is missing fails the render; remove it from kustomization.yaml"),
    "version": Lost("there is one kustomize; `anneal doctor` prints its version"),
    "kubeVersion": _VERSIONS,
    "apiVersions": _VERSIONS,
}
HELM_ROWS: Rows = {
    "version": "there is one Helm, which reads v2 charts, too",
    "fileParameters": Lost("no value is read from a file of its own; write it into a values file", halts=True),
    "ignoreMissingValueFiles": Lost("a values file that is missing fails the render; remove it from the list"),
    "passCredentials": Lost("credentials go to their own prefix only; write a second entry of `charts` for the other host"),
    "skipTests": "helm tests aren't deployed",
    "skipSchemaValidation": Lost("a chart's schema judges its values; correct what it refuses"),
    "namespace": Lost("a chart is rendered for the target's namespace", halts=True),
    "kubeVersion": _VERSIONS,
    "apiVersions": _VERSIONS,
}
SOURCE_ROWS: Rows = {
    "name": "names the source within the Application",
    "ref": "names the source within the Application",
    "plugin": Lost("no plugin of Argo CD is run; commit what it prints", halts=True),
    "tagPrefix": Lost("tags are chosen by a range of versions alone: revision: {semver: …}", halts=True),
}


def sources_of(application: CustomResource) -> list[SourceField]:
    """Return the sources that a target can be made of or that lend files. Raises NotATarget: there is none."""
    spec = application.fields.at("spec")
    found = spec.at("sources").items() or ([spec.at("source")] if spec.at("source").mapping() else [])
    if not found:
        raise NotATarget("has no source; one that is hydrated is written as it is hydrated: `syncSource` is its repository and path")
    if spec.at("sources").items():
        spec.at("source").itself("`sources` stands above it")
    return found


def parts_of(application: CustomResource, references: References) -> list[TargetDraft]:
    """Return for each source of manifests what it gives to a target. Raises NotATarget."""
    found = sources_of(application)
    lending = {name: each for each in found if (name := each.at("ref").text())}
    making = [each for each in found if not each.at("ref").text() or each.at("path").text() or each.at("chart").text()]
    if not making:
        raise NotATarget("has sources that only lend files")
    parts = [_part(application, each, lending, references) for each in making]
    for each in lending.values():
        if each not in making:
            each.at("repoURL").set("repository.url", "of the targets that take values from it")
            each.at("targetRevision").set("revision", "of the targets that take values from it")
    for each in found:
        each.rows(SOURCE_ROWS)
    return parts


def _part(application: CustomResource, source: SourceField, lending: Mapping[str, SourceField], references: References) -> TargetDraft:
    part = TargetDraft([application])
    if source.at("chart").text():
        names = [found[1] for text in source.below("helm.valueFiles").texts() if (found := _REF.fullmatch(text)) and found[1] in lending]
        part.add(git_of(lending[names[0]]) if names else references.home(application, git_repositories(references)))
        _put_chart(part, source)
        _put_helm(part, source.at("helm"), application, "", names[0] if names else "")
        return part
    part.add(git_of(source))
    inside = posixpath.normpath("/" + source.at("path").text()).lstrip("/")
    why = "" if any(source.at(key).mapping() for key in _KINDS) else _DECIDES
    if not part.take(source.at("path"), "path", inside, "path", why):
        raise NotATarget("has a path that can't be written in a configuration")
    _put_renderer(part, source, application, lending)
    return part


def git_repositories(references: References) -> list[TargetDraft]:
    """Return the git repositories that Applications of the input render from."""
    found: list[TargetDraft] = []
    for each in references.resources:
        spec = each.fields.at("spec") if each.kind == "Application" else each.fields.at("nothing")
        written = spec.at("sources").value if isinstance(spec.at("sources").value, list) else [spec.at("source").value]
        for index, source in enumerate(written):
            at = spec.at("sources", index) if isinstance(spec.at("sources").value, list) else spec.at("source")
            if isinstance(source, dict) and isinstance(source.get("repoURL"), str) and not source.get("chart"):
                found.append(git_of(at))
    return found


def git_of(source: SourceField) -> TargetDraft:
    """Return repository and revision of a git source. Raises NotATarget."""
    part = TargetDraft()
    put_repository(part, source.at("repoURL"))
    revision = source.at("targetRevision")
    text = revision.text()
    key, value, kind, why = _revision(text)
    if not part.take(revision, f"revision.{key}", value, kind, why):
        raise NotATarget("has a revision that can't be followed")
    if not text:
        source.at("repoURL").set("revision.branch", why)
    return part


def _revision(text: str) -> tuple[str, str, str, str]:
    """Return which kind of revision a text is: Argo CD looks it up at the host, where import doesn't ask."""
    if text in ("", "HEAD"):
        return "branch", "main", "ref", "HEAD is the host's default branch, taken for main: correct it where it has another name"
    for prefix, key in (("refs/tags/", "tag"), ("refs/heads/", "branch")):
        if text.startswith(prefix):
            return key, text.removeprefix(prefix), "ref", ""
    if _SHA.fullmatch(text):
        return "commit", text, "sha", ""
    if _RANGE.fullmatch(text):
        return "semver", plain_range(text), "semver", ""
    is_tag = _VERSION_TAG.fullmatch(text)
    return "tag" if is_tag else "branch", text, "ref", "taken for a tag: write {branch: …} where it is a branch" if is_tag else ""


def _put_chart(part: TargetDraft, source: SourceField) -> None:
    url, name = source.at("repoURL").text().rstrip("/"), source.at("chart").text()
    part.put("renderer", {"type": "helm"})
    if complaint("chartName", name):
        raise NotATarget("names no chart")
    if url.startswith(("https://", "http://")):
        named = part.take(source.at("repoURL"), "renderer.chart.repository", url, "chartUrl")
        part.put("renderer.chart.name", name)
    else:
        url = url if url.startswith("oci://") else f"oci://{url}"
        named = part.take(source.at("repoURL"), "renderer.chart.oci", f"{url}/{name}", "ociUrl")
    source.at("chart").set("renderer.chart")
    version = source.at("targetRevision")
    if not named or not part.take(version, "renderer.chart.version", version.text() or "*", "chartVersion"):
        raise NotATarget("has a chart that can't be named in a configuration")
    part.put("charts", [{"url": url}])
    source.at("path").itself("a chart from a registry has none")


def _put_renderer(part: TargetDraft, source: SourceField, application: CustomResource, lending: Mapping[str, SourceField]) -> None:
    """Choose as Argo CD does: what is written, else what the path holds."""
    options = {key: source.at(key).mapping() for key in _KINDS}
    chosen = next((key for key in options if options[key]), "")
    if chosen == "helm":
        part.put("renderer", {"type": "helm"})
        same = {name: each for name, each in lending.items() if _of_same_tree(source, each)}
        _put_helm(part, source.at("helm"), application, str(part.settings["path"]), *same)
    elif chosen == "kustomize":
        part.put("renderer", {"type": "kustomize"})
        source.at("kustomize").rows(KUSTOMIZE_ROWS)
    elif chosen == "directory":
        directory = source.at("directory")
        programs = directory.at("jsonnet").mapping()
        part.put("renderer", {"type": "jsonnet" if programs else "file"})
        (put_jsonnet if programs else _put_directory)(part, directory)
    for key, written in options.items():
        if key != chosen and written:
            source.at(key).lost(f"is beside `{chosen}`, of which one decides", halts=True)


def _of_same_tree(one: SourceField, other: SourceField) -> bool:
    return all(one.at(key).value == other.at(key).value for key in ("repoURL", "targetRevision"))


def _put_directory(part: TargetDraft, directory: SourceField) -> None:
    recurse = directory.at("recurse").flag()
    directory.at("recurse").set("renderer.include")
    for key in ("include", "exclude"):
        pattern = directory.at(key)
        globs = [each for text in _braces(pattern.text()) for each in _globs(text, recurse=recurse)] if pattern.text() else []
        if globs:
            part.take(pattern, f"renderer.{key}", globs, "glob")
    if "include" not in part.settings["renderer"]:
        part.put("renderer.include", [f"**/*{end}" if recurse else f"*{end}" for end in _MANIFESTS])
    directory.at("disableExtensionFilter").lost(
        "globs say which files count: renderer.include", halts=directory.at("disableExtensionFilter").flag()
    )


def _braces(text: str) -> list[str]:
    """Return the patterns that `{a,b}` around a whole pattern stands for."""
    inner = text[1:-1] if text.startswith("{") and text.endswith("}") and text.count("{") == 1 else ""
    return [part.strip() for part in inner.split(",") if part.strip()] or [text]


def _globs(text: str, *, recurse: bool) -> list[str]:
    """Return a pattern whose star crosses slashes as globs whose star doesn't."""
    if text.endswith("/*"):
        return [f"{text[:-1]}**/*{end}" for end in _MANIFESTS]
    return [f"**/{text}" if recurse and "/" not in text else text]


def _put_helm(part: TargetDraft, helm: SourceField, application: CustomResource, path: str, *lent: str) -> None:
    """Take over Helm's options. `path`: of the chart in git; `lent`: names of sources that are the target's own repository."""
    if complaint("releaseName", helm.at("releaseName").text() or application.name):
        raise NotATarget("has a release name that Helm wouldn't take")
    part.put("renderer.releaseName", helm.at("releaseName").text() or application.name)
    helm.at("releaseName").set("renderer.releaseName")
    _put_value_files(part, helm.at("valueFiles"), path, lent)
    _put_values(part, helm, application)
    if helm.at("skipCrds").flag():
        part.take(helm.at("skipCrds"), "renderer.skipCrds", value=True)
    else:
        helm.at("skipCrds").itself("a chart's crds/ are rendered")
    sets = helm_sets(helm.at("parameters"))
    if sets:
        part.put("renderer.set", sets)
    helm.rows(HELM_ROWS)


def _put_value_files(part: TargetDraft, files: SourceField, path: str, lent: tuple[str, ...]) -> None:
    taken: list[str] = []
    for each in files.items():
        text = each.text()
        found = _REF.fullmatch(text)
        inside = posixpath.relpath("/" + (found[2] if found else text.lstrip("/")), "/" + path) if found or text.startswith("/") else text
        if BUILD_VALUES.search(text):
            each.lost(OF_BUILD, halts=True)
        elif found and found[1] not in lent:
            each.lost("is in another repository than the target's; commit the file beside the others", halts=True)
        elif any(sign in text for sign in ("*", "?", "[")):
            each.lost("is a pattern; name each file", halts=True)
        elif part.settings["renderer"].get("chart") and not found:
            each.lost("lies in the chart; commit the file and name it in renderer.valuesFiles", halts=True)
        elif not complaint("valuesFile", inside):
            taken.append(inside)
            each.set("renderer.valuesFiles")
        else:
            each.lost(complaint("valuesFile", inside), halts=True)
    if taken:
        part.put("renderer.valuesFiles", taken)


def _put_values(part: TargetDraft, helm: SourceField, application: CustomResource) -> None:
    """Take over values: a mapping stands above a text of YAML, which was read when the input was."""
    whole, text = helm.at("valuesObject"), helm.at("values")
    values: Any = whole.mapping()
    if values:
        part.take(whole, "renderer.values", values)
        text.itself("`valuesObject` stands above it")
    elif text.text().strip():
        values = application.texts.get(".".join(map(str, text.path)))
        if isinstance(values, dict):
            part.take(text, "renderer.values", values)
        else:
            text.lost("isn't YAML of a mapping", halts=True)
    if not text.text().strip():
        text.itself("is empty")
    if not whole.mapping():
        whole.itself("is empty")


_PROGRAM = re.compile(r"[^*?\[\]{}]+\.jsonnet")
_EACH = (
    "Argo CD evaluates each *.jsonnet of the directory; name one program, which may import the others:"
    " renderer: {type: jsonnet, entrypoint: main.jsonnet}"
)


def put_jsonnet(part: TargetDraft, directory: SourceField) -> None:
    """Take over the program, its variables and its directories of imports."""
    include, jsonnet = directory.at("include"), directory.at("jsonnet")
    if _PROGRAM.fullmatch(include.text()):
        part.take(include, "renderer.entrypoint", include.text(), "treeFile")
    else:
        (include if include.text() else jsonnet).lost(_EACH, halts=True)
    for key, option in (("extVars", "extVars"), ("tlas", "topLevelArguments")):
        if values := _values(jsonnet.at(key), f"renderer.{option}"):
            part.put(f"renderer.{option}", values)
    if jsonnet.at("libs").texts():
        part.take(jsonnet.at("libs"), "renderer.jpath", [each.lstrip("/") for each in jsonnet.at("libs").texts()], "treeFile")
    for key in ("recurse", "exclude", "disableExtensionFilter"):
        directory.at(key).itself("one program is rendered")


def _values(variables: SourceField, place: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in variables.items():
        name, text, code = each.at("name").text(), each.at("value").text(), each.at("code").flag()
        if not name or BUILD_VALUES.search(text):
            each.lost(OF_BUILD if name else "has no name", halts=True)
            continue
        try:
            found[name] = json.loads(text) if code else text
        except ValueError:
            each.lost("is code, of which a configuration takes JSON only; write it into the program", halts=True)
            continue
        for key in ("name", "value", "code"):
            each.at(key).set(place)
    return found
