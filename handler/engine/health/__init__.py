"""The health of a target: what its objects' verdicts come to, and what the operator's expressions say of them."""
