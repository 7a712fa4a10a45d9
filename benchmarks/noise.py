"""Exact discrete Gaussian noise: draws per second on one core, beside OpenDP and beside the raw keystream.

Usage: python benchmarks/noise.py [--json]

Measured through the public sampler on a named stream, keystream included, wall clock, one thread, into a prepared
array of 32 MB (as TopDown draws into its own). The three are timed in turn, round after round, so that what else the
machine does touches all three alike; the figure of each is the median of its rounds. The floor is the AES-256-CTR
keystream at 4 bytes per draw, chunk by chunk as the sampler reads it. OpenDP 0.16 draws through make_gaussian on a
vector of 5,000 integers, so that its per-call cost does not count.

What the peer does that this sampler does not: OpenDP takes every bit from the operating system's generator, so its
guarantee does not rest on a keyed cipher; it adds the noise to data, saturating at the integer type's ends, and carries
a privacy map; and it needs no table, so one draw at a new scale costs as much as the next.
"""

import argparse
import json
import resource
import sys
import time
from fractions import Fraction
from statistics import median
from typing import Any

import numpy as np
import opendp.prelude as dp
from opendp.mod import enable_features

from stirred.chance import DiscreteGaussian, Key
from stirred.chance.streams import CHUNK_BYTES

SIGMAS = ("1/2", "2", "10", "100", "1000")
DRAWS = 4_000_000
PEER_DRAWS = 5_000
ROUNDS = 25


def measured(sigma: Fraction, rounds: int, draws: int) -> dict[str, Any]:
    """One row: medians over rounds in which the three are timed one after the other."""
    sampler = DiscreteGaussian(sigma**2)
    stream = Key.fresh().stream("benchmark", str(sigma))
    out = np.zeros(draws, dtype=np.int64)
    sampler.draw(stream, 1 << 16)
    noise = dp.m.make_gaussian(
        dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float), scale=float(sigma)
    )
    zeros = [0] * PEER_DRAWS
    noise(zeros[:100])
    ours, peers, floors = [], [], []
    for _ in range(rounds):
        start = time.perf_counter()
        sampler.draw(stream, draws, out=out)
        ours.append(draws / (time.perf_counter() - start))
        floors.append(keystream_rate(draws))
        start = time.perf_counter()
        noise(zeros)
        peers.append(PEER_DRAWS / (time.perf_counter() - start))
    # a benchmark that measured something else would be worthless: the variance is checked, 12 standard errors wide
    sample = out[:1_000_000].astype(np.float64)
    if sigma >= 2 and abs(float(np.var(sample)) / float(sigma) ** 2 - 1) > 12 * (2 / len(sample)) ** 0.5:
        raise SystemExit(f"the draws at sigma {sigma} do not have the variance they should have")
    rate, peer, floor = (median(values) for values in (ours, peers, floors))
    return {
        "sigma": float(sigma),
        "draws_per_second": round(rate),
        "opendp_draws_per_second": round(peer),
        "keystream_bytes_per_second": round(floor),
        "ratio_opendp": round(rate / peer, 1),
        "ratio_floor": round(4 * rate / floor, 3),
        "peak_rss_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def keystream_rate(draws: int) -> float:
    """Bytes per second of the raw keystream over as many bytes as the draws read, chunk by chunk into one buffer."""
    size = 4 * draws
    source = Key.fresh().stream("floor").keystream(0)
    buffer = bytearray(CHUNK_BYTES + 16)
    start = time.perf_counter()
    for _ in range(0, size, CHUNK_BYTES):
        source.fill(buffer, CHUNK_BYTES)
    return size / (time.perf_counter() - start)


def main(arguments: list[str] | None = None) -> int:
    """Print one row per sigma."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on standard output")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--draws", type=int, default=DRAWS)
    chosen = parser.parse_args(arguments)
    enable_features("contrib")
    rows = [measured(Fraction(sigma), chosen.rounds, chosen.draws) for sigma in SIGMAS]
    if chosen.json:
        document = {
            "benchmark": "noise",
            "threads": 1,
            "figure": f"median of {chosen.rounds} rounds",
            "rows": rows,
        }
        json.dump(document, sys.stdout, indent=2)
        print()
        return 0
    print(
        f"{'sigma':>6} {'draws/s':>12} {'OpenDP/s':>9} {'keystream B/s':>14} {'× OpenDP':>9} {'× floor':>8} {'peak MB':>8}"
    )
    for row in rows:
        print(
            f"{row['sigma']:>6g} {row['draws_per_second']:>12,} {row['opendp_draws_per_second']:>9,} "
            f"{row['keystream_bytes_per_second']:>14,} {row['ratio_opendp']:>9,.0f} {row['ratio_floor']:>8.3f} "
            f"{row['peak_rss_bytes'] / 1e6:>8.0f}"
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
