"""The page for browsers. `access` says who is asking and what he may do; the ways to sign in and the table of roles are its parts."""
