"""Run the command line as ``python -m stirred``."""

from stirred.cli.main import run

if __name__ == "__main__":
    run()
