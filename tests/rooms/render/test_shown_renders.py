"""What `anneal render`, `check` and `rbac` render of a chart: with what a run takes from elsewhere, or without a cluster."""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import Any

import pytest

from handler.app.build import Handler
from handler.cli.render import flat
from handler.config.post_build import PostBuild, SubstituteFrom
from handler.config.renderer_settings import Chart, ChartSource, RendererSettings, ValuesFrom
from handler.config.settings import Impersonate, Settings, Target
from handler.config.settings_shape import Json
from handler.model.errors import AnnealError, ClusterUnavailable, OperatorError
from handler.model.render import Rendered
from handler.render import Sandbox
from tests.fakes.apiserver import ApiServer
from tests.fakes.apiserver.server import Asked
from tests.fakes.engine import SHOP, cluster, engine
from tests.fakes.git_host import GitHost
from tests.rooms.render.helm_releases import CONFIG, ECHO, chart, packed, sandbox, seen
from tests.rooms.source.chart_servers import ChartHost, FakeChart

__all__ = ["sandbox"]

FROM_SECRET = RendererSettings("helm", values_from=(ValuesFrom("Secret", "db"),))
CAPABLE = CONFIG.format("web") + "data: {seen: {{ .Capabilities.KubeVersion.Version | quote }}}\n"


def handler(server: ApiServer, sandbox: Sandbox, files: dict[str, Any], **settings: Any) -> tuple[Handler, Target, GitHost]:
    host = GitHost()
    host.push(host.commit(files))
    target = Target(**{"name": "web", "repository": SHOP, "namespaces": ("shop",), "namespace": "shop", "path": "deploy", **settings})
    return engine(server, host, Settings(targets=(target,)), sandbox=sandbox), target, host


def shown(made: tuple[Handler, Target, GitHost], **about: Any) -> Rendered:
    found, target, host = made
    return found.render(target, found.source(target).fetch(host.head, "deploy"), **about)


def unreached(*_: object) -> None:
    raise ClusterUnavailable.of("cluster", "doesn't answer")


@pytest.fixture
def server() -> ApiServer:
    made = cluster()
    data = {"values.yaml": base64.b64encode(b"password: S3CRET\n").decode()}
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "db", "namespace": "shop"}, "data": data}
    made.must(Asked("POST", "/api/v1/namespaces/shop/secrets", {}, body, "", ""))
    return made


def test_values_of_the_cluster_are_taken_and_no_note_has_them(server: ApiServer, sandbox: Sandbox) -> None:
    found = shown(handler(server, sandbox, chart({"templates/a.yaml": ECHO}), renderer=FROM_SECRET))
    assert seen(found) == {"password": "S3CRET"}
    assert found.notes == ()


def test_values_are_read_as_the_target(server: ApiServer, sandbox: Sandbox) -> None:
    made = handler(server, sandbox, chart({"templates/a.yaml": ECHO}), renderer=FROM_SECRET, impersonate=Impersonate("shop/deployer"))
    asked: list[bool] = []
    api = made[0].api

    def noted(target: Target, *, impersonated: bool = True) -> Any:
        asked.append(impersonated)
        return api(replace(target, impersonate=None))

    made[0].api = noted  # type: ignore[method-assign]  # the seam
    shown(made)
    assert asked == [True]


def test_a_chart_sees_the_version_of_the_cluster(server: ApiServer, sandbox: Sandbox) -> None:
    made = handler(server, sandbox, chart({"templates/a.yaml": CAPABLE}))
    found = shown(made)
    assert found.manifests[0].body()["data"]["seen"] == made[0].discovery(made[1]).version()
    assert found.notes == ()


def test_where_no_cluster_answers_helms_own_assumption_stands_for_it_and_a_note_says_so(server: ApiServer, sandbox: Sandbox) -> None:
    made = handler(server, sandbox, chart({"templates/a.yaml": CAPABLE}))
    made[0]._connection = unreached  # type: ignore[method-assign,assignment]  # the seam
    found = shown(made)
    assert found.manifests[0].body()["data"]["seen"].startswith("v1.")
    assert found.notes == ("the cluster wasn't asked, and helm's own assumption of one stands for it: cluster: doesn't answer",)


