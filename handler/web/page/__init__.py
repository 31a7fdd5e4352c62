"""The page: how targets stand, what is wrong with them and why, and acts on them, for people with a browser.

    live_feed    what has changed, rendered once for all viewers and sent to those that may see it

Law: it is there only where it is configured, and only its own paths look at cookies.
"""
