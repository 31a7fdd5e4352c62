"""Commands of a first day: what is needed, whether it is there, which rights it takes."""

from __future__ import annotations

import click

from handler.cli.options import PATH, command, filenames_option, files_options, placeholders_option, target_argument


@command("init")
@click.option("--repository", metavar="URL", help="https:// or ssh:// URL of the repository.")
@click.option("--ssh-key", metavar="FILE", help="For ssh://: a private key that may read it.")
@click.option("--known-hosts", metavar="FILE", help="For ssh://: the known_hosts lines of its host.")
@click.option("--token-env", metavar="NAME", help="For https://: the environment variable of a token that may read it.")
@click.option("--branch", help="The branch it follows [main].")
@click.option("--path", help="Directory of the manifests in the repository; a dot: its root [where the checkout has manifests].")
@click.option("--name", help="The target's name [the repository's].")
@click.option("-n", "--namespace", "namespaces", multiple=True, help="A namespace it may touch; the first is the default.")
@click.option(
    "--provider",
    metavar="NAME",
    help="Whose webhooks are sent: github, gitlab, gitea, bitbucket, azuredevops, generic, none [by the URL].",
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def init() -> None:
    """Write a first anneal.yaml (or the file that --config or ANNEAL_CONFIG names), and say what comes next.

    On a terminal it asks for what no flag says.
    """


@command("imports", renders=True)
@filenames_option("Files, directories or - with Flux' and Argo CD's objects.")
@click.option("--from-cluster", is_flag=True, help="Read these objects from the kubeconfig's cluster.")
@click.option("-n", "--namespace", "namespaces", multiple=True, help="With --from-cluster: a namespace to look in [all].")
@click.option("--repository", metavar="URL", help="The git repository of releases whose chart isn't in git [that of the input].")
def import_() -> None:
    """Print the targets for anneal.yaml that do what objects of Flux and Argo CD do; change nothing.

    \b
    anneal import -f clusters/prod > anneal.yaml
    flux export kustomization --all | anneal import -f - -f sources.yaml
    anneal import --from-cluster -n flux-system

    What became of each field is said in comments: set, by itself, not taken over. No Secret is read.
    """  # noqa: D301 - \b is click's mark of lines that aren't joined


@command("check")
@placeholders_option
@files_options
def check() -> None:
    """Look at configuration, secrets, git, cluster, rights, render and plan of TARGET; change nothing.

    When no target is named, all of them, and also all that `anneal serve` needs to start.
    """


@command("doctor")
@target_argument
@click.option("--server", metavar="URL", envvar="ANNEAL_SERVER", help="A server to ask, too [ANNEAL_SERVER]; the token is in ANNEAL_TOKEN.")
@click.option("--ca-file", metavar="FILE", default="", help="PEM file of the authorities to trust instead of the system's, for the server.")
@click.option("--insecure-http", is_flag=True, help="Send the token over plain http:// to another machine.")
def doctor() -> None:
    """Look at this machine and its tools, at what `anneal check` looks at, and at a running server; change nothing."""


@command("vendor", renders=True)
@click.argument("directory", type=PATH)
@click.option("--lock", "with_lock", is_flag=True, help="Write anneal.lock instead: versions and digests of Helm charts from elsewhere.")
def vendor() -> None:
    """Fetch what kustomizations below DIRECTORY take from elsewhere, and write it below DIRECTORY/vendor, for a commit to hold.

    Entries of resources, bases and components that name a URL are rewritten in place. A private host is signed in to as the
    configuration of -c, of ANNEAL_CONFIG or in /etc says for a repository there; ./anneal.yaml isn't read.
    """


@command("rbac")
@target_argument
@click.option("--namespaced", is_flag=True, help='Where the whitelist is "*": only the namespaces that are used now.')
@click.option("--service-account", metavar="NS/NAME", help="Who the handler is [anneal in the state namespace].")
@click.option("--group", metavar="NAME", help="The same where it is none: a group of the cluster, as an access entry of EKS names it.")
@click.option("--user", metavar="NAME", help="The same: a user of the cluster, as a client certificate names it.")
@click.option("--page", is_flag=True, help="Also what the page reads: the tree of pods, events and logs.")
@click.option("-f", "--filename", type=PATH, help="A checkout of its repository, instead of git: no secret is read.")
def rbac() -> None:
    """Print the least Roles and ClusterRoles that TARGET needs, with their bindings.

    They are for exactly the kinds that its git declares now and its record knows: print them again when git brings a new kind.
    """


@command("explain_delivery")
@click.argument("file", type=click.Path(allow_dash=True))
@click.option("--provider", metavar="NAME", help="Whose delivery it is; else the payload's shape decides.")
@click.option(
    "--headers",
    type=click.Path(allow_dash=True),
    help="Its headers, `Name: value` a line: then the signature is verified.",
)
def explain_delivery() -> None:
    """Say what the door would answer to the webhook payload in FILE (- for standard input): which targets, and why.

    FILE holds the body byte for byte. Nothing is run; only the configuration and its webhook secrets are read.
    """


@command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion() -> None:
    """Print what makes SHELL complete commands, options and targets.

    \b
    bash: eval "$(anneal completion bash)" in ~/.bashrc
    zsh:  eval "$(anneal completion zsh)" in ~/.zshrc, after compinit
    fish: anneal completion fish > ~/.config/fish/completions/anneal.fish
    """  # noqa: D301 - \b is click's mark of lines that aren't joined
