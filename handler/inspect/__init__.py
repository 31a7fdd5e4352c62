"""What is asked of a target beyond its record: the gap between git and cluster, and whatever else only a look now can say.

    look         a dry run of a target, beside its runs
    gap          how each object and field stands against git
    orphans      what the next run deletes, what it keeps
    signs        their states, and how each is shown
    inventory    the tree of members and what they own (`_look` reads, `_tree` shows); its events, logs
    commit_diff  what changed between two commits
    inspector    one method a question (`plan_` and `live_questions`), as JSON that has an end; the same answer for page, CLI and API

Law: it only reads, and with the target's own identity; what it returns is a value, masked as a plan is.
"""