def test_what_looks_at_no_cluster_asks_none(server: ApiServer, sandbox: Sandbox) -> None:
    made = handler(server, sandbox, chart({"templates/a.yaml": ECHO}))
    made[0]._connection = unreached  # type: ignore[method-assign,assignment]  # the seam
    assert shown(made).notes == ()


def test_values_that_no_cluster_gives_are_named(server: ApiServer, sandbox: Sandbox) -> None:
    made = handler(server, sandbox, chart({"templates/a.yaml": ECHO}), renderer=FROM_SECRET)
    made[0]._connection = unreached  # type: ignore[method-assign,assignment]  # the seam
    with pytest.raises(AnnealError) as caught:
        shown(made)
    assert [str(each) for each in caught.value.problems] == [
        "Secret db: renderer.valuesFrom takes values from it, and it can't be read",
        "cluster: doesn't answer",
    ]


VARIED = {"deploy/a.yaml": CONFIG.format("web") + "data: {a: 'x-${password}', b: '${b:-1}x', c: '${c}'}\n"}
VARIABLES = PostBuild(Json('{"c":"git"}'), (SubstituteFrom("Secret", "words"),))


def test_variables_that_no_cluster_gives_are_placeholders_and_a_note_says_so(server: ApiServer, sandbox: Sandbox) -> None:
    made = handler(server, sandbox, VARIED, post_build=VARIABLES)
    made[0]._connection = unreached  # type: ignore[method-assign,assignment]  # the seam
    found = shown(made)
    assert found.manifests[0].body()["data"] == {"a": "x-placeholder", "b": "1x", "c": "git"}
    assert found.notes == ("the cluster wasn't asked, and placeholders stand for its variables: cluster: doesn't answer",)


def test_variables_of_a_cluster_are_read_and_what_is_printed_hides_those_of_a_secret(server: ApiServer, sandbox: Sandbox) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "words", "namespace": "shop"}, "data": {"password": "NA=="}}
    server.must(Asked("POST", "/api/v1/namespaces/shop/secrets", {}, body, "", ""))
    found = shown(handler(server, sandbox, VARIED, post_build=VARIABLES))
    assert found.manifests[0].body()["data"] == {"a": "x-4", "b": "1x", "c": "git"}
    assert found.notes == ()
    [printed] = flat(found)["objects"].values()
    assert printed["data"] == {"a": "***", "b": "1x", "c": "git"}
    assert flat(found, show_secrets=True)["objects"]["a.yaml"]["data"]["a"] == "x-4"


def test_an_object_of_variables_that_isnt_there_is_named_though_the_render_is_only_shown(server: ApiServer, sandbox: Sandbox) -> None:
    with pytest.raises(OperatorError, match=r"Secret words: isn't there, in namespace shop; postBuild\.substituteFrom"):
        shown(handler(server, sandbox, VARIED, post_build=VARIABLES))


def test_a_chart_from_elsewhere_needs_no_cluster(server: ApiServer, sandbox: Sandbox) -> None:
    archive = packed({path.replace("deploy/", "web/"): data for path, data in chart({"templates/a.yaml": ECHO}).items()})
    with ChartHost(answers=FakeChart(archive).answers()) as registry:
        settings = RendererSettings("helm", chart=Chart(version="1.0.0", oci=f"{registry.oci}/charts/web"))
        made = handler(server, sandbox, {"README.md": ""}, renderer=settings, charts=(ChartSource(registry.address),))
        made[0]._connection = unreached  # type: ignore[method-assign,assignment]  # the seam
        assert [each.identity.name for each in shown(made).manifests] == ["web"]
        refused = handler(server, sandbox, {"README.md": ""}, renderer=settings)
        with pytest.raises(OperatorError, match="is below none of the target's `charts`"):
            shown(refused)
