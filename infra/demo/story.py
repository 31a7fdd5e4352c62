"""The story, scene by scene; `scenes.py` has their order. Each asserts what it shows."""

from __future__ import annotations

import re
import time

from infra.demo.cluster import differing
from infra.demo.configuration import QUICK
from infra.demo.narration import DemoFailed
from infra.demo.repository import SHOP, Commit, declared
from infra.demo.walkthrough import Walkthrough, counted, milliseconds

SERVICE_A = "deploy/front/service-a.yaml"
SERVICE_B = "deploy/front/service-b.yaml"


def first_push(demo: Walkthrough) -> None:
    """Deploy the whole shop."""
    names = demo.stage.names
    demo.voice.step("The shop is pushed")
    demo.repository.copy()
    commit = demo.repository.commit("The whole shop")
    line = demo.push(commit)
    demo.settle()
    demo.kubectl(f"get deployments,services,flashsales -n {names.front}")
    demo.voice.check(line.outcome == "applied" and demo.is_recorded(commit), f"commit {commit.short} is recorded in the cluster as applied")
    count = len(demo.members())
    demo.voice.check(count == declared(), f"{count} objects live, each labelled as the target's own")


def kubectl_leaves_it(demo: Walkthrough) -> None:
    """Show Rekkoner's complaint with kubectl alone."""
    stage, names, voice = demo.stage, demo.stage.names, demo.voice
    voice.step("service-A goes away: kubectl apply leaves it running")
    stage.kubectl.run("create", "namespace", names.by_hand)
    directory = stage.directory / "manifests"
    directory.mkdir()
    for path in (SERVICE_A, SERVICE_B):
        (directory / path.rpartition("/")[2]).write_text((SHOP / path).read_text().replace("shop-front", names.by_hand))
    demo.kubectl("apply -f manifests/")
    voice.command("rm manifests/service-a.yaml")
    (directory / "service-a.yaml").unlink()
    demo.kubectl("apply -f manifests/")
    left = demo.kubectl(f"get deployments -n {names.by_hand}")
    voice.check("service-a" in left, "service-a outlives its declaration: kubectl deletes only what it is asked to")


def anneal_deletes_it(demo: Walkthrough) -> None:
    """Delete what git no longer declares, and say why before and after."""
    names, voice = demo.stage.names, demo.voice
    voice.step("The same with Anneal")
    voice.command(f"git rm {SERVICE_A} && git commit")
    demo.repository.work.remove(SERVICE_A)
    commit = demo.repository.commit("Take service-a out of service")
    voice.command("git push origin HEAD:proposal")
    demo.repository.offer()
    voice.say("As a pull request, it already says what its merge would delete, and why:")
    plan = demo.anneal(f"plan shop --commit {commit.sha[:40]}")
    voice.check(plan.count("no longer declared") == 2, "the plan deletes just the Deployment and the Service of service-a")
    line = demo.push(commit)
    voice.check(line.counts.get("pruned") == 2 and demo.is_recorded(commit), f"both are deleted, and commit {commit.short} is recorded")
    left = demo.kubectl(f"get deployments,services -n {names.front}")
    voice.check("service-a" not in left and "service-b" in left, "service-a has left; service-b didn't notice")


def image_changed(demo: Walkthrough) -> None:
    """Change one field of one object."""
    names, voice = demo.stage.names, demo.voice
    voice.step("An image is changed")
    before = demo.members()
    demo.edit("front/web.yaml", "nginx-unprivileged:1.28-alpine", "nginx-unprivileged:1.29-alpine")
    line = demo.push(demo.repository.commit("nginx 1.29"))
    image = demo.kubectl(f"get deployment web -n {names.front} -o jsonpath='{{.spec.template.spec.containers[0].image}}'")
    voice.check("1.29" in image and line.counts.get("configured") == 1, "the new image is live")
    voice.check(
        differing(before, demo.members()) == [f"Deployment/{names.front}/web"], "one object was written, the others weren't touched"
    )


def same_push_again(demo: Walkthrough) -> None:
    """Redeliver the last webhook: nothing is written, not even to the record."""
    stage, voice = demo.stage, demo.voice
    voice.step("The git host sends the same webhook again")
    demo.settle()
    before, record = demo.members(), stage.kubectl.record(stage.names)
    mark = stage.log.mark()
    delivery, seconds = demo.redeliver()
    line = stage.log.wait(mark, lambda line: delivery in line.facts.get("deliveries", ()), "the run of the redelivery", stage.serving)
    voice.timing(f"acknowledged {milliseconds(seconds)} → run ended: {line.outcome}, in {milliseconds(line.facts.get('seconds', 0.0))}")
    after = demo.members()
    same = sum(before[name].version == after[name].version for name in before if name in after)
    voice.check(
        line.outcome == "unchanged" and not differing(before, after), f"0 writes: {same} of {len(after)} resourceVersions as before"
    )
    voice.check(stage.kubectl.record(stage.names) == record, "record and Lease weren't written either")


