"""The page: how targets stand, what they would change, and what a person may decide about them, in a browser.

    access, roles, sessions         who is asking, and what of the targets they may see and do
    proxy_headers, oidc, same_site  the ways to sign in (`identity_provider` asks one), and where a form may come from
    build, routes, views            the parts; paths -> views; `security_headers` of every answer
    site_pages, target_pages        `worker_answers` -> what a template shows, by `overview` and `target_view`
    act_pages, acts                 what a person may decide: shown, confirmed, done
    standing, sparkline, links      parts of what is shown; `run_marks` of the history, `planned_writes` of a confirmation, `log_links`
    rendering, templates, static    HTML, by Jinja with everything escaped; one script, one style sheet
    live_feed                       what changes meanwhile, to all open pages

Law: it asks the worker and reaches no cluster. What it shows comes from git, clusters and strangers: all of it is escaped, links lead to
http and https alone, and a browser runs nothing but our one file.
"""
