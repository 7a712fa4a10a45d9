"""Refuse settings that contradict each other, and a census that PHSafe cannot tabulate."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING

from stirred.errors import BudgetError, InputError, did_you_mean, require_kind
from stirred.mechanisms.phsafe.counting.tables import TABULATION_BY_NAME, TABULATIONS
from stirred.mechanisms.phsafe.counting.variables import HOUSEHOLD_VARIABLES, PERSON_VARIABLES
from stirred.mechanisms.phsafe.presets import PRESETS
from stirred.mechanisms.safetab.noise import Definition

if TYPE_CHECKING:
    from stirred.census import Census

PUERTO_RICO_CODE = "72"


def require_kinds(
    *, preset: object, definition: object, neighbours: object, states: object, state: object
) -> None:
    """Refuse settings of a wrong type, and names that are not among the choices."""
    choices = (
        ("preset", preset, tuple(PRESETS)),
        ("definition", definition, ("zcdp", "puredp")),
        ("neighbours", neighbours, ("added-or-removed", "changed", "household")),
    )
    for name, value, known in choices:
        if value not in known:
            raise InputError(
                f"{name} is none of the choices",
                why=f"it is one of {', '.join(map(repr, known))}",
                fix=f"{name}={known[0]!r}",
            )
    require_kind("state", state, str, wanted="a name", fix='state="state"')
    if (
        isinstance(states, str)
        or not isinstance(states, Sequence)
        or not all(isinstance(name, str) for name in states)
    ):
        raise InputError(
            "states is not a list of texts", why="it lists the states that are tabulated", fix='states=["06"]'
        )


def require_tables(*, budget: object, tau: object, columns: object) -> None:
    """Refuse budgets, τ and columns that are not tables of names with values of the right kind."""
    examples = {"budget": '{"PH2": "0"}', "tau": '{"PH3": 6}', "columns": '{"person.age": "years"}'}
    for name, value in (("budget", budget), ("tau", tau), ("columns", columns)):
        fits = _is_whole if name == "tau" else _is_text
        good = isinstance(value, Mapping) and all(_is_text(key) and fits(item) for key, item in value.items())
        if value is not None and not good:
            raise InputError(
                f"{name} is not as it should be",
                why="it gives a whole number of at least 1 for each table"
                if name == "tau"
                else "it gives a text for each name",
                fix=f"{name}={examples[name]}",
            )


def require_totals(
    definition: Definition, *, preset: str, rho_squared: str | None, epsilon: str | None
) -> None:
    """Refuse a total that is no exact positive number, or that is not the budget of the definition."""
    for name, value in (("rho_squared", rho_squared), ("epsilon", epsilon)):
        if isinstance(value, float):
            raise BudgetError(f"{name} is a float", why="floats are not exact", fix=f'{name}="2"')
        if value is not None and str(value) != "inf" and _parse_exact(name, value) <= 0:
            raise BudgetError(
                f"{name} must be positive",
                why="with a budget of 0 nothing can be measured",
                fix=f'{name}="2"',
            )
    noiseless = str(epsilon) == "inf"
    given, other = ("rho_squared", "epsilon") if definition == "puredp" else ("epsilon", "rho_squared")
    if {"rho_squared": rho_squared, "epsilon": epsilon}[given] is not None and not noiseless:
        raise BudgetError(
            f"{given} is not the budget of {definition}",
            why="zcdp counts ρ², puredp counts ε",
            fix=f"give {other}, or change definition",
        )
    if definition == "puredp" and preset and epsilon is None:
        raise BudgetError(
            "the preset's budgets are no ε",
            why=f"{preset} states ρ², which zcdp counts",
            fix='give the total: epsilon = "2", or preset = "" with every budget',
        )


def require_names(*, tau: Iterable[str], columns: Iterable[str], states: Sequence[str]) -> None:
    """Refuse names of tables, variables and states that do not exist or do not belong together."""
    people = [table.name for table in TABULATIONS if table.persons]
    for name in tau:
        if name not in people:
            raise InputError(
                f"there is no τ of {name!r}",
                why="it names no table of persons",
                fix=did_you_mean(name, people),
            )
    known = [*HOUSEHOLD_VARIABLES, *(f"person.{name}" for name in PERSON_VARIABLES)]
    for name in columns:
        if name not in known:
            raise InputError(
                f"there is no variable {name!r}",
                why="PHSafe does not read it",
                fix=did_you_mean(name, known),
            )
    if PUERTO_RICO_CODE in states and len(states) > 1:
        raise InputError(
            "Puerto Rico is a run of its own",
            why="it is not part of the nation, whose total would include it",
            fix=f'states = ["{PUERTO_RICO_CODE}"], and another run for the states',
        )


def require_tau(amounts: Iterable[tuple[str, str]], tau: Mapping[str, int]) -> None:
    """Refuse a table of persons that has a budget and no τ."""
    lacking = sorted({table for table, _ in amounts if TABULATION_BY_NAME[table].persons} - set(tau))
    if lacking:
        raise InputError(
            f"{lacking[0]} has no τ",
            why="how many persons of a household count decides the noise",
            fix=f"tau = {{ {lacking[0]} = 10 }}",
        )


def require_records(census: "Census", state: str) -> None:
    """Refuse a census without households, persons, their link, or the states."""
    for name in ("household", "person"):
        if name not in census.schema.record_types:
            raise InputError(
                f"the census has no {name} records",
                why="PHSafe counts persons by their household",
                fix="give a census with both, and a link from persons to households",
            )
    if not census.schema.record("household").id or not census.schema.record("person").household:
        raise InputError(
            "persons are not linked to households",
            why="PHSafe counts persons by their household",
            fix='name the columns in census.toml: id = "…" of households, household = "…" of persons',
        )
    there = census.columns("household")
    if state not in there:
        raise InputError(
            f"household records have no {state}",
            why="PHSafe tabulates states, and the sum of them",
            fix=did_you_mean(state, there),
        )


def choose_states(found: tuple[str, ...], wanted: Sequence[str]) -> tuple[str, ...]:
    """Return the states that are tabulated, of those that there are; both lists are public."""
    unknown = [name for name in wanted if name not in found]
    if unknown:
        raise InputError(
            f"no housing unit lies in {unknown[0]}",
            why="states names it, and the census has no such state",
            fix=did_you_mean(unknown[0], found),
        )
    chosen = tuple(name for name in found if name in wanted) if wanted else found
    if not chosen:
        raise InputError(
            "there is no state to tabulate",
            why="no household record has one",
            fix="give a census that has households",
        )
    if not wanted and PUERTO_RICO_CODE in chosen and len(chosen) > 1:
        raise InputError(
            "the census holds states and Puerto Rico",
            why="Puerto Rico is a run of its own, and is not part of the nation",
            fix="--states with the states, and another run with --states 72",
        )
    return chosen


def _parse_exact(name: str, value: object) -> Fraction:
    try:
        return Fraction(str(value))
    except (ValueError, ZeroDivisionError):
        raise BudgetError(
            f"{name} is not an exact number", why="a budget is a text such as 1/2 or 0.5", fix=f'{name}="2"'
        ) from None


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
