"""The story, step by step. Each step asserts what it shows; the order is the one of `STEPS`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

from infra.demo.cluster import differing
from infra.demo.configuration import QUICK, USUAL
from infra.demo.narration import DemoFailed
from infra.demo.repository import SHOP, Commit, declared
from infra.demo.walkthrough import Telling, counted, milliseconds

SERVICE_A = "deploy/front/service-a.yaml"
SERVICE_B = "deploy/front/service-b.yaml"


def first_push(tell: Telling) -> None:
    """Deploy the whole shop."""
    names = tell.stage.names
    tell.voice.step("The shop is pushed")
    tell.repository.copy()
    commit = tell.repository.commit("The whole shop")
    line = tell.push(commit)
    tell.settle()
    tell.kubectl(f"get deployments,services,flashsales -n {names.front}")
    tell.voice.check(line.outcome == "applied" and tell.is_recorded(commit), f"commit {commit.short} is recorded in the cluster as applied")
    count = len(tell.members())
    tell.voice.check(count == declared(), f"{count} objects live, each labelled as the target's own")


def kubectl_leaves_it(tell: Telling) -> None:
    """Show Rekkoner's complaint with kubectl alone."""
    stage, names, voice = tell.stage, tell.stage.names, tell.voice
    voice.step("service-A goes away: kubectl apply leaves it running")
    stage.kubectl.run("create", "namespace", names.by_hand)
    directory = stage.directory / "manifests"
    directory.mkdir()
    for path in (SERVICE_A, SERVICE_B):
        (directory / path.rpartition("/")[2]).write_text((SHOP / path).read_text().replace("shop-front", names.by_hand))
    tell.kubectl("apply -f manifests/")
    voice.command("rm manifests/service-a.yaml")
    (directory / "service-a.yaml").unlink()
    tell.kubectl("apply -f manifests/")
    left = tell.kubectl(f"get deployments -n {names.by_hand}")
    voice.check("service-a" in left, "service-a outlives its declaration: kubectl deletes only what it is asked to")


def anneal_deletes_it(tell: Telling) -> None:
    """Delete what git no longer declares, and say why before and after."""
    names, voice = tell.stage.names, tell.voice
    voice.step("The same with Anneal")
    voice.command(f"git rm {SERVICE_A} && git commit")
    tell.repository.work.remove(SERVICE_A)
    commit = tell.repository.commit("Take service-a out of service")
    voice.command("git push origin HEAD:proposal")
    tell.repository.offer()
    voice.say("As a pull request, it already says what its merge would delete, and why:")
    plan = tell.anneal(f"plan shop --commit {commit.sha[:40]}")
    voice.check(plan.count("no longer declared") == 2, "the plan deletes just the Deployment and the Service of service-a")
    line = tell.push(commit)
    voice.check(line.counts.get("pruned") == 2 and tell.is_recorded(commit), f"both are deleted, and commit {commit.short} is recorded")
    left = tell.kubectl(f"get deployments,services -n {names.front}")
    voice.check("service-a" not in left and "service-b" in left, "service-a has left; service-b didn't notice")


def image_changed(tell: Telling) -> None:
    """Change one field of one object."""
    names, voice = tell.stage.names, tell.voice
    voice.step("An image is changed")
    before = tell.members()
    tell.edit("front/web.yaml", "nginx-unprivileged:1.28-alpine", "nginx-unprivileged:1.29-alpine")
    line = tell.push(tell.repository.commit("nginx 1.29"))
    image = tell.kubectl(f"get deployment web -n {names.front} -o jsonpath='{{.spec.template.spec.containers[0].image}}'")
    voice.check("1.29" in image and line.counts.get("configured") == 1, "the new image is live")
    voice.check(
        differing(before, tell.members()) == [f"Deployment/{names.front}/web"], "one object was written, the others weren't touched"
    )


def same_push_again(tell: Telling) -> None:
    """Redeliver the last webhook: nothing is written, not even to the record."""
    stage, voice = tell.stage, tell.voice
    voice.step("The git host sends the same webhook again")
    tell.settle()
    before, record = tell.members(), stage.kubectl.record(stage.names)
    mark = stage.log.mark()
    delivery, seconds = tell.redeliver()
    line = stage.log.wait(mark, lambda line: delivery in line.facts.get("deliveries", ()), "the run of the redelivery", stage.serving)
    voice.timing(f"acknowledged {milliseconds(seconds)} → run ended: {line.outcome}, in {milliseconds(line.facts.get('seconds', 0.0))}")
    after = tell.members()
    same = sum(before[name].version == after[name].version for name in before if name in after)
    voice.check(
        line.outcome == "unchanged" and not differing(before, after), f"0 writes: {same} of {len(after)} resourceVersions as before"
    )
    voice.check(stage.kubectl.record(stage.names) == record, "record and Lease weren't written either")


