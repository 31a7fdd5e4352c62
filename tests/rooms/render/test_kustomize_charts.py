"""Charts that a kustomization inflates and git doesn't hold: handed over by the handler, unpacked in the child, never pulled."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pytest

from handler.config.renderer_settings import RendererSettings
from handler.model.errors import ManifestInvalid
from handler.model.outside_inputs import ChartReference, ClusterFacts, FetchedChart, NothingOutside
from handler.model.render import RenderRequest
from handler.render import Sandbox
from tests.rooms.render.kustomize_trees import CHART, asked, bodies, charted, public_tools

ALLOWED = RendererSettings(helm_charts=True)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with public_tools(), Sandbox() as sandbox:
        yield sandbox


def packed(files: Mapping[str, str | tarfile.TarInfo]) -> bytes:
    """Return a .tgz of these entries, by their whole path."""
    packing = io.BytesIO()
    with tarfile.open(fileobj=packing, mode="w:gz") as archive:
        for path, content in files.items():
            entry = content if isinstance(content, tarfile.TarInfo) else tarfile.TarInfo(path)
            data = b"" if isinstance(content, tarfile.TarInfo) else content.encode()
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return packing.getvalue()


@dataclass(frozen=True)
class Elsewhere(NothingOutside):
    """Gives one archive for every chart. `wanted`: what was asked for."""

    data: bytes = b""
    facts: ClusterFacts = field(default_factory=lambda: ClusterFacts("", ()))
    wanted: list[ChartReference] = field(default_factory=list)

    def ask(self, name: str) -> str:
        return f"now {name}"

    def cluster(self) -> ClusterFacts:
        return self.facts

    def values(self, kind: str, name: str) -> Mapping[str, bytes] | None:
        raise NotImplementedError(kind, name)

    def chart(self, reference: ChartReference) -> FetchedChart:
        self.wanted.append(reference)
        return FetchedChart(reference, "1.2.3", f"sha256:{hashlib.sha256(self.data).hexdigest()}", self.data)


REPOSITORY = "namespace: shop\nhelmCharts:\n- name: cache\n  repo: https://charts.example.com\n  version: ~1.2\n  releaseName: main\n"


def test_a_chart_of_a_repository_is_fetched_by_the_handler_and_its_digest_is_read(sandbox: Sandbox) -> None:
    elsewhere = Elsewhere(packed(charted("cache")))
    made = asked(sandbox, {"deploy/kustomization.yaml": REPOSITORY}, RenderRequest("deploy", options=ALLOWED, outside=elsewhere))
    assert elsewhere.wanted == [ChartReference("https://charts.example.com", "cache", "~1.2", place="deploy/kustomization.yaml:3")]
    (body,) = bodies(made.manifests)
    assert (body["metadata"]["name"], body["metadata"]["namespace"], body["data"]["size"]) == ("main-cache", "shop", "1")
    reads = dict(made.reads.paths)
    assert reads["//chart/https://charts.example.com/cache/~1.2"] == f"sha256:{hashlib.sha256(elsewhere.data).hexdigest()}"
    assert reads["//cluster/apis"] == "now //cluster/apis"
    assert set(reads) == {
        "//chart/https://charts.example.com/cache/~1.2",
        "//cluster/apis",
        "//cluster/version",
        "//tool/helm",
        "//tool/kustomize",
        "deploy",
    }


def test_a_lock_beside_the_kustomization_says_which_bytes_a_chart_has(sandbox: Sandbox) -> None:
    elsewhere = Elsewhere(packed(charted("cache")))
    digest = f"sha256:{hashlib.sha256(elsewhere.data).hexdigest()}"
    entry = f"- {{url: https://charts.example.com, name: cache, range: ~1.2, version: 1.2.3, digest: '{digest}'}}"
    files = {"deploy/kustomization.yaml": REPOSITORY, "deploy/anneal.lock": f"charts:\n{entry}\n"}
    made = asked(sandbox, files, RenderRequest("deploy", options=ALLOWED, outside=elsewhere))
    assert made.manifests
    assert [(each.version, each.digest) for each in elsewhere.wanted] == [("1.2.3", digest)]
    files["deploy/anneal.lock"] = files["deploy/anneal.lock"].replace("range: ~1.2", "range: ~1.1")
    with pytest.raises(ManifestInvalid, match=r"anneal.lock has it for ~1.1 .*, and ~1.2 is asked for"):
        asked(sandbox, files, RenderRequest("deploy", options=ALLOWED, outside=elsewhere))


def test_a_chart_of_a_registry_is_asked_for_by_its_whole_url(sandbox: Sandbox) -> None:
    elsewhere = Elsewhere(packed(charted("cache")))
    text = REPOSITORY.replace("https://charts.example.com", "oci://registry.example.com/charts/")
    asked(sandbox, {"deploy/kustomization.yaml": text}, RenderRequest("deploy", options=ALLOWED, outside=elsewhere))
    assert elsewhere.wanted[0].url == "oci://registry.example.com/charts/cache"


def test_a_pulled_chart_that_git_holds_is_not_fetched(sandbox: Sandbox) -> None:
    elsewhere = Elsewhere()
    files = {"deploy/kustomization.yaml": REPOSITORY, **charted("deploy/charts/cache-~1.2/cache")}
    made = asked(sandbox, files, RenderRequest("deploy", options=ALLOWED, outside=elsewhere))
    assert (len(made.manifests), elsewhere.wanted) == (1, [])


def test_a_chart_home_elsewhere_in_the_tree_is_read(sandbox: Sandbox) -> None:
    text = "helmGlobals: {chartHome: ../../lib}\nhelmCharts:\n- {name: cache, releaseName: r, valuesFile: v.yaml}\n"
    files = {"deploy/x/kustomization.yaml": text, "deploy/x/v.yaml": "size: 7\n", **charted("lib/cache"), "lib/other/file": ""}
    made = asked(sandbox, files, RenderRequest("deploy/x", options=ALLOWED, outside=Elsewhere()))
    assert bodies(made.manifests)[0]["data"]["size"] == "7"
    assert {"deploy/x", "lib/cache"} <= dict(made.reads.paths).keys()


SHOWN = {
    **CHART,
    "templates/config.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: facts}\ndata:\n  version: {{ .Capabilities.KubeVersion }}\n"
        '  tea: "{{ .Capabilities.APIVersions.Has "example.com/v1/Tea" }}"\n'
    ),
}


def test_a_chart_is_rendered_for_the_targets_cluster_unless_the_entry_says_otherwise(sandbox: Sandbox) -> None:
    elsewhere = Elsewhere(facts=ClusterFacts("v1.33.7", ("example.com/v1", "example.com/v1/Tea")))
    files = {**charted("deploy/charts/cache", SHOWN), "deploy/kustomization.yaml": "helmCharts:\n- {name: cache}\n"}
    made = asked(sandbox, files, RenderRequest("deploy", options=ALLOWED, outside=elsewhere))
    assert bodies(made.manifests)[0]["data"] == {"version": "v1.33.7", "tea": "true"}
    assert made.notes == (
        (
            "chart cache is rendered for Kubernetes v1.33.7 of the cluster: "
            "deploy/kustomization.yaml:2 writes no kubeVersion and no apiVersions"
        ),
    )
    files["deploy/kustomization.yaml"] = "helmCharts:\n- {name: cache, kubeVersion: 1.31.0, apiVersions: [example.com/v1]}\n"
    made = asked(sandbox, files, RenderRequest("deploy", options=ALLOWED, outside=elsewhere))
    assert bodies(made.manifests)[0]["data"] == {"version": "v1.31.0", "tea": "false"}
    assert (made.notes, "//cluster" in dict(made.reads.paths)) == ((), False)


def link(path: str, target: str) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(path)
    entry.type, entry.linkname = tarfile.SYMTYPE, target
    return entry


@pytest.mark.parametrize(
    ("entries", "seen"),
    [
        ({"cache/values.yaml": link("cache/values.yaml", "/etc/passwd")}, "is a link"),
        ({"cache/../../up.yaml": "x"}, "leads out of the archive"),
        ({"/etc/up.yaml": "x"}, "leads out of the archive"),
        ({"cache/big": "x" * (6 << 20)}, "bytes; at most"),
    ],
)
def test_an_archive_with_tricks_is_refused_with_the_entrys_line(
    sandbox: Sandbox, entries: Mapping[str, str | tarfile.TarInfo], seen: str
) -> None:
    elsewhere = Elsewhere(packed({**charted("cache"), **entries}))
    with pytest.raises(ManifestInvalid, match=seen) as caught:
        asked(sandbox, {"deploy/kustomization.yaml": REPOSITORY}, RenderRequest("deploy", options=ALLOWED, outside=elsewhere))
    assert caught.value.problems[0].place == "deploy/kustomization.yaml:3"


@pytest.mark.parametrize("data", [b"", b"no archive", b"\x1f\x8b\x08broken"])
def test_what_is_no_archive_is_refused(sandbox: Sandbox, data: bytes) -> None:
    with pytest.raises(ManifestInvalid, match="can't be unpacked"):
        asked(sandbox, {"deploy/kustomization.yaml": REPOSITORY}, RenderRequest("deploy", options=ALLOWED, outside=Elsewhere(data)))
