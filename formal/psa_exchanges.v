(* Theorem N for the PSA: the chain of exchanges of exchanges.v with the chances of the PSA in one stratum.

   The theorems of exchanges.v are about any mechanism on tables.  The chance of the PSA depends on the table only
   (Lemma 4), so it is such a mechanism.  stratified.v (strata_bound) carries factors per unit over to files with strata. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify.
From Stirred Require Import derangements algorithm one_stratum alignment strata theorem_1 by_size attained four_types exchanges.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section PSA.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Variables (n : nat) (H S : finType).
Local Notation table2 := {ffun H * S -> nat}.
Implicit Types (x : {ffun 'I_n -> H * S}) (N y : table2) (h u : 'I_n -> H) (s v : 'I_n -> S).

Definition has_table N x : bool := [forall c, #|[set i | x i == c]| == N c].
(* the chance of the event Q from a file with the table N *)
Definition from_table N (Q : pred {ffun unit * H * S -> nat}) : R :=
  if [pick x | has_table N x] is Some x then Pr p (file (fun i => (x i).1) (fun i => (x i).2)) Q else 0.

Lemma from_table_ge0 N Q : 0 <= from_table N Q.
Proof.
rewrite /from_table; case: pickP => // x _; apply: sumr_ge0 => f _; exact: law_ge0.
Qed.

Lemma from_tableE h s Q : from_table (tab2 h s) Q = Pr p (file h s) Q.
Proof.
rewrite /from_table; case: pickP => [x /forallP hx|/(_ [ffun i => (h i, s i)])]; last first.
  by move=> /negbT/forallP[] c; rewrite ffunE; apply/eqP; apply: eq_card => i; rewrite !inE ffunE.
have [c|b Eb] := @fibre_perm n _ (fun i => (h i, s i)) x.
  by have /eqP := hx c; rewrite ffunE => <-.
rewrite -(Pr_reorder p (file (fun i => (x i).1) (fun i => (x i).2)) b Q); apply: Pr_ext => i.
by rewrite /file -(Eb i).
Qed.

Lemma universe_size h s y : sameU (tab2 h s) y -> (\sum_c y c)%N = n.
Proof.
move=> /sameUP[Eh _].
have tot (z : table2) : (\sum_c z c = \sum_a rows z a)%N by rewrite /rows pair_bigA /=; apply: eq_bigr => -[].
rewrite tot; under eq_bigr do rewrite -Eh; rewrite -tot -[RHS]card_ord -cardsT -(sum_fibres _ (fun i => (h i, s i))).
by apply: eq_bigr => c _; rewrite ffunE; apply: eq_card => i; rewrite !inE.
Qed.

(* Theorem N: if one exchange inside the universe costs a factor L^2 at most, two files of it at distance d differ by a
   factor L^((2 - 2/r) d) at most, r the smaller number of types: written as powers of r. *)
Theorem psa_exchanges h s h' s' (L : R) Q : 1 <= L -> sameU (tab2 h s) (tab2 h' s') ->
  (forall u v u' v' E, sameU (tab2 h s) (tab2 u v) -> adj (tab2 u v) (tab2 u' v') ->
     Pr p (file u v) E <= L ^+ 2 * Pr p (file u' v') E) ->
  let r := width (tab2 h s) in
  Pr p (file h s) Q ^+ r <= L ^+ (r.-1.*2 * dist2 (tab2 h s) (tab2 h' s')) * Pr p (file h' s') Q ^+ r.
Proof.
rewrite /= => L1 U st; rewrite -!from_tableE; apply: (loss_per_unit from_table_ge0 Q L1 U) => y y' E Uy a.
have filed z : sameU (tab2 h s) z -> exists u v, z = tab2 u v.
  move=> Uz; have [x Ex] := file_of (universe_size Uz); exists (fun i => (x i).1), (fun i => (x i).2).
  by apply/ffunP => c; rewrite ffunE -Ex; apply: eq_card => i; rewrite !inE; case: (x i).
have Uy' : sameU (tab2 h s) y' by case/andP: a => yy' _; apply: sameU_trans yy'.
have [u [v Ey]] := filed y Uy; have [u' [v' Ey']] := filed y' Uy'.
rewrite Ey Ey' !from_tableE; apply: st; rewrite -?Ey -?Ey' //.
Qed.
End PSA.
