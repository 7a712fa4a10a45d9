r"""What the relatives of the Permutation Swapping Algorithm sample, and what their proofs give.

Laws (one stratum of n records unless said; strata independent; "PSA(p)" is Algorithm 1 at rate p; all rates rational,
strictly between 0 and 1). A record i has hold values $h_i$ and swap values $s_i$; a permutation g gives it $s_{g(i)}$.

1a *rates by held variables.* Record i is selected with probability $p_i = \pi(h_i, \text{invariants})$, independently;
   exactly one selected: draw all again; then a uniform derangement of the selected.
1b *rates by own place too.* The same with $p_i = \pi(h_i, s_i, \text{invariants})$, read from the input file.
1c *rates by rarity.* The same with $p_i = \pi(h_i, s_i, \min(N_i, c+1), \text{invariants})$, where $N_i$ counts the
   records of the input file in i's risk cell (a function of $h$ and $s$, e.g. race in the block) and c ≥ 1 is the
   largest count that still matters (c = 1: uniqueness).
2  *imputed records stay.* PSA(p) on the records that are not imputed; imputed ones are not touched and not counted.
3  *no vacuous swap.* PSA(p) on a stratum with two hold and two swap types, conditioned on "nobody was selected, or the
   table changed": a vacuous draw (selection *and* derangement) is thrown away whole and drawn again. A selection
   without any non-vacuous derangement is therefore redrawn. Strata with one hold or one swap type are left alone.
4  *near places preferred.* Draw g by PSA(p). Pair the n records of the stratum at random (uniform; one is left over if n
   is odd), independently of g. For every pair {i, j} of two moved records with g(i) ≠ j and g(j) ≠ i there are two
   arrangements: i takes $s_{g(i)}$ and j takes $s_{g(j)}$, or the other way round. The one with the smaller total
   distance $D(s_i, \cdot) + D(s_j, \cdot)$ from the *original* places is taken with probability Λ/(1+Λ), the other with
   1/(1+Λ); 1/2 each on a tie. D is any fixed public distance of places, Λ ≥ 1 rational (Λ = 1 is PSA(p)).
5  *probabilistic unit matching.* Two swaps one after the other: first PSA(αp) in the coarser pools (strata without the
   loosened match variables), then PSA((1−α)p) in the strata, on the first one's output. A household leaves its
   stratum with probability about αp. 0 < α < 1.
6a *noisy swap key.* Each record draws a noisy match value from a fixed kernel $K(\tilde m \mid m)$; PSA(p) within the strata
   of the noisy values; the noisy values are not published.
6b *noise after the swap.* PSA(p), then a noise mechanism (discrete Gaussian, cell key) on tables of the swapped file.

Proofs: proof.md, Sections 5 and 6.
"""
