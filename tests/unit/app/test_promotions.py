"""How a target that follows others reaches their records, and what it can't be: a directory."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from handler.app.connections import Connections, Options
from handler.app.other_records import ForeignRecords
from handler.app.promotions import AwaitedLooks, promoters_of
from handler.config.git_settings import Promoted, Revision, SecretRef
from handler.config.secrets import Secrets, references
from handler.config.settings import Cluster, Settings, Target
from handler.model.errors import ConfigInvalid, StateInvalid
from handler.state.record_format import stamp
from handler.state.record_values import RecordName
from tests.unit.engine.promoting_targets import PROD, SOAK, STAGING, Line


class Directory:
    """Where `apply -f` takes its one tree from: it has no history."""


def ways(target: Target, **options: Any) -> Connections:
    return Connections(Settings(targets=(STAGING, target)), Secrets(), {}, Options(**options))


def test_a_directory_follows_no_other_target() -> None:
    made = ways(PROD, sources={"prod": Directory()})
    with pytest.raises(ConfigInvalid, match="a directory holds none"):
        promoters_of(made, PROD)
    assert promoters_of(ways(STAGING, sources={"staging": Directory()}), STAGING).names == ()


def test_no_flag_means_the_cluster_of_another_installation_unless_none_is_written() -> None:
    made = ways(PROD, kubeconfig="/flag", context="flagged", master="https://flag.example.com")
    elsewhere = made.elsewhere(Cluster(SecretRef(file="/theirs")), (STAGING,), "there", "blue")
    assert (elsewhere._options.kubeconfig, elsewhere._options.context, elsewhere._options.master) == ("", "", "")
    assert (elsewhere.settings.state_namespace, elsewhere.settings.installation) == ("there", "blue")
    assert made.elsewhere(Cluster(SecretRef(file="/theirs")), (STAGING,), "there", "blue") is elsewhere
    same = made.elsewhere(None, (STAGING,), "", "blue")
    assert same is not elsewhere
    assert (same._options.kubeconfig, same.settings.state_namespace) == ("/flag", made.settings.state_namespace)


def test_the_kubeconfig_of_another_installation_is_resolved_like_a_targets_own() -> None:
    ref = SecretRef(kubernetes_secret="anneal-system/staging/kubeconfig")
    follows = replace(PROD, revision=Revision(promoted=Promoted(("staging",), cluster=Cluster(ref))))
    assert [*references(Settings(targets=(follows,)), {"clusters"})] == [ref]


def test_a_record_of_another_installation_that_was_renamed_proves_nothing_and_names_the_new_one() -> None:
    line = Line()
    line.commit("1")
    line.done("staging")
    records = ForeignRecords(line.handler, line.handler.target)
    assert records.read("staging").state
    for namespace, where in (("anneal-system", ""), ("there", ", whose record is ConfigMap/there/anneal-stage")):
        new = RecordName("stage", namespace, stamp(line.now))
        line.handler.store(STAGING).update(partial(replace, renamed_to=new))
        with pytest.raises(StateInvalid, match=f"it was renamed: target stage{where} has taken over") as refused:
            records.read("staging")
        assert refused.value.problems[0].fix == "write `from: stage` in `revision.promoted`"


def test_without_a_sign_in_at_the_git_host_records_alone_say_what_the_next_commit_waits_for() -> None:
    line = Line()
    line.commit("1")

    def looked() -> list[str]:
        known = None if line.value("prod") == "" else line.state("prod")
        found = AwaitedLooks(line.handler, asks_git=False)(PROD, known)
        line.host.down = True
        assert AwaitedLooks(line.handler, asks_git=False)(PROD, known) == found
        line.host.down = False
        return [str(each) for each in found]

    assert looked() == ["staging: has no record: it never ran"]
    line.done("staging")
    line.later(SOAK)
    line.done("prod")
    assert looked() == []
    second = line.commit("2")
    line.done("staging")
    assert looked() == [f"staging: has kept {second[:12]} healthy for 0s of 30m"]
    line.later(SOAK)
    assert looked() == [f"{second[:12]} is proven, and the next run asks the git host whether it may follow"]
    line.done("prod")
    assert looked() == []
    line.done("staging", "oneoff", rollback=True, actor="ada")
    assert looked() == [f"staging: was rolled back from {second[:12]}"]
