"""The script of a packet: plain Python that makes the packet again, given the census and the key."""

# The text is the same for every packet: nothing of a plan becomes code.
SCRIPT = '''"""Makes this packet again: python redo.py CENSUS_FOLDER KEY_FILE OUT

CENSUS_FOLDER holds the census file that the plan names; KEY_FILE is the key of the release, which never
lies in a packet. The plan is plan.toml beside this script; it is read as data. With the versions of
receipt.json the public part comes out byte for byte the same.
"""

import sys
from pathlib import Path

from stirred.chance import Key
from stirred.publish import parse, run


def main(census: str, key: str, out: str) -> None:
    text = Path(__file__).with_name("plan.toml").read_text(encoding="utf-8")
    packet = run(parse(text, folder=Path(census)), out, key=Key.load(key))
    print(packet.folder)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
'''
