"""What of a chart depends on time: install and upgrade, their hooks, what is made anew at each render, what is always empty here."""

from __future__ import annotations

import pytest

from handler.model.errors import AuthorError
from handler.render import Sandbox
from tests.rooms.render.helm_releases import CONFIG, ECHO, HOOK, chart, names, options, rendered, sandbox

__all__ = ["sandbox"]


# --- install and upgrade
def test_the_first_commit_is_an_install_until_something_changes(sandbox: Sandbox) -> None:
    files = chart({"templates/a.yaml": CONFIG.format("{{ .Release.IsInstall }}-{{ .Release.IsUpgrade }}")})
    first = rendered(sandbox, files)
    assert names(first) == ["ConfigMap/true-false"]
    again = rendered(sandbox, files, installed=first.installs)
    assert (names(again), again.installs, again.reads) == (names(first), first.installs, first.reads)
    later = rendered(sandbox, {**files, "deploy/values.yaml": "a: 1\n"}, installed=first.installs)
    assert names(later) == ["ConfigMap/false-true"]
    assert names(rendered(sandbox, files, options(assigned={"a": 1}), installed=first.installs)) == ["ConfigMap/false-true"]
    assert names(rendered(sandbox, files, options(), installed=first.installs)) == [
        "ConfigMap/true-false"
    ]  # `type: helm` is what auto took


def test_hooks_that_helm_wouldnt_run_now_are_left_out(sandbox: Sandbox) -> None:
    kinds = ("pre-install", "post-upgrade", "pre-install,pre-upgrade", "post-delete", "test")
    files = chart({f"templates/{number}.yaml": HOOK.format(f"h{number}", kind) for number, kind in enumerate(kinds)})
    argo = '  annotations: {"helm.sh/hook": "pre-upgrade", "argocd.argoproj.io/hook": "PreSync"}\n'
    files["deploy/templates/argo.yaml"] = f"apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: argo\n{argo}spec: {{}}\n"
    first, later = rendered(sandbox, files), rendered(sandbox, files, installed="earlier")
    assert sorted(names(first)) == ["Job/argo", "Job/h0", "Job/h2", "Job/h3", "Job/h4"]
    assert sorted(names(later)) == ["Job/argo", "Job/h1", "Job/h2", "Job/h3", "Job/h4"]
    assert first.notes == ("1 hook that only an upgrade runs left out: release web is rendered for an install",)
    assert later.notes == ("1 hook that only an install runs left out: release web is rendered for an upgrade",)
    assert [str(each.identity) for each in later.rests] == ["Job/h0"], "what it made stays"
    assert first.rests == ()


def test_a_hook_may_have_one_form_for_an_install_and_another_for_an_upgrade(sandbox: Sandbox) -> None:
    files = chart({"templates/a.yaml": HOOK.format("h", "pre-install"), "templates/b.yaml": HOOK.format("h", "pre-upgrade")})
    assert [each.place for each in rendered(sandbox, files).manifests] == ["deploy/templates/a.yaml:2"]
    later = rendered(sandbox, files, installed="earlier")
    assert ([each.place for each in later.manifests], later.rests) == (["deploy/templates/b.yaml:2"], ())
    with pytest.raises(AuthorError, match="Job/h: declared twice, first at"):
        rendered(sandbox, {**files, "deploy/templates/c.yaml": HOOK.format("h", "post-install")})


def test_a_chart_that_fails_for_want_of_what_it_looks_up_names_the_values_of_a_live_object(sandbox: Sandbox) -> None:
    template = '{{ if and .Release.IsUpgrade (not (lookup "v1" "Secret" "shop" "db")) }}{{ fail "a password is needed" }}{{ end }}\n'
    files = chart({"templates/a.yaml": template + CONFIG.format("a")})
    assert names(rendered(sandbox, files)) == ["ConfigMap/a"]
    with pytest.raises(AuthorError, match="a password is needed") as refused:
        rendered(sandbox, files, installed="earlier")
    assert "renderer: {valuesFrom: [{kind: Secret, name: …, key: …, targetPath: …}]}" in refused.value.problems[0].fix
    plain = chart({"templates/a.yaml": '{{ fail "a password is needed" }}\n'})
    with pytest.raises(AuthorError) as refused:
        rendered(sandbox, plain, installed="earlier")
    assert refused.value.problems[0].fix == ""


# --- made anew, and empty
def test_what_is_made_anew_at_each_render_is_named_by_field_and_call(sandbox: Sandbox) -> None:
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: db}\nstringData:\n  fixed: a\n  pass/word: {{ randAlphaNum 20 }}\n"
    files = chart({"templates/secret.yaml": secret, "templates/a.yaml": CONFIG.format("a")})
    found = rendered(sandbox, files)
    [(identity, fields)] = found.unstable.items()
    assert str(identity) == "Secret/db"
    assert fields.why == "randAlphaNum at deploy/templates/secret.yaml:6"
    assert len(fields.paths) == 1
    assert fields.paths[0].endswith("/pass~1word")


def test_a_clock_is_seen_a_second_later(sandbox: Sandbox) -> None:
    files = chart({"templates/a.yaml": CONFIG.format("a") + 'data: {at: {{ now | date "2006-01-02 15:04:05" | quote }}}\n'})
    [fields] = rendered(sandbox, files).unstable.values()
    assert fields.paths == ("/data/at",)


def test_a_name_that_is_made_anew_is_noted(sandbox: Sandbox) -> None:
    found = rendered(sandbox, chart({"templates/a.yaml": CONFIG.format("a-{{ randAlphaNum 9 | lower }}")}))
    assert not found.unstable
    assert [each.identity for each in found.manifests] == [*found.renamed]
    [note] = found.notes
    assert note.startswith("deploy/templates/a.yaml:2: ConfigMap/a-")
    assert "is another object at each render: randAlphaNum at deploy/templates/a.yaml:3" in note


def test_lookups_are_noted_with_their_lines(sandbox: Sandbox) -> None:
    files = chart(
        {f"templates/{number}.yaml": f'\n# {{{{ lookup "v1" "Secret" "shop" "a" }}}}\n{CONFIG.format(f"c{number}")}' for number in range(7)}
    )
    [note] = rendered(sandbox, files).notes
    assert note.startswith("lookup at deploy/templates/0.yaml:2, lookup at deploy/templates/1.yaml:2")
    assert "and 2 more: finds nothing here" in note


def test_warnings_of_helm_are_noted_without_values(sandbox: Sandbox) -> None:
    files = chart({"values.yaml": "db: S3CRET\n", "templates/a.yaml": ECHO})
    assert rendered(sandbox, files, options(values={"db": {"user": "S3CRET"}})).notes == ("“skipped value for web.db: Not a table.”",)
