"""Kill runs at random instants and print how often each step was hit.

PYTHONPATH=tests .venv/bin/python -m slow.kills --kills 200 --seed 1 --out build/kills
"""

import argparse
import json
import random
import shutil
import sys
from pathlib import Path

from slow.kills.cluster import StandaloneCluster
from slow.kills.harness import Starter, Trial, by_job, histogram
from slow.kills.jobs import BUREAU, DAS2020, LOCAL, SPARK, Job


def kill(
    jobs: tuple[Job, ...], home: Path, *, kills: int, seed: int, households: int = 900, chain: int = 6
) -> list[Trial]:
    """Kill the jobs in turn until there are that many kills in all; returns the trials with what they found."""
    rng = random.Random(seed)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    trials = []
    with Starter(home.resolve()) as starter:
        for i, job in enumerate(jobs):
            folder = home.resolve() / job.name.replace(" ", "-")
            trial = Trial(job=job, folder=folder, starter=starter, rng=rng)
            trial.prepare(households)
            trials.append(trial)
            goal = kills * (i + 1) // len(jobs) - kills * i // len(jobs)
            while len(trial.kills) < goal:
                trial.chain(min(chain, goal - len(trial.kills)))
                _write(home, trials)
            print(histogram(trial.kills), flush=True)
    return trials


def kill_on_spark(home: Path, *, kills: int, seed: int, households: int = 300) -> list[Trial]:
    """Kill drivers and, as often, workers of a standalone cluster; half of the kills for each job."""
    rng = random.Random(seed)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    trials: list[Trial] = []
    with StandaloneCluster(home.resolve() / "spark") as cluster, Starter(home.resolve(), cluster) as starter:
        for i, job in enumerate(SPARK):
            folder = home.resolve() / job.name.replace(" ", "-")
            trial = Trial(job=job, folder=folder, starter=starter, rng=rng)
            trial.prepare(households)
            trials.append(trial)
            goal = kills * (i + 1) // len(SPARK) - kills * i // len(SPARK)
            while len(trial.kills) < goal:
                if len(trial.kills) < goal // 2:
                    trial.lose_worker()
                else:
                    trial.chain(min(2, goal - len(trial.kills)))
                _write(home, trials)
            print(histogram(trial.kills), flush=True)
    return trials


def _write(home: Path, trials: list[Trial]) -> None:
    kills = [found for trial in trials for found in trial.kills]
    document = {
        "kills": len(kills),
        "compared": sum(trial.compared for trial in trials),
        "faults": [[found.job, found.step, found.signal, *found.faults] for found in kills if found.faults],
        "steps": by_job(kills),
    }
    (home / "kills.json").write_text(json.dumps(document, indent=2) + "\n")
    lines = [f"{k.job},{k.step},{k.signal},{k.code},{k.again},{len(k.faults)}\n" for k in kills]
    (home / "kills.csv").write_text("job,step,signal,code,again,faults\n" + "".join(lines))


def main() -> int:
    """Run as a command; exit code 1 where something was wrong."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--households", type=int, default=900)
    parser.add_argument("--out", type=Path, default=Path("build/kills"))
    parser.add_argument("--job", action="append", help="only jobs with this in their name")
    parser.add_argument("--spark", action="store_true", help="on a standalone cluster: drivers and workers")
    asked = parser.parse_args()
    jobs = tuple(
        job
        for job in (*LOCAL, *BUREAU, *DAS2020)
        if not asked.job or any(word in job.name for word in asked.job)
    )
    if asked.spark:
        trials = kill_on_spark(asked.out, kills=asked.kills, seed=asked.seed)
    else:
        trials = kill(jobs, asked.out, kills=asked.kills, seed=asked.seed, households=asked.households)
    kills = [found for trial in trials for found in trial.kills]
    wrong = [found for found in kills if found.faults]
    for found in wrong:
        print(f"{found.job}, {found.step}, {found.signal}: {'; '.join(found.faults)}", file=sys.stderr)
    print(f"{len(kills)} kills, {sum(t.compared for t in trials)} packets compared, {len(wrong)} faults")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
