"""Gitea's app.ini for a host of tests: on loopback alone, without mail, registration, indexers and tasks by the clock, and quick.

https://docs.gitea.com/administration/config-cheat-sheet has each name. Standard library only.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

Sections = Mapping[str, Mapping[str, object]]

_TASKS = (
    *("archive_cleanup", "check_repo_stats", "cleanup_hook_task_table", "deleted_branches_cleanup", "repo_health_check"),
    *("sync_external_users", "update_checker", "update_mirrors", "update_migration_poster_id"),
)
"""What Gitea does by the clock unless its settings say otherwise."""
_QUIET: Sections = {
    "actions": {"ENABLED": False},
    "packages": {"ENABLED": False},
    "mirror": {"ENABLED": False},
    "indexer": {"ISSUE_INDEXER_TYPE": "db", "REPO_INDEXER_ENABLED": False},
    "mailer": {"ENABLED": False},
    "oauth2": {"ENABLED": False},
    "openid": {"ENABLE_OPENID_SIGNIN": False, "ENABLE_OPENID_SIGNUP": False},
    "picture": {"DISABLE_GRAVATAR": True, "ENABLE_FEDERATED_AVATAR": False},
    "service": {"DISABLE_REGISTRATION": True, "REQUIRE_SIGNIN_VIEW": False, "ENABLE_TIMETRACKING": False},
    "i18n": {"LANGS": "en-US", "NAMES": "English"},
    "repository": {"DISABLE_MIGRATIONS": True, "DEFAULT_BRANCH": "main"},
    "repository.signing": {"SIGNING_KEY": "none"},
    "session": {"PROVIDER": "memory"},
    "webhook": {"ALLOWED_HOST_LIST": "loopback"},
    "queue": {"TYPE": "channel", "BATCH_LENGTH": 1},  # else each waits a tenth of a second for more
    "git.config": {"gc.auto": 0, "receive.autogc": False, "core.fsync": "none"},
    **{f"cron.{name}": {"ENABLED": False, "RUN_AT_START": False} for name in _TASKS},
}


def app_ini(root: Path, static: Path, port: int, address: str) -> str:
    """Return the text for a Gitea that keeps all below `root`, reads `static`, and calls itself `address` in what it sends."""
    own: Sections = {
        "": {"RUN_MODE": "prod", "I_AM_BEING_UNSAFE_RUNNING_AS_ROOT": True, "WORK_PATH": root},
        "server": {
            "DOMAIN": urlsplit(address).hostname,
            "HTTP_ADDR": "127.0.0.1",
            "HTTP_PORT": port,
            "ROOT_URL": f"{address}/",
            "LOCAL_ROOT_URL": f"http://127.0.0.1:{port}/",  # where git's hooks ask
            "PUBLIC_URL_DETECTION": "never",  # not the address that a request names
            "STATIC_ROOT_PATH": static,
            "APP_DATA_PATH": root / "data",
            "OFFLINE_MODE": True,
            "DISABLE_SSH": True,
            "SSH_USER": "git",  # what addresses name
            "LFS_START_SERVER": False,
            "GRACEFUL_HAMMER_TIME": "5s",
        },
        "database": {"DB_TYPE": "sqlite3", "PATH": root / "gitea.db"},
        "security": {
            "INSTALL_LOCK": True,
            "SECRET_KEY": secrets.token_hex(32),
            "INTERNAL_TOKEN": secrets.token_hex(32),
            "PASSWORD_HASH_ALGO": "pbkdf2$1$50",
            "SUCCESSFUL_TOKENS_CACHE_SIZE": 1000,  # one that isn't there costs ten thousand hashes
        },
        "log": {"MODE": "file", "LEVEL": "Info", "ROOT_PATH": root / "log"},
    }
    return "\n".join(_section(name, settings) for name, settings in (*own.items(), *_QUIET.items()))


def _section(name: str, settings: Mapping[str, object]) -> str:
    lines = [f"{key} = {str(value).lower() if isinstance(value, bool) else value}\n" for key, value in settings.items()]
    return (f"[{name}]\n" if name else "") + "".join(lines)
