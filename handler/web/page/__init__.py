"""The page: how targets stand, what they would change, and what a person may decide about them, in a browser.

    access, roles, sessions, oidc   who is asking, and what of the targets they may see and do
    routes                          paths -> views; every answer's headers
    overview, target_page, acts     what the worker answers -> what a template shows
    rendering, templates, static    HTML, by Jinja with everything escaped; one script, one style sheet
    live_feed                       what changes meanwhile, to all open pages

Law: it asks the worker and reaches no cluster. What it shows comes from git, clusters and strangers: all of it is escaped, links lead to
http and https alone, and a browser runs nothing but our one file.
"""
