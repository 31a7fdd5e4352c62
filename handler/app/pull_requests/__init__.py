"""Plans on pull requests: what merging one would change, as one comment for all targets of its repository, and a status of its head.

    pull_request_run     one job: what the host says of it -> the merge -> each target's plan -> the comment, the status
    merge_result         base, head, and the tree of both
    target_preview       one target's plan of that tree (`handler.engine.planner.preview`), without values that aren't in git
    plan_comment         the plans as Markdown
    comment_post         the comment, found again by our record

Law: nothing is written to a cluster but the record's note of which comment is ours. Of a payload only a number is used.
"""
