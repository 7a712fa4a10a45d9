"""The command ``stirred`` as a program for spark-submit: spark-submit [options] spark_job.py run plan.toml --out packet …"""

from stirred.cli.main import run

if __name__ == "__main__":
    run()
