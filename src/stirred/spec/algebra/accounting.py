"""The budget of several parts together, each converted once from its first statement."""

from collections.abc import Sequence
from fractions import Fraction

from stirred.errors import IncompatibleError
from stirred.spec.algebra.statement import Part
from stirred.spec.domain import Domain
from stirred.spec.multiverse import Multiverse
from stirred.spec.neighbours import Neighbours, neighbours_connect
from stirred.spec.numbers.budget import Budget
from stirred.spec.outputs.divergences import Approximate, OutputPremetric, make_conversion_error
from stirred.spec.premetrics import InputPremetric
from stirred.spec.units import Constant


def account(
    parts: Sequence[Part],
    *,
    domain: Domain,
    multiverse: Multiverse,
    input_premetric: InputPremetric,
    output_premetric: OutputPremetric,
) -> tuple[Budget, tuple[str, ...]]:
    """Return the total budget of all parts under exactly this premetric (its δ included), and the rules used."""
    measure, budget, notes = convert_and_compose(
        parts, domain=domain, multiverse=multiverse, input_premetric=input_premetric, kind=output_premetric
    )
    found = measure.convert(budget, output_premetric)
    if found is None:
        raise make_conversion_error(measure, output_premetric)
    return found, notes


def convert_and_compose(
    parts: Sequence[Part],
    *,
    domain: Domain,
    multiverse: Multiverse,
    input_premetric: InputPremetric,
    kind: OutputPremetric,
) -> tuple[OutputPremetric, Budget, tuple[str, ...]]:
    """Convert each part once from its first statement, compose them in a premetric of this kind, and return it.

    Which premetric of the kind that is, its δ, is what the parts add up to.
    """
    statements: list[tuple[OutputPremetric, Budget]] = []
    notes: set[str] = set()
    for part in parts:
        if is_free(part, domain, multiverse):
            tables = ", ".join(table.words() for table in part.measures)
            notes.add(f"noise on what the invariants fix costs nothing: {tables}")
            continue
        constant = find_part_constant(part, input_premetric, domain, multiverse)
        if constant.because:
            notes.add(constant.because)
        statements.append(change_part_unit(part, constant.factor))
    measure, budget = kind.compose_parts(statements)
    return measure, budget, tuple(sorted(notes))


def is_free(part: Part, domain: Domain, multiverse: Multiverse) -> bool:
    """Return whether the invariants determine all that a part is computed from, so that it costs nothing.

    Publishing it costs nothing there (Proposition 1, with noise that does not depend on the data).
    """
    if not part.measures:
        return False
    own = () if part.multiverse is None else part.multiverse.invariants
    return bool(multiverse.refines(Multiverse.of(*part.measures, *own), domain))


def change_part_unit(part: Part, factor: Fraction) -> tuple[OutputPremetric, Budget]:
    """Return the premetric and budget of a part in another unit, valid in every universe where its ε differs."""
    measure, budget = part.output_premetric.scale(part.budget, factor)
    if part.varies is None or factor == 1 or not isinstance(part.output_premetric, Approximate):
        return measure, budget
    # δ·(e^{cε} − 1)/(e^ε − 1) is monotone in ε: it grows for c > 1 and falls for c < 1
    worst = part.varies.most if factor > 1 else part.varies.least
    if not worst.is_finite:
        raise IncompatibleError(
            f"cannot restate {part.input_premetric} with constant {factor}",
            why=f"its ε differs by universe ({part.varies.words}) and has no bound, so no δ is right in all of them",
            fix="state a bound of ε over all universes",
        )
    return part.output_premetric.scale(worst, factor)[0], budget


def find_part_constant(part: Part, to: InputPremetric, domain: Domain, multiverse: Multiverse) -> Constant:
    """Return the constant from the distance of a part to another, in the universes where the part was stated."""
    source, measure = part.input_premetric, part.output_premetric
    try:
        found = source.constant(to, domain, multiverse)
    except IncompatibleError:
        if not isinstance(source, Neighbours) or part.multiverse is None:
            raise
        # the universes of the part are the larger ones: a path may leave the smaller ones
        connected = neighbours_connect(domain, part.multiverse, source.inner)
        if not connected:
            raise
        step = source.inner.constant(to, domain, multiverse)
        found = Constant(Fraction(1), connected.because, along_paths=True) * step
    if found.along_paths and not measure.group_privacy:
        raise IncompatibleError(
            f"cannot restate {source} as {to}",
            why=f"{measure} is not known to have group privacy, so the promise for neighbours stays one for neighbours",
            fix=f"keep {source}, or state the promise under D_mult, D_nor or D_δ",
        )
    return found
