r"""Synthetic censuses: realistic, seeded, with no confidential source.

Entry points::

    write_preset(preset, out, households=None, seed=1, progress=None) -> dict   # Parquet files and census.toml
    synthesise(preset, households=None, seed=1) -> Synthetic     # .tables (household, person), .schema, .geography

``progress(step, done, total)`` receives the units written so far. ``Census.of(made.schema, made.tables)`` makes a census.

Presets: ``demo`` (60,000 households, three counties), ``state`` (430,000, Rhode-Island-like), ``nation``
(130 million, 51 states, streamed; too large for ``synthesise``), ``massachusetts-1940`` (the paper's Table 1).
The same seed gives the same bytes, whatever the number of threads or chunks.

Files: ``census.toml``, ``geography.parquet``, ``areas.parquet`` (code, parent, level; not for the nation),
 ``household/SS.parquet``, ``person/SS.parquet`` (SS: the state).

**geography**: one row per block, also the many empty ones.

=============  ======================  =====================================================================
state          demo, state: string     two digits, county 5, tract 11, block group 12, block 15 (GEOID-like:
county                                 each code begins with its parent's, so a block determines all others)
tract
block_group
block          nation: int8, int16,    dense codes: state 0..50, county 0..3142, tract 0..84413, block group
               int32, int32, int32     0..239779, block 0..8132967, numbered along the spine (children of one
                                       parent are consecutive), so integer order is geographic order
geoid          nation only: int64      the GEOID-like code of the block, SSCCCTTTTTTBBBB with the block group
                                       the first digit of BBBB
place          int32                   off-spine: 0 outside any place, otherwise a code unique in the census
x, y           float32                 kilometres from a corner of the state
=============  ======================  =====================================================================

**household**: housing units and group-quarters facilities, one row each, sorted by block (nation: within state).
Zero always means "not applicable" (vacant unit or group quarters).

=================  =======  ===============================================================================
household_id       int64    unique, 1, 2, 3 … in row order
state … block      as above
kind               int8     1 occupied, 2 vacant, 3 group quarters
size               int16    persons: 0 if vacant; of a facility, its residents (at least 1)
tenure             int8     1 owned with a mortgage, 2 owned free and clear, 3 rented, 4 no rent paid
type               int8     1 married couple, 2 other family, male householder, 3 other family, female
                            householder, 4 living alone, 5 nonfamily, not alone (SafeTab-H's codes)
couple             int8     0 none, 1 married, opposite sex, 2 married, same sex, 3 unmarried partner, opposite
                            sex, 4 unmarried partner, same sex
children           int8     householder's own children under 18: 0 none, 1 under 6 only, 2 under 6 and 6-17,
                            3 6-17 only
multigenerational  int8     1 three or more generations of relatives, else 0
elderly            int8     oldest person: 0 under 60, 1 60-64, 2 65-74, 3 75 and over
sex                int8     householder: 1 male, 2 female
age                int8     householder: 15..115
race               int8     householder: 1..63 (CENRACE)
hispanic           int8     householder: 1 not Hispanic, 2 Hispanic (CENHISP)
vacancy            int8     1 for rent, 2 rented, not occupied, 3 for sale, 4 sold, not occupied, 5 seasonal,
                            6 migrant workers, 7 other
gq_type            int8     1 correctional, 2 juvenile, 3 nursing, 4 other institutional, 5 college, 6 military,
                            7 other noninstitutional
gq_code            int16    one of the 24 detailed codes 101..997 (its hundreds digit decides gq_type)
=================  =======  ===============================================================================

**person**: in the order of their households, the householder first, so ``np.repeat(household.block,
household.size)`` is the persons' geography without a join.

=================  =======  ===============================================================================
person_id          int64    unique, growing in row order (a gap between states)
household_id       int64    the unit or facility lived in
relationship       int8     0..41, TopDown's relgq: 0 householder alone, 1 householder, 2 opposite-sex spouse,
                            3 opposite-sex partner, 4 same-sex spouse, 5 same-sex partner, 6 biological, 7
                            adopted, 8 stepchild, 9 sibling, 10 parent, 11 grandchild, 12 parent-in-law, 13
                            child-in-law, 14 other relative, 15 roommate, 16 foster child, 17 other
                            nonrelative; 18..41 the 24 group-quarters codes in the order of GQ_CODES
sex                int8     1 male, 2 female
age                int8     0..115
race               int8     1..63 (CENRACE: the non-empty subsets of White, Black, AIAN, Asian, NHPI, other;
                            1..6 alone, then pairs, triples … in lexicographic order)
hispanic           int8     1 not Hispanic, 2 Hispanic
race_code_1 … _8   int16    detailed race codes (SafeTab's QRACE1..8), 0 none; at least one of every race in
                            ``race``
ethnicity_code     int16    detailed ethnicity (SafeTab's QSPAN)
=================  =======  ===============================================================================

``massachusetts-1940`` has one table, household: household_id int64, state (string, "Massachusetts"), county
(string, the paper's 14 names), size int16 (1..12, 12 stands for more), tenure (string, "owned" or "rented").
No structural zero of TopDown's person schema is broken (no spouse under 15, no nursing resident under 20 …).
"""

from stirred.census.synthetic.plans import PRESETS
from stirred.census.synthetic.writing import SyntheticCensus, synthesise, write_preset

__all__ = ["PRESETS", "SyntheticCensus", "synthesise", "write_preset"]
