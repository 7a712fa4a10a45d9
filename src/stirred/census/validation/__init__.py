"""Report all problems of a census at once, by column, rule and count; never by value or record."""

from stirred.census.validation.check import Passes, check, find_doubts, validate
from stirred.census.validation.rules import Problem, Problems

__all__ = ["Passes", "Problem", "Problems", "check", "find_doubts", "validate"]
