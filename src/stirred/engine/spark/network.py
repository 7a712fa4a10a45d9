"""Refuse a cluster whose network anybody could read, unless it is accepted for a stated reason."""

from collections.abc import Mapping

from stirred.errors import InputError, PrivacyError

AUTHENTICATE = "spark.authenticate"
ENCRYPTIONS = ("spark.network.crypto.enabled", "spark.ssl.rpc.enabled")
ACCEPT_FLAG = "--accept-open-network"


def list_open_settings(config: Mapping[str, str]) -> list[str]:
    """Return what a cluster lacks for records and derived keys to travel unread; nothing for one machine.

    >>> list_open_settings({"spark.master": "local[2]"})
    []
    >>> list_open_settings({"spark.master": "yarn", "spark.authenticate": "true"})
    ['spark.network.crypto.enabled']
    """
    if config.get("spark.master", "").startswith("local"):  # the processes of one machine
        return []
    on = {name for name in (AUTHENTICATE, *ENCRYPTIONS) if config.get(name, "").strip().lower() == "true"}
    lacking = [] if AUTHENTICATE in on else [AUTHENTICATE]
    return lacking if on & set(ENCRYPTIONS) else [*lacking, ENCRYPTIONS[0]]


def require_closed_network(config: Mapping[str, str], accepted: str = "") -> str:
    """Return the reason for which an open network is accepted, or nothing where the network is closed.

    An open network without a reason is refused: tasks carry the derived key of the run, shuffles carry records.
    """
    lacking = list_open_settings(config)
    if not lacking:
        return ""
    if accepted:
        return require_reason(accepted)
    raise PrivacyError(
        "the network of this cluster is open",
        why=f"{' and '.join(lacking)} {'is' if len(lacking) == 1 else 'are'} not true: whoever reads it, or connects to it, "
        "gets the records and the key of this run",
        fix=f"set {' and '.join(lacking)} to true in spark-defaults.conf (a standalone cluster also needs "
        f'spark.authenticate.secret there), or state why the network is closed otherwise: {ACCEPT_FLAG} "REASON"',
    )


def require_reason(text: str) -> str:
    """Return a reason in one line; refuse one that says nothing."""
    words = " ".join(text.split())
    if sum(letter.isalpha() for letter in words) < 8 or not words.isprintable():  # "ok", "yes", "..."
        raise InputError(
            "the reason for an open network says nothing",
            why="it stands in receipt.json, where readers of the packet find it",
            fix=f'{ACCEPT_FLAG} "the cluster has a network of its own, without other users"',
        )
    return words
