"""Choose the shares of a workload for stated goals: variances in closed form, a convex problem, exact fractions."""
