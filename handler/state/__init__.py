"""What Anneal remembers, in the target's own cluster: one ConfigMap (the record) and one Lease (the lock) for each target.

Knows no Kubernetes client: it speaks to the `Objects` port. What it reads back is untrusted input. The commit moves last.
"""
