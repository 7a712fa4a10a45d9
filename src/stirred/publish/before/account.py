"""The account of a whole plan: what each mechanism spends in the unit of the whole, and what costs nothing."""

from stirred.publish.before.promise import PlanPromise
from stirred.publish.plan.description import Plan
from stirred.spec import Budget, Ledger, NormalizedRenyi
from stirred.spec.outputs.divergences import Approximate


def account(plan: Plan, promise: PlanPromise | None) -> Ledger | None:
    """One line for each mechanism, and one at cost 0 for each product that is computed from a release alone.

    None for a plan of one mechanism, whose own ledger says it all, and under (ε, δ), where a line needs a δ of its own.
    """
    several = len(plan.steps) > 1 or bool(plan.retabulations)
    if promise is None or not several or isinstance(promise.whole.output_premetric, Approximate):
        return None
    measure = promise.whole.output_premetric
    ledger = Ledger(output_premetric=measure)
    unit = str(promise.whole.input_premetric)
    for share in promise.shares:
        spent = Budget.sqrt(share.proved) if isinstance(measure, NormalizedRenyi) else share.proved
        ledger = ledger.spend(share.label, unit, spent)
    for step in plan.steps:
        if step.source is not None:
            ledger = ledger.spend(
                step.label, f"post-processing of {plan.steps[step.source].label}", Budget.zero()
            )
    for product in plan.retabulations:
        ledger = ledger.spend(
            product.name, f"post-processing of {plan.steps[product.source].label}", Budget.zero()
        )
    return ledger
