"""Which user of this machine calls: a browser sends its cookies for 127.0.0.1 to every port, so another user can learn one.

Linux lists the owner of every socket in ``/proc/net``. Elsewhere the owner is not known, and the cookie alone decides.
"""

import os
import socket
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path

SOCKET_LISTS = {socket.AF_INET: Path("/proc/net/tcp"), socket.AF_INET6: Path("/proc/net/tcp6")}
LOCAL_COLUMN, REMOTE_COLUMN, USER_COLUMN = 1, 2, 7  # columns of the list
ADMINISTRATOR_USER = 0

Address = Sequence[object]  # host and port


def find_user(client: Address, server: Address) -> int | None:
    """Return the number of the user at the calling end of a connection on this machine, or None."""
    try:
        family = socket.AF_INET6 if ip_address(str(client[0])).version == 6 else socket.AF_INET
        lines = SOCKET_LISTS[family].read_text(encoding="ascii").splitlines()[1:]
    except (OSError, ValueError, IndexError):
        return None
    wanted = (_in_list(client, family), _in_list(server, family))
    for line in lines:
        words = line.split()
        if len(words) > USER_COLUMN and (words[LOCAL_COLUMN], words[REMOTE_COLUMN]) == wanted:
            return int(words[USER_COLUMN])
    return None


def is_another_user(client: Address, server: Address) -> bool:
    """Return whether the caller is known to be neither the user of this process nor the administrator."""
    user = find_user(client, server)
    return user is not None and user not in (os.geteuid(), ADMINISTRATOR_USER)


def _in_list(address: Address, family: int) -> str:
    """Write an address as the list has it: words of four bytes in the order of the machine, then the port.

    >>> _in_list(("127.0.0.1", 8642), socket.AF_INET)
    '0100007F:21C2'
    """
    packed = socket.inet_pton(family, str(address[0]))
    words = (int.from_bytes(packed[at : at + 4], "little") for at in range(0, len(packed), 4))
    return "".join(f"{word:08X}" for word in words) + f":{int(str(address[1])):04X}"
