"""The script of a packet: plain Python that makes the packet again, given the census and the key."""

from stirred.publish.plan.description import Plan

_SCRIPT = '''"""Makes this packet again: python redo.py CENSUS_FOLDER KEY_FILE OUT

CENSUS_FOLDER holds the census file that the plan names; KEY_FILE is the key of the release, which never
lies in a packet. With the versions of receipt.json the public part comes out byte for byte the same.
"""

import sys
from pathlib import Path

from stirred.chance import Key
from stirred.publish import parse, run

PLAN = r\'\'\'
{plan}\'\'\'


def main(census: str, key: str, out: str) -> None:
    packet = run(parse(PLAN.lstrip("\\n"), folder=Path(census)), out, key=Key.load(key))
    print(packet.folder)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
'''


def script(plan: Plan) -> str:
    """The text of redo.py."""
    text = plan.text if plan.text.endswith("\n") else plan.text + "\n"
    return _SCRIPT.format(plan=text)
