"""The account of a whole plan: what each mechanism spends in the unit of the whole, and what costs nothing."""

from stirred.publish.before.promise import PlanPromise
from stirred.publish.plan.description import Plan
from stirred.spec import Budget, Ledger, NormalizedRenyi
from stirred.spec.outputs.divergences import Approximate


def build_account(plan: Plan, promise: PlanPromise | None) -> Ledger | None:
    """Return the ledger of a plan: one line per mechanism, and one at cost 0 per product of a release.

    A packet from outside the plan that a mechanism reads has a line too. None for a plan of one mechanism that reads no
    packet, whose own ledger says it all, and under (ε, δ), where a line needs a δ of its own.
    """
    if promise is None:
        return None
    several = len(plan.steps) > 1 or bool(plan.retabulations) or promise.together is not None
    whole = promise.whole if promise.together is None else promise.together.specification
    if not several or isinstance(whole.output_premetric, Approximate):
        return None
    measure = whole.output_premetric
    ledger = Ledger(output_premetric=measure)
    unit = str(whole.input_premetric)
    shares = [(share.label, share.proved) for share in promise.shares]
    for label, amount in shares if promise.together is None else promise.together.lines:
        spent = Budget.sqrt(amount) if isinstance(measure, NormalizedRenyi) else amount
        ledger = ledger.spend(label, unit, spent)
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
