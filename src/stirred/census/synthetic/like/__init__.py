"""Make a stand-in for any census from its codebook and public figures, never from its records."""

from stirred.census.synthetic.like.population import StandInFigures, make_stand_in
from stirred.census.synthetic.like.writing import write_stand_in

__all__ = ["StandInFigures", "make_stand_in", "write_stand_in"]
