r"""Accuracy published: a metric against the truth is itself a release (the paper's Remark 6), so it gets noise and a price.

For a table of counts $t(x)$ and its published version $z$, the total error is $e(x) = \sum_c |z_c - t_c(x)|$. Changing one
unit's record moves at most $m$ records out of one set of cells and into another, so $e$ moves by at most $2m$
($m = 1$ when the table counts the units themselves, the largest household when it counts persons). With two-sided
geometric noise of scale $2m/\varepsilon$ the published total is $\varepsilon$-DP in $D_{mult}$ per $d_{Ham}$, whatever the
invariants, and adds $\varepsilon$ to the budget of the release.
"""

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import polars as pl

from stirred.assess.utility.tables import TablePair
from stirred.census import Census
from stirred.chance import Key, discrete_laplace
from stirred.errors import IncompatibleError, InputError
from stirred.publish.packet.checksums import seal
from stirred.publish.packet.folder import Packet
from stirred.publish.packet.lookup import MEASURES
from stirred.publish.packet.receipt import write_json
from stirred.publish.run.part import write_whole
from stirred.spec import Budget, Evidence, Hamming, Multiplicative, Specification
from stirred.spec.files import load, save


@dataclass(frozen=True, slots=True, kw_only=True)
class Accuracy:
    """The noisy total and mean absolute error of one published table."""

    table: str
    cells: int
    total: int
    scale: Fraction

    def document(self) -> dict[str, object]:
        """Return plain values for programs; the mean is over the cells of the published table."""
        return {
            "table": self.table,
            "cells": self.cells,
            "total_absolute_error": self.total,
            "mean_absolute_error": max(self.total, 0) / self.cells,
            "noise_scale": str(self.scale),
        }


def published_specification(base: Specification, epsilon: Fraction, tables: int) -> Specification:
    """Return the release's promise composed with that of the noisy metrics, ε for each table."""
    if not isinstance(base.output_premetric, Multiplicative) or not isinstance(base.input_premetric, Hamming):
        raise IncompatibleError(
            "accuracy cannot be published beside this release",
            why=f"its flavor is {base.input_premetric}, {base.output_premetric}; the metrics are pure DP per changed record",
            fix="keep the metrics internal, or compute them on a stand-in",
        )
    noise = Specification(
        domain=base.domain,
        multiverse=base.multiverse,
        input_premetric=base.input_premetric,
        output_premetric=Multiplicative(),
        budget=Budget.of(epsilon * tables),
        evidence=Evidence(
            status="proved", source="publish/accuracy.py: total absolute error moves by at most 2m"
        ),
    )
    return base + noise


def price_metrics(packet: Packet, truth: Census, epsilon: Fraction) -> Specification:
    """Return the composed promise of the release and its noisy errors; refuse what cannot be priced."""
    if epsilon <= 0:
        raise InputError(
            "a budget must be positive",
            why="with a budget of 0 the noise is infinite",
            fix='--epsilon "1/10"',
        )
    base, tables = load(packet.public / "spec.json"), packet.tables()
    for record_type in tables.values():
        _records_per_unit(truth, base.input_premetric.unit, record_type)
    return published_specification(base, epsilon, len(tables))


def publish_accuracy(
    packet: Packet, truth: Census, out: Path, *, epsilon: Fraction, key: Key
) -> tuple[list[Accuracy], Specification]:
    """Write noisy errors of every published table, with the composed specification, to a folder of their own."""
    whole, tables = price_metrics(packet, truth, epsilon), packet.tables()
    unit = whole.input_premetric.unit
    checksums = (packet.public / "checksums.txt").read_bytes()
    found = []
    for name, record_type in tables.items():
        frame = pl.read_parquet(packet.public / "tables" / f"{name}.parquet")
        by = [column for column in frame.columns if column not in MEASURES]
        pair = TablePair.align(truth.counts(record_type, by), frame.select(*by, "count").to_arrow(), by=by)
        reference, protected = pair.arrays()
        error = int(np.abs(protected - reference).sum())
        scale = 2 * _records_per_unit(truth, unit, record_type) / epsilon
        # the input enters the name: a changed truth gets independent noise
        run = key.bind(
            "accuracy", checksums, name, str(epsilon), key.digest(reference.tobytes(), protected.tobytes())
        )
        noise = int(discrete_laplace(run.stream("total error"), scale, 1)[0])
        found.append(Accuracy(table=name, cells=frame.height, total=error + noise, scale=scale))
    with write_whole(out, "accuracy", closed=False) as folder:  # it has noise, and may be published
        write_json(
            folder / "accuracy.json",
            {"epsilon_per_table": str(epsilon), "tables": [a.document() for a in found]},
        )
        save(whole, folder / "spec.json")
        seal(folder)
    return found, whole


def _records_per_unit(truth: Census, unit: str, record_type: str) -> int:
    if record_type == unit:
        return 1
    largest = truth.domain.largest_household
    if largest is None:
        raise InputError(
            f"a table of {record_type} records cannot be priced per {unit}",
            why="the schema does not say how large a household may be",
            fix="add largest_household = … to census.toml",
        )
    return int(largest)
