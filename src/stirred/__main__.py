"""Run the command line as ``python -m stirred``."""

from stirred.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
