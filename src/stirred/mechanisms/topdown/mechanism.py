"""TopDown as a mechanism: measure with noise, then consistent integers that keep the invariants (Algorithm 2)."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa

from stirred._support import pads
from stirred.chance import Key
from stirred.engine import Engine, Local, Progress
from stirred.errors import InputError
from stirred.languages import Phrase
from stirred.mechanisms.base import (
    Knob,
    Mechanism,
    TunedSettings,
    check_inputs,
    require_inputs,
    totals_to_try,
)
from stirred.mechanisms.contents import MeasuredNoise
from stirred.mechanisms.effect import ExpectedEffect, gaussian_change, smallest_effect
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.identifiers import require_unidentifying
from stirred.mechanisms.proposal import Cap, Goal, Proposal
from stirred.mechanisms.release import Check, Release, format_table, join_variables, require_schema
from stirred.mechanisms.topdown import promise
from stirred.mechanisms.topdown.config import TopDownConfig
from stirred.mechanisms.topdown.counts import require_columns
from stirred.mechanisms.topdown.dhc_given_pl.facility_types import fit_workload
from stirred.mechanisms.topdown.dhc_given_pl.parents import load_promise
from stirred.mechanisms.topdown.estimate.algebra import Algebra
from stirred.mechanisms.topdown.estimate.uncertainty import tabulate_uncertainty
from stirred.mechanisms.topdown.histogram import name_column
from stirred.mechanisms.topdown.interest import predict_areas
from stirred.mechanisms.topdown.measurement_files import measure_noise
from stirred.mechanisms.topdown.promise import cost_in_multiverse
from stirred.mechanisms.topdown.run.release import run_workload, tabulate_records
from stirred.mechanisms.topdown.run.task import Settings, Task
from stirred.mechanisms.topdown.tuning import other_tree_error, propose, tune_workload
from stirred.mechanisms.topdown.workload import (
    AIAN_GEOGRAPHY,
    NO_SPLIT,
    WHOLE_TREE_MODES,
    Mode,
    SpineOptions,
    Workload,
    label_levels,
    load_workloads,
    production_tree,
    write_canonical,
)
from stirred.spec import Specification
from stirred.spec.invariants import Views, largest_views

if TYPE_CHECKING:
    from stirred.census import Census, Schema


class TopDown(Mechanism):
    """Noisy measurements of a workload at every geounit, then microdata that agree with the invariants.

    ``workload`` is a preset (also ``pl94`` or ``dhc`` for persons and units together), a TOML file or a Workload.
    ``rho_squared`` replaces the workload's total (the usual zCDP ρ); ``"inf"`` adds no noise, for tests.

    >>> TopDown(workload="pl94").rho_squared_spent
    Fraction(46066969010197, 17508174012729)
    """

    name: ClassVar[str] = "topdown"
    config: TopDownConfig
    seconds_per_million: ClassVar[float] = 60.0
    bytes_per_record: ClassVar[int] = 400

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:
        """Propose a workload of the variables with few listed levels."""
        return propose(schema)

    # The settings: workloads, budget and tree, and what the receipt and the key know of them

    def check_settings(self) -> None:
        """Refuse one replicate, and a tree that contradicts itself."""
        if self.config.replicates == 1:
            raise InputError(
                "the number of replicates is 0, or at least two",
                why="one run shows no spread",
                fix="replicates=20",
            )
        _ = self.spine

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, TopDown)
            and Mechanism.__eq__(self, other)
            and self.config.workload
            == other.config.workload  # of one made in Python a plan knows the name alone
        )

    __hash__ = Mechanism.__hash__

    @property
    def mode(self) -> Mode | None:
        """Return the estimate that is asked for, or None where each workload names its own."""
        return None if self.config.mode == "workload" else self.config.mode

    @property
    def given(self) -> Path | None:
        """Return the packet whose microdata the release must agree with."""
        return None if self.config.given is None else Path(self.config.given)

    @property
    def spine(self) -> SpineOptions | None:
        """Return the tree that the settings ask for, or None where they leave it to the workload and the census."""
        asked = self.config
        groups, primitives, interest = asked.optimized_block_groups, asked.primitives, asked.areas_of_interest
        split = AIAN_GEOGRAPHY if asked.aian is None and AIAN_GEOGRAPHY in (interest or ()) else asked.aian
        if interest:
            groups = list(dict.fromkeys([*(groups or ()), *interest]))
        tree = SpineOptions(
            aian=None if split == NO_SPLIT else split,
            block_groups=None if groups is None else tuple(groups),
            strong_mcd=asked.strong_mcd,
            quarters=asked.group_quarters_bits,
            primitives=None if primitives is None else tuple(primitives),
            bounds=asked.part_bounds,
        )
        return None if tree == SpineOptions() and asked.aian is None else tree

    def tree(self, workload: Workload, schema: "Schema") -> SpineOptions | None:
        """Return the measured tree: the one asked for, the workload's, or that of production."""
        asked = self.spine
        if asked is not None:
            return asked or workload.spine
        return workload.spine or production_tree(workload, schema)

    @property
    def workloads(self) -> tuple[Workload, ...]:
        """Return the workloads of the run, with their budgets."""
        return load_workloads(self.config.workload, None if self.is_noiseless else self.config.rho_squared)

    @property
    def record_type(self) -> str:
        """Return the record type of the first workload."""
        return self.workloads[0].record

    @property
    def is_noiseless(self) -> bool:
        """Return whether the budget is infinite: no noise, no protection."""
        return self.config.rho_squared == "inf"

    @property
    def rho_squared_spent(self) -> Fraction | None:
        """Return the total ρ² of all workloads, None when infinite."""
        return None if self.is_noiseless else sum((w.rho_squared for w in self.workloads), Fraction(0))

    def parameters(self) -> dict[str, object]:
        """Return every setting, for the receipt."""
        return (
            {"spine": None}
            | self.identity()
            | {
                "names": self.config.names,
                "solver": "fast",  # the only one; receipts have always named it
                "replicates": self.config.replicates,
                "keep_nmf": self.config.keep_nmf,
            }
        )

    def identity(self, tree: SpineOptions | None = None) -> dict[str, object]:
        """Return the settings that the key is bound to, in canonical JSON.

        The other settings must not change the noise.

        ``tree`` is the one that a run measures, where settings leave it to the census.
        """
        chosen = self.spine or tree
        own: dict[str, object] = {"spine": chosen.document()} if chosen else {}
        return own | {
            "workloads": {
                w.name: hashlib.sha256(write_canonical(w).encode()).hexdigest() for w in self.workloads
            },
            "mode": self.mode or "of each workload",
            "rho_squared": "inf" if self.is_noiseless else str(self.rho_squared_spent),
            "bypass": self.config.bypass,
            "emphasis": self.config.emphasis,
            "given": self.given is not None,
        }

    # The promise, the release and its tables

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:
        """Stop if records, a column or an earlier packet are missing, at places that identify records, or where the closed
        form does not fit the workload.
        """
        self.require_given()
        for workload in self.workloads:
            require_columns(census, workload)
            require_unidentifying(census, workload.record, workload.levels, engine=engine)
            if (self.mode or workload.mode) in WHOLE_TREE_MODES:
                Algebra.of(workload.histogram, workload.queries).require_fit()

    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """State the promise: zCDP per person, on the multiverse of the rules' invariants."""
        require_inputs(census, engine)
        parts = [
            promise.build_specification(
                census,
                w,
                None if self.is_noiseless else w.rho_squared,
                self._notes(w, census),
                options=self.tree(w, census.schema),
            )
            for w in self.fitting(census)
        ]
        if self.given is not None:
            parts.insert(0, load_promise(self.given))
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def expected_effect(self, census: "Census", *, engine: Engine | None = None) -> ExpectedEffect | None:  # noqa: ARG002
        """Return the chance that the noise of a measured count at the lowest level is not 0, over all its queries."""
        found = {}
        for workload in self.workloads:
            leaf = workload.levels[-1]
            asked = [
                (sigma, workload.query(query).size)
                for (level, query), sigma in promise.standard_deviations(workload).items()
                if level == leaf
            ]
            if asked and not self.is_noiseless:
                changed = sum(gaussian_change(sigma**2) * number for sigma, number in asked)
                found[f"{workload.name}, {leaf}"] = changed / sum(number for _, number in asked)
        return smallest_effect(found)

    def require_given(self) -> None:
        """Raise an error, before any noise is drawn, if a product continues another one and its packet is missing."""
        for workload in self.workloads:
            if workload.given and self.given is None:
                raise InputError(
                    f"workload {workload.name} continues {workload.given}",
                    why="its microdata must agree with what was published",
                    fix="--given a packet that stirred topdown --workload pl94 wrote",
                )

    def fitting(self, census: "Census") -> tuple[Workload, ...]:
        """Return the workloads with the rules that the census has the columns for."""
        return tuple(fit_workload(w, self.mode or w.mode, census) for w in self.workloads)

    def _notes(self, workload: Workload, census: "Census") -> tuple[str, ...]:
        schema = census.schema
        name, options = workload.name, self.tree(workload, schema)
        total = "∞" if self.is_noiseless else str(workload.rho_squared)
        notes: tuple[str, ...] = (Phrase("topdown.note.total", name=name, rho_squared=total),)
        if not self.is_noiseless:
            notes += promise.note_determined(
                workload, cost_in_multiverse(workload, options, schema.spine), schema
            )
        if self.config.bypass:
            notes += (Phrase("topdown.note.bypass", name=name),)
        if options:
            notes += tuple(Phrase("topdown.named", name=name, words=words) for words in options.words())
        if not self.is_noiseless:
            for one in predict_areas(census, workload, options, self.config.areas_of_interest or ()):
                notes += (
                    Phrase(
                        "topdown.note.interest", name=name, areas=one.name, number=f"{one.areas:,}",
                        units=f"{one.units:.1f}", most=one.most_units, error=f"{one.error:.2g}",
                        largest=f"{one.largest_error:.2g}",
                    ),
                )  # fmt: skip
        if workload.given:
            notes += (Phrase("topdown.note.given", name=name, given=workload.given),)
            asked = next(w for w in self.workloads if w.name == name)
            for rule in (rule for rule in asked.rules if rule not in workload.rules):
                column = ", ".join(rule.unit_source.columns)
                notes += (Phrase("topdown.note.major_types", name=name, column=column, given=workload.given),)
        return notes

    def release(
        self,
        census: "Census",
        *,
        key: Key,
        engine: Engine | None = None,
        out: Path | None = None,
        state: Path | None = None,
        progress: Progress | None = None,
    ) -> Release:
        """Run every workload; finished levels are kept in ``state``.

        With ``out`` the microdata (and the noisy measurement file) are written there.
        """
        self.require_given()
        census = check_inputs(census, key, engine)
        for (
            workload
        ) in self.workloads:  # its cells are listed in the workload; its places come from the records
            require_unidentifying(census, workload.record, workload.levels, engine=engine)
        specification = self.specification(census)
        settings = Settings(
            mode=self.mode,
            bypass=self.config.bypass,
            noiseless=self.is_noiseless,
            emphasis=self.config.emphasis,
        )
        microdata: dict[str, pa.Table | pads.Dataset] = {}
        tables: dict[str, pa.Table] = {}
        checks: list[Check] = []
        digests = []
        for workload in self.fitting(census):
            tree = self.tree(workload, census.schema)
            identity = self.identity(None if workload.spine else tree)
            own = key.bind(self.name, json.dumps(identity, sort_keys=True), workload.name)
            settings = replace(settings, spine=tree)
            task = Task(
                census=census, workload=workload, settings=settings, key=own, engine=engine or Local(), out=out,
                progress=progress, resume=state, given=self.given, bureau=self.config.names == "bureau",
                replicates=self.config.replicates, keep_nmf=self.config.keep_nmf,
                approve=partial(promise.approve, specification), beside=self.fitting(census),
            )  # fmt: skip
            made = run_workload(task)
            microdata[workload.record] = made.microdata
            tables |= made.tables
            checks += made.checks
            digests.append(made.input_digest)
            made.checkpoint.finish()
        limit = promise.build_budget(self.rho_squared_spent)
        trees = [self.tree(w, census.schema) for w in self.workloads]
        tree = next(filter(None, trees), None)
        account = promise.build_ledger(
            [
                (w, None if self.is_noiseless else cost_in_multiverse(w, tree, census.schema.spine))
                for w, tree in zip(self.workloads, trees, strict=True)
            ],
            limit,
        )
        return Release(
            mechanism=self.name,
            parameters=self.parameters() | ({"spine": tree.document()} if tree else {}),
            specification=specification,
            microdata=microdata,
            tables=tables,
            files=tuple(out / f"nmf-{w.name}" for w in self.workloads)
            if out and self.config.keep_nmf
            else (),
            checks=tuple(checks),
            ledger=account,
            settings=self.settings(),
            notes=(Phrase("topdown.note.noiseless"),) if self.is_noiseless else (),
            input_digest=hashlib.sha256("".join(digests).encode()).hexdigest(),
            private=key.private and not self.is_noiseless,
            effect=self.expected_effect(census),
            schema=census.schema,
            folder=census.folder,
            labels={
                w.record: label_levels(w, dict(w.columns) if self.config.names == "bureau" else {})
                for w in self.workloads
            },
        )

    def tabulate_public(
        self,
        census: "Census",
        *,
        key: Key,
        engine: Engine | None = None,
        out: Path | None = None,
        progress: Progress | None = None,
    ) -> Release:
        """Release the histogram of every workload as records, without measurements or a solve."""
        tasks = [
            Task(
                census=census, workload=workload, settings=Settings(mode="classic"), key=key, engine=engine or Local(),
                out=out, progress=progress, bureau=self.config.names == "bureau",
            )
            for workload in self.workloads
        ]  # fmt: skip
        return Release(
            mechanism=self.name,
            parameters=self.parameters(),
            specification=self.specification(census),
            microdata={task.workload.record: tabulate_records(task) for task in tasks},
            settings=self.settings(),
            private=key.private and not self.is_noiseless,
            schema=census.schema,
            folder=census.folder,
        )

    def table(
        self,
        release: Release,
        by: Sequence[str],
        *,
        record_type: str = "",
        weight: str = "",
        engine: Engine | None = None,
    ) -> pa.Table:
        """Return counts, and with replicates the estimate, standard error and interval of each cell."""
        asked = record_type or self.record_type
        if asked in release.microdata and not weight:
            frame = join_variables(release, asked, by)
            found = tabulate_uncertainty(release, require_schema(release), by, frame, release.folder)
            if found is not None:
                return format_table(found, by)
        return Mechanism.table(self, release, by, record_type=asked, weight=weight, engine=engine)

    def list_own_tables(self, release: Release) -> Mapping[str, tuple[str, ...]]:  # noqa: ARG002
        """Return no tables of counts: the release's own tables are measurements and replicates."""
        return {}

    def table_variables(self, census: "Census") -> Mapping[str, Sequence[str]] | None:
        """Return the areas and the axes of each workload, under the names that its records have."""
        found: dict[str, Sequence[str]] = {}
        for workload in self.workloads:
            names = dict(workload.columns) if self.config.names == "bureau" else {}
            axes = (name_column(axis, names)[0] for axis in workload.histogram.axes)
            found[workload.record] = (*census.schema.spine, *workload.levels, *axes)
        return found

    def views(self, census: "Census") -> Views:
        """Return the measured queries of all workloads."""
        each = [promise.list_views(census, w, self.tree(w, census.schema)) for w in self.fitting(census)]
        return largest_views(census.domain, (view for found in each for view in found))

    def details(self) -> Mapping[str, object]:
        """Return ρ² by level, attribute and area, and inside the multiverse."""
        return self._documents({w.name: self.spine or w.spine for w in self.workloads})

    def _documents(self, trees: Mapping[str, SpineOptions | None]) -> Mapping[str, object]:
        found = {
            w.name: promise.build_document(
                w, cost_in_multiverse(w, trees[w.name]), trees[w.name], noiseless=self.is_noiseless
            )
            for w in self.workloads
        }
        return {"workloads": found}

    def preview(self, census: "Census") -> tuple[Sequence[Exhibit], Mapping[str, object]]:
        """Return exhibits and details for this census before a run; its areas may be cut into parts."""
        trees = {w.name: self.tree(w, census.schema) for w in self.workloads}
        shown = () if self.is_noiseless else tuple(
            promise.show_noise(w, options=trees[w.name]) for w in self.workloads
        )  # fmt: skip
        return shown, self._documents(trees)

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:  # noqa: ARG002
        """Show the noise by level and query: as the run measured, or before a run as the workload asks."""
        if self.is_noiseless:
            return ()
        if release is None:
            return tuple(promise.show_noise(w, options=self.spine or w.spine) for w in self.workloads)
        schema = require_schema(release)
        return tuple(
            promise.show_noise(
                w,
                release.tables.get(f"{w.name}-noise"),
                promise.find_proved_cost(w, self.tree(w, schema), schema),
                self.tree(w, schema),
            )
            for w in self.workloads
        )

    def measured_noise(
        self, census: "Census", *, key: Key, engine: Engine | None = None
    ) -> Sequence[MeasuredNoise]:
        """Return the noise from the measurement files of this run and of one without noise."""
        noisy = self.replace(keep_nmf=True, replicates=0, names="own")
        names = [workload.name for workload in self.workloads]
        return measure_noise(noisy, noisy.replace(rho_squared="inf"), census, names, key=key, engine=engine)

    def knobs(self) -> Sequence[Knob]:
        """Return what tuning may turn: the total ρ²."""
        start = self.rho_squared_spent
        if start is None:
            return ()
        return (
            Knob(
                name="rho_squared",
                effect="a larger ρ² is a larger budget and has a smaller error",
                settings=totals_to_try(start),
                turned=lambda total: self.replace(rho_squared=total, replicates=0),
            ),
        )

    def tune(self, census: "Census", goals: Sequence[Goal], caps: Sequence[Cap] = ()) -> TunedSettings | None:
        """Choose other shares of the same total, by convex optimisation of the estimate's variances."""
        if len(self.workloads) > 1 or self.is_noiseless:
            raise InputError(
                "shares are tuned for one workload with a finite budget",
                why=f"{self.settings()['workload']} has {len(self.workloads)} workloads",
                fix='name one of them: workload = "pl94-persons"',
            )
        workload = self.workloads[0]
        if self.tree(workload, census.schema):
            raise other_tree_error(workload)
        return tune_workload(census, workload, self.config.workload, goals, caps, self.mode)
