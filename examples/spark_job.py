"""The command ``stirred`` as a program for spark-submit: spark-submit [options] spark_job.py run plan.toml --out packet …"""

import sys

from stirred.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
