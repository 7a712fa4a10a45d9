"""Limits of the system in which the libraries cannot even be loaded, told before they fail in their own words."""

import sys

from stirred.errors import InputError

if sys.platform != "win32":
    import resource

ADDRESS_BYTES = 2_000_000_000  # bytes of addresses that the libraries reserve, far more than they use


def require_addresses() -> None:
    """Refuse a bound on addresses (``ulimit -v``) that is too small: libraries would end the process without a message."""
    if sys.platform == "win32":
        return
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    if allowed != resource.RLIM_INFINITY and allowed < ADDRESS_BYTES:
        raise InputError(
            f"this shell allows a process {allowed / 1e9:.1f} GB of addresses",
            why=f"the libraries reserve {ADDRESS_BYTES / 1e9:.0f} GB or more, whatever they use",
            fix='ulimit -v unlimited; --memory "8 GB" bounds what a run holds',
        )
