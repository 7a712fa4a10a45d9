"""Define the contract of a mechanism: what it promises, releases, tabulates, shows and lets one tune.

Callers use this class and the registry. A test finds modules outside ``mechanisms`` that name a mechanism, and lists the
few that may, each with its reason (``tests/unit/test_house.py``).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass
from decimal import Decimal
from fractions import Fraction
from inspect import get_annotations
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pyarrow as pa

from stirred.census import Census
from stirred.chance import Key
from stirred.engine import Engine, Local, Progress
from stirred.errors import BudgetError, InputError, require_kind
from stirred.mechanisms.config import MechanismConfig, make_signature, parse_settings, to_plan_values
from stirred.mechanisms.contents import Law, MeasuredNoise
from stirred.mechanisms.effect import ExpectedEffect, MeasuredCoverage
from stirred.mechanisms.exhibits import Exhibit
from stirred.mechanisms.proposal import Advice, Cap, Goal, Proposal
from stirred.mechanisms.release import MEASURE_COLUMNS, Exchange, Guard, Release, count
from stirred.spec import Specification
from stirred.spec.conversions import Conversion
from stirred.spec.invariants import Views, released_columns

if TYPE_CHECKING:
    from stirred.census import Schema


# Refuse arguments of the wrong type before anything is read, with the words that would be right.


def require_inputs(census: object, engine: object) -> None:
    """Refuse what is not a census (a path, a table), and what cannot run a mechanism (the name of an engine)."""
    path = isinstance(census, str | Path)
    fix = (
        'read it first: st.read("census.toml")'
        if path
        else "make one of tables: st.Census.of(schema, tables)"
    )
    require_kind("census", census, Census, wanted="a Census", fix=fix)
    if engine is not None and not all(
        hasattr(engine, name) for name in ("map", "fits", "census", "exchange")
    ):
        raise InputError(
            "engine is not an engine",
            why=f"it is of type {type(engine).__name__}",
            fix="engine=st.Local(), or st.Spark(session); nothing is this machine",
        )


def require_key(key: object) -> None:
    """Refuse what is not a key: a seed, a text, nothing."""
    require_kind(
        "key",
        key,
        Key,
        wanted="a Key",
        fix="key=st.Key.fresh(), or st.Key.for_tests(1) for what is not published",
    )


def check_inputs(census: Census, key: Key, engine: Engine | None) -> Census:
    """Check census, key and engine, and return the census with its records checked against the schema."""
    require_inputs(census, engine)
    require_key(key)
    return census.check()


QUARTER_STEPS = (
    Fraction(1),
    Fraction(6, 5),
    Fraction(7, 5),
    Fraction(5, 3),
)  # about powers of the fourth root of 2
MAX_TUNING_STEPS = 32  # quarters of a doubling that tuning goes up and down
RestatePromise = Callable[["Mechanism"], Specification]


def weight_error(name: str) -> InputError:
    """Return the error of a mechanism whose tables cannot be weighted."""
    return InputError(
        f"{name} makes no weighted tables",
        why="it knows no law by which the error of a weighted total could be computed",
        fix="leave weight out of the table, or swap with a mechanism that has closed forms, such as permutation-swapping",
    )


class Mechanism(ABC):
    """An algorithm from a census to a release that states its specification first.

    A subclass gives ``name``, ``config`` and the two abstract methods; every other method has a default. Its settings are
    declared once, in the class that ``config`` is annotated with: the keywords of the constructor, the keys of a plan, the
    flags of the command, the fields of the form, ``settings()`` and ``parameters()`` come from it.

    ``mechanism.rate`` is ``mechanism.config.rate`` where the mechanism has no attribute of that name.
    """

    name: ClassVar[str]
    Config: ClassVar[type[MechanismConfig]]  # the class of ``config``
    config: MechanismConfig
    seconds_per_million: ClassVar[float] = 10.0  # records, on two cores: for the estimate of plan check
    bytes_per_record: ClassVar[int] = 100
    conversion: ClassVar[Conversion | None] = (
        None  # the factors from a record added or removed to one changed, each with its theorem
    )
    # how often its intervals held the true number, with the sources; a built-in mechanism gives it in its registration,
    # which is read without importing the mechanism
    measured_coverage: ClassVar[tuple[MeasuredCoverage, ...]] = ()

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        config = get_annotations(cls).get("config")
        if config is not None:
            cls.Config = config
            cls.__signature__ = make_signature(config)  # type: ignore[attr-defined]

    def __init__(self, **settings: Any) -> None:
        """Validate the settings and keep them; tuples, paths and fractions are as good as what a plan has."""
        config = parse_settings(
            self.Config, to_plan_values(settings), what=type(self).__name__, inexact=BudgetError
        )
        object.__setattr__(self, "config", config)
        self.check_settings()

    def check_settings(self) -> None:  # noqa: B027
        """Refuse settings that contradict each other, before any census is seen."""

    if not TYPE_CHECKING:  # the source reads typed settings from ``config``

        def __getattr__(self, name):
            """Return a setting by its name."""
            if name in type(self).Config.model_fields:
                return getattr(self.config, name)
            raise AttributeError(f"{type(self).__name__} has no attribute {name}")

        def __setattr__(self, name, value):
            """Refuse: a promise that was stated holds for these settings."""
            raise FrozenInstanceError(f"cannot set {name}: make another mechanism with replace({name}=…)")

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Mechanism) and type(other) is type(self) and self.settings() == other.settings()
        )

    def __hash__(self) -> int:
        return hash((type(self), repr(self.settings())))

    def __repr__(self) -> str:
        usual = type(self.config).model_fields
        changed = {
            name: value
            for name, value in self.config
            if value != usual[name].get_default(call_default_factory=True)
        }
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    @classmethod
    def of(cls, config: MechanismConfig) -> Self:
        """Return the mechanism with these settings."""
        return cls(**{name: getattr(config, name) for name in type(config).model_fields})

    def replace(self, **changes: Any) -> Self:
        """Return the same mechanism with other values of some settings."""
        return type(self)(**{**dict(self.config), **changes})

    @classmethod
    def propose(cls, schema: "Schema") -> Proposal | None:  # noqa: ARG003
        """Return settings and tables that fit a schema, with a reason each, or None for a template."""
        return None

    @classmethod
    def advise(cls, schema: "Schema") -> Advice | None:  # noqa: ARG003
        """Return whether a new plan for this schema should begin with it rather than another, or None: it says nothing."""
        return None

    @property
    def record_type(self) -> str:
        """Return the record type that questions about a release are about, unless they name one."""
        return str(getattr(self, "record", "household"))

    @property
    def published_without_guarantee(self) -> str:
        """Return the reason for publishing without a finite budget; empty means that it is refused."""
        return str(getattr(self, "without_guarantee", ""))

    @property
    def is_noiseless(self) -> bool:
        """Return whether the settings add no noise: a rehearsal, written with a key for tests only."""
        return False

    def parameters(self) -> dict[str, object]:
        """Return the canonical JSON parameters, for the receipt and the names of the streams."""
        return self.config.parameters()

    def settings(self) -> dict[str, object]:
        """Return the keys of a [[mechanism]] that make this mechanism again."""
        return self.config.settings()

    def refuse(self, census: "Census", engine: Engine | None = None) -> None:  # noqa: B027
        """Raise what can be refused before a key or a folder exists; ``specification``, called next, refuses the rest."""

    def refuse_promise(  # noqa: B027
        self, census: "Census", specification: Specification, engine: Engine | None = None
    ) -> None:
        """Raise if the stated promise holds but protects nothing; called after ``specification``, before a key exists."""

    def guards(
        self,
        census: "Census",  # noqa: ARG002
        *,
        engine: Engine | None = None,  # noqa: ARG002
        trial: bool = True,  # noqa: ARG002
    ) -> Sequence[Guard]:
        """Run the guards before a release and return their findings, for the office only."""
        return ()

    def released_columns(self, census: "Census") -> Mapping[str, Sequence[str]]:
        """Return the columns of the census that leave, by record type.

        Guards judge these columns and no others. They are those of ``views``; a mechanism that releases columns as they
        stand in the files names them here, identifiers too, and builds its views from them.
        """
        return released_columns(census.domain, self.views(census))

    def table_variables(self, census: "Census") -> Mapping[str, Sequence[str]] | None:
        """Return the variables that tables of each record type can have, or None where only the release shows them.

        They are the released columns, unless the output has names of its own. Nothing is promised or guarded by them.
        """
        return self.released_columns(census) if self.views(census) else None

    def views(self, census: "Census") -> Views:  # noqa: ARG002
        """Return the tables of the census that the release is computed from; here they are not stated.

        Three methods say what leaves: ``views`` as tables of the census, which ``specification`` states as ``released``
        (odds, universe and report use no other column of the schema); ``released_columns`` as columns, which guards judge;
        ``table_variables`` as variables of the output, by which tables can be asked for. Not stated means that every
        variable may be released.
        """
        return ()

    @abstractmethod
    def specification(self, census: "Census", *, engine: Engine | None = None) -> Specification:
        """Return the promise before anything is released; read at most counts that are invariants."""

    def expected_effect(self, census: "Census", *, engine: Engine | None = None) -> ExpectedEffect | None:  # noqa: ARG002
        """Return how far a release is expected to differ from the records, from settings and invariants alone.

        None where it is not known: for a mechanism of another package that does not state it, and where what is read is
        a release already.
        """
        return None

    def state_promise(
        self, census: "Census", *, engine: Engine | None = None
    ) -> tuple[Specification, ExpectedEffect | None]:
        """Return the promise and the expected effect; a mechanism may read the census once for both."""
        return self.specification(census, engine=engine), self.expected_effect(census, engine=engine)

    def prepare_restating(self, census: "Census", *, engine: Engine | None = None) -> "RestatePromise":
        """Return a function that states the promise of this mechanism at other values of a knob."""
        return lambda other: other.specification(census, engine=engine)

    @abstractmethod
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
        """Run; with ``out`` the microdata are streamed to Parquet there instead of being held in memory.

        In ``state`` a mechanism may keep what it finished; the same run, interrupted, takes it up from there.
        """

    def tabulate_public(
        self,
        census: "Census",
        *,
        key: Key,
        engine: Engine | None = None,
        out: Path | None = None,
        progress: Progress | None = None,
    ) -> Release:
        """Release the same tables and records of a file that is public already, without noise."""
        return self.release(census, key=key, engine=engine, out=out, progress=progress)

    def require_weight(self, weight: str, *, record_type: str, census: "Census") -> None:  # noqa: ARG002
        """Raise if tables cannot be weighted by this variable; called before a key exists, for each weighted table."""
        raise weight_error(self.name)

    def table(
        self,
        release: Release,
        by: Sequence[str],
        *,
        record_type: str = "",
        weight: str = "",
        engine: Engine | None = None,
    ) -> pa.Table:
        """Return counts by variables, with estimate, standard error and interval where the error is known.

        With a ``weight`` these are about the weighted total, and ``weighted`` is the total of the released records.
        """
        if weight:
            raise weight_error(self.name)
        return count(release, by, record_type=record_type or self.record_type, engine=engine or Local())

    def list_own_tables(self, release: Release) -> Mapping[str, tuple[str, ...]]:
        """Return the release's own tables of counts with their variables; a packet publishes them too."""
        return {
            name: tuple(column for column in table.column_names if column not in MEASURE_COLUMNS)
            for name, table in release.tables.items()
            if "count" in table.column_names
        }

    def exact_law(self, census: "Census") -> Law | None:  # noqa: ARG002
        """Return the probability of every output of a small census, or None where it is not known in fractions."""
        return None

    def replicate(self, census: "Census", copies: int) -> "tuple[Mechanism, Census, str] | None":  # noqa: ARG002
        """Return (mechanism, census with copies, copy column): one run then yields `copies` independent draws.

        None where copies of the records in one census would affect each other; audits then call ``release`` many times.
        """
        return None

    def measured_noise(
        self,
        census: "Census",  # noqa: ARG002
        *,
        key: Key,  # noqa: ARG002
        engine: Engine | None = None,  # noqa: ARG002
    ) -> Sequence[MeasuredNoise]:
        """Return the laws claimed for the noise of one run on an invented census, for audits only.

        An audit takes the noise itself from ``release`` and from true counts; see ``MeasuredNoise``.
        """
        return ()

    def without_noise(self) -> "Mechanism | None":
        """Return the same mechanism without noise, whose numbers audits subtract, or None."""
        return None

    def keeps(self, by: Sequence[str], schema: "Schema") -> bool:  # noqa: ARG002
        """Return whether a table of these variables is known to be exact in every release."""
        return False

    def exchange(self, release: Release) -> Exchange | None:  # noqa: ARG002
        """Return the public law by which released records changed places, or None if unknown."""
        return None

    def details(self) -> Mapping[str, object]:
        """Return facts about the promise beyond its specification, as JSON for programs."""
        return {}

    def exhibits(self, release: Release | None, *, engine: Engine | None = None) -> Sequence[Exhibit]:  # noqa: ARG002
        """Return findings for the report from public numbers; without a release, those known before one."""
        return ()

    def preview(self, census: "Census") -> tuple[Sequence[Exhibit], Mapping[str, object]]:  # noqa: ARG002
        """Return the exhibits and details that can be shown of this census before a run."""
        return self.exhibits(None), self.details()

    def knobs(self) -> Sequence["Knob"]:
        """Return the settings that tuning may turn; the first is turned unless another is named."""
        return ()

    def tune(
        self,
        census: "Census",  # noqa: ARG002
        goals: Sequence[Goal],  # noqa: ARG002
        caps: Sequence[Cap] = (),  # noqa: ARG002
    ) -> "TunedSettings | None":
        """Return settings that reach goals at the same budget, in closed form, from public facts only.

        None where the mechanism knows no closed form: then ``knobs`` are tried on a stand-in.
        """
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """A setting that tuning may turn: its plan key, the values to try, and the mechanism at each of them.

    ``settings`` run from the least error, at the largest budget, to the most error, at the smallest budget.
    """

    name: str
    effect: str  # what turning it does to budget and error, in one sentence
    settings: tuple[Fraction, ...]
    turned: Callable[[Fraction], Mechanism]


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedError:
    """The expected absolute error of a requested table, before and after tuning."""

    table: str
    limit: float
    before: float
    after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedCost:
    """The ε of a change of one record, before and after tuning."""

    what: str
    before: Decimal
    after: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedSettings:
    """Keys of a [[mechanism]] that reach goals, the files that they name, and what was bought at what cost."""

    settings: Mapping[str, str]
    files: Mapping[str, str]
    errors: tuple[TunedError, ...]
    costs: tuple[TunedCost, ...]
    sentence: str
    read: str  # what of the census was used


def totals_to_try(start: Fraction) -> tuple[Fraction, ...]:
    """Return totals in steps of a quarter of a doubling, the largest first, as readable numbers."""
    return tuple(
        Fraction(f"{float(start * Fraction(2) ** (step // 4) * QUARTER_STEPS[step % 4]):.4g}")
        for step in range(MAX_TUNING_STEPS, -MAX_TUNING_STEPS - 1, -1)
    )
