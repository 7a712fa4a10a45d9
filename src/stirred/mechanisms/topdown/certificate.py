"""Record how near to the optimum each level was solved, and by which method."""

from dataclasses import dataclass

from stirred.mechanisms.topdown.solve import Solution


@dataclass(slots=True)
class Certificate:
    """The solves of one level: the worst certified distance, the worst violation, how often each method ran."""

    level: str
    parents: int = 0
    distance: float = 0.0
    violation: float = 0.0
    iterations: int = 0
    multipliers: int = 0
    generic: int = 0

    def add(self, solution: Solution) -> None:
        """Count one parent."""
        self.parents += 1
        self.distance = max(self.distance, solution.distance)
        self.violation = max(self.violation, solution.violation)
        self.iterations += solution.iterations
        self.multipliers += solution.method.endswith("multipliers")
        self.generic += solution.method == "piqp"

    def join(self, other: "Certificate") -> None:
        """Add another part of the same level."""
        self.parents += other.parents
        self.distance = max(self.distance, other.distance)
        self.violation = max(self.violation, other.violation)
        self.iterations += other.iterations
        self.multipliers += other.multipliers
        self.generic += other.generic