def edit_healed(tell: Telling) -> None:
    """Repair what a person changed behind git's back."""
    stage, names, voice = tell.stage, tell.stage.names, tell.voice
    voice.step("A person edits the cluster behind git's back")
    tell.kubectl(f"scale deployment web -n {names.front} --replicas=1")
    plan = tell.anneal("plan shop")
    voice.check("replicas: 1 → 3" in plan, "Anneal sees which field differs, and who changed it")
    began, mark = time.time(), stage.log.mark()
    tell.serve(QUICK)
    voice.say(
        f"anneal serve is started anew, with a drift run every {QUICK.drift} (30m by default) and a tick every {QUICK.interval} (5m)."
    )
    line = stage.log.wait(mark, lambda line: line.outcome == "applied", "a drift run that repairs", stage.serving)
    voice.timing(f"repaired by a {line.trigger} run, {milliseconds(line.at - began)} after that   ({counted(line)})")
    replicas = tell.kubectl(f"get deployment web -n {names.front} -o jsonpath='{{.spec.replicas}}'")
    voice.check(line.trigger == "drift" and replicas.strip() == "3", "3 replicas, as git says")


def webhook_lost(tell: Telling) -> None:
    """Push without any webhook."""
    stage, names, voice = tell.stage, tell.stage.names, tell.voice
    voice.step("A webhook gets lost")
    tell.edit("front/web-config.yaml", "SHOP_TITLE: Tea and more", "SHOP_TITLE: Tea, kettles and more")
    commit = tell.repository.commit("A new title")
    mark = stage.log.mark()
    voice.command(f"git push   # {commit.short} {commit.subject}; its webhook is never sent")
    tell.repository.push()
    pushed = time.time()
    line = tell.run_of(mark, commit)
    voice.timing(f"pushed → found by a {line.trigger} run and recorded {milliseconds(line.at - pushed)}   ({counted(line)})")
    title = tell.kubectl(f"get configmap web -n {names.front} -o jsonpath='{{.data.SHOP_TITLE}}'")
    voice.check(line.outcome == "applied" and "kettles" in title and tell.is_recorded(commit), "the push was late, not lost")
    tell.serve(USUAL)
    voice.say(
        "anneal serve is started anew with its usual intervals. It keeps nothing of its own: all it knows is in git and in the cluster."
    )


def broken_refused(tell: Telling) -> None:
    """Refuse what only the API server can see, all of it at once and before the first write."""
    voice = tell.voice
    voice.step("A broken push: mistakes that only the API server knows")
    before = tell.members()
    tell.edit("front/web-config.yaml", "CURRENCY: EUR", "CURRENCY: USD")
    tell.edit("front/web.yaml", "replicas: 3", "replica: 3")
    tell.edit("front/sales.yaml", "percent: 20", "percent: 95")
    tell.edit("back/cache.yaml", "port: 6379}", "port: 99999}")
    broken = tell.repository.commit("Dollars, and three mistakes")
    line = tell.push(broken)
    reported = "\n".join(sorted(line.problems))
    voice.output(re.sub(r"^(\S+: \S+:) ", r"\1\n    ", reported, flags=re.MULTILINE))
    files = ("front/web.yaml", "front/sales.yaml", "back/cache.yaml")
    voice.check(all(re.search(rf"deploy/{file}:\d+: ", reported) for file in files), "every mistake in one report, each with file and line")
    voice.check(not differing(before, tell.members()), "nothing was changed: not even the currency, which was right")
    undo = tell.repository.revert(broken)
    tell.push(undo)
    voice.check(tell.is_recorded(undo), "git revert, and the target is well again")


def mass_deletion(tell: Telling) -> Commit:
    """Hold what deletes too much until a person approves exactly that."""
    names, voice = tell.stage.names, tell.voice
    voice.step("Half of the shop is deleted by mistake")
    voice.command("git rm -r deploy/back && git commit")
    tell.repository.work.remove("deploy/back")
    before = tell.members()
    commit = tell.repository.commit("Tidy up")
    line = tell.push(commit)
    voice.check(line.outcome == "held" and not differing(before, tell.members()), "held; nothing was changed")
    status = tell.anneal("status shop")
    approval = re.search(r"anneal (approve shop \w+)", status)
    if not approval:
        raise DemoFailed(f"anneal status names no command to approve:\n{status}")
    voice.say("A person approves it, by the id that stands for exactly these deletions:")
    tell.anneal(approval[1], show=5)
    gone, count = set(before) - set(tell.members()), declared("deploy/back")
    voice.check(
        len(gone) == count and all(f"/{names.back}/" in name for name in gone),
        f"{count} objects are gone, all of them declared in deploy/back",
    )
    voice.check(tell.is_recorded(commit), f"commit {commit.short} is recorded")
    return commit


def reverted(tell: Telling, mistake: Commit) -> None:
    """Bring everything back."""
    names, voice = tell.stage.names, tell.voice
    voice.step("git revert brings it back")
    voice.command("git revert HEAD")
    line = tell.push(tell.repository.revert(mistake))
    count, whole = declared("deploy/back"), declared() - declared(SERVICE_A)
    tell.settle()
    tell.kubectl(f"get deployments,statefulsets,jobs -n {names.back}")
    voice.check(line.counts.get("created") == count and len(tell.members()) == whole, f"all {count} objects live again, {whole} in all")


def tell_all(tell: Telling) -> None:
    """Tell the whole story. Raises DemoFailed as soon as something isn't as announced."""
    steps: tuple[Callable[[Telling], None], ...] = (
        first_push,
        kubectl_leaves_it,
        anneal_deletes_it,
        image_changed,
        same_push_again,
        edit_healed,
        webhook_lost,
        broken_refused,
    )
    for step in steps:
        step(tell)
    reverted(tell, mass_deletion(tell))
