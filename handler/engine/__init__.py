"""The parts of one run, where rooms are put together. `handler.engine.reconcile` leads.

    what a run knows      rooms (outlives it), context
    which commit          goal; arriving (a push that the host doesn't show yet), asking (a person's word), rollback
    whether to work       settled; quiet (the same, told from a summary)
    what git says         preparing, with hooked (its hooks) and rolled (its Rollout); inputs (that, and the settings)
    what is to be done    planned_for and due (what is asked), planning; deciding, trying (what the server says); acting, canaries (what
                          steps do); judging (what may be deleted)
    doing it              rollout.walking leads: applying, stored (what that left), pruning, gone, waits, rollout; ending (errors)
    how it ends           outcomes, by state_after (what the record says then); withdrawing (canaries that were overtaken);
                          errors (mistaken requests), hiding (what no text may show)
    across runs           scanning (members, where there is no record), kept_renders (what stays in memory)

Law: no room knows another. What takes two of them is decided here, and handed on as a value.
"""
