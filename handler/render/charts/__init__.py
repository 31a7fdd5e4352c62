"""Charts that git doesn't hold, as both renderers read them: archives, indexes, the lock in git.

    in the worker     chart_readers
    in the child      chart_archive, chart_index, chart_lock

Law: bytes from elsewhere are parsed in a child, and what a child says of them is read strictly.
"""
