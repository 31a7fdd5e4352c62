"""Commit statuses: what the records say of commits, shown by their git hosts.

    subscriber       hears of what happens, and lets a target's record be looked at
    host_lane        one host's looks: when each is due, its pauses, its thread
    posting          one look: what the record owes is posted, and marked there; whether commits that only webhooks name were overtaken

Law: an event only says that there is something to look at; what is posted is what the record says then (`state.commit_status_update`), so
that no late picture overwrites a newer one. No host harms a run.
"""
