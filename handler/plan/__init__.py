"""desired + live -> Plan. Pure: no clock, no network; the same inputs give the same plan.

admit     what git declares -> Desired, or every reason why not
compare   live objects, as pages arrive -> the same, undecided, prune candidates
owned     the walk of `managedFields` that decides without asking the server
judge     the server's dry-run of an undecided object -> its Change
ownership whose an object is that isn't ours: the table of other tools' labels, annotations and field managers
adopt     whether an object is ours, and taking over what `kubectl` and named tools wrote
ignore    fields that others may own
order     stages of the apply, their reverse for prune
prune     whether one live object may be deleted
guards    whether the whole plan may run
"""