def edit_healed(demo: Walkthrough) -> None:
    """Repair what a person changed behind git's back."""
    stage, names, voice = demo.stage, demo.stage.names, demo.voice
    voice.step("A person edits the cluster behind git's back")
    demo.kubectl(f"scale deployment web -n {names.front} --replicas=1")
    plan = demo.anneal("plan shop")
    voice.check("replicas: 1 → 3" in plan, "Anneal sees which field differs, and who changed it")
    began, mark = time.time(), stage.log.mark()
    demo.at(QUICK)
    line = stage.log.wait(mark, lambda line: line.outcome == "applied", "a drift run that repairs", stage.serving)
    voice.timing(f"repaired by a {line.trigger} run, {milliseconds(line.at - began)} after that   ({counted(line)})")
    replicas = demo.kubectl(f"get deployment web -n {names.front} -o jsonpath='{{.spec.replicas}}'")
    voice.check(line.trigger == "drift" and replicas.strip() == "3", "3 replicas, as git says")


def webhook_lost(demo: Walkthrough) -> None:
    """Push without any webhook."""
    stage, names, voice = demo.stage, demo.stage.names, demo.voice
    voice.step("A webhook gets lost")
    demo.at(QUICK)
    demo.edit("front/web-config.yaml", "SHOP_TITLE: Tea and more", "SHOP_TITLE: Tea, kettles and more")
    commit = demo.repository.commit("A new title")
    mark = stage.log.mark()
    voice.command(f"git push   # {commit.short} {commit.subject}; its webhook is never sent")
    demo.repository.push()
    pushed = time.time()
    line = demo.run_of(mark, commit)
    voice.timing(f"pushed → found by a {line.trigger} run and recorded {milliseconds(line.at - pushed)}   ({counted(line)})")
    title = demo.kubectl(f"get configmap web -n {names.front} -o jsonpath='{{.data.SHOP_TITLE}}'")
    voice.check(line.outcome == "applied" and "kettles" in title and demo.is_recorded(commit), "the push was late, not lost")


def broken_refused(demo: Walkthrough) -> None:
    """Refuse what only the API server can see, all of it at once and before the first write."""
    voice = demo.voice
    voice.step("A broken push: mistakes that only the API server knows")
    before = demo.members()
    demo.edit("front/web-config.yaml", "CURRENCY: EUR", "CURRENCY: USD")
    demo.edit("front/web.yaml", "replicas: 3", "replica: 3")
    demo.edit("front/sales.yaml", "percent: 20", "percent: 95")
    demo.edit("back/cache.yaml", "port: 6379}", "port: 99999}")
    broken = demo.repository.commit("Dollars, and three mistakes")
    line = demo.push(broken)
    reported = "\n".join(sorted(line.problems))
    voice.output(re.sub(r"^(\S+: \S+:) ", r"\1\n    ", reported, flags=re.MULTILINE))
    files = ("front/web.yaml", "front/sales.yaml", "back/cache.yaml")
    voice.check(all(re.search(rf"deploy/{file}:\d+: ", reported) for file in files), "every mistake in one report, each with file and line")
    voice.check(not differing(before, demo.members()), "nothing was changed: not even the currency, which was right")
    undo = demo.repository.revert(broken)
    demo.push(undo)
    voice.check(demo.is_recorded(undo), "git revert, and the target is well again")


def mass_deletion(demo: Walkthrough) -> None:
    """Hold what deletes too much until a person approves exactly that, and bring it back."""
    names, voice = demo.stage.names, demo.voice
    voice.step("Half of the shop is deleted by mistake")
    voice.command("git rm -r deploy/back && git commit")
    demo.repository.work.remove("deploy/back")
    before = demo.members()
    commit = demo.repository.commit("Tidy up")
    line = demo.push(commit)
    voice.check(line.outcome == "held" and not differing(before, demo.members()), "held; nothing was changed")
    status = demo.anneal("status shop")
    approval = re.search(r"anneal (approve shop \w+)", status)
    if not approval:
        raise DemoFailed(f"anneal status names no command to approve:\n{status}")
    voice.say("A person approves it, by the id that stands for exactly these deletions:")
    demo.anneal(approval[1], show=5)
    gone, count = set(before) - set(demo.members()), declared("deploy/back")
    voice.check(
        len(gone) == count and all(f"/{names.back}/" in name for name in gone),
        f"{count} objects are gone, all of them declared in deploy/back",
    )
    voice.check(demo.is_recorded(commit), f"commit {commit.short} is recorded")
    _reverted(demo, commit, len(before))


def _reverted(demo: Walkthrough, mistake: Commit, whole: int) -> None:
    names, voice = demo.stage.names, demo.voice
    voice.step("git revert brings it back")
    voice.command("git revert HEAD")
    line = demo.push(demo.repository.revert(mistake))
    count = declared("deploy/back")
    demo.settle()
    demo.kubectl(f"get deployments,statefulsets,jobs -n {names.back}")
    voice.check(line.counts.get("created") == count and len(demo.members()) == whole, f"all {count} objects live again, {whole} in all")
