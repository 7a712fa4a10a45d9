(* Theorem 1 and Theorem B for the algorithm as it runs, redraws included, and in the rationals.

   PrRun stops after at most t draws of a selection in each stratum; its law is that of the unbounded loop times the
   chance to have stopped, which is the same in a whole universe. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Stirred Require Import derangements algorithm one_stratum alignment strata theorem_1 by_size attained four_types.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Main.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Variables (M H S : finType).
Local Notation record := (M * H * S)%type.
Local Notation tables := {ffun M * H * S -> nat}.

(* Algorithm 1 itself, with at most t draws of a selection in each stratum: the chance that every
   stratum has stopped and the published table has the property Q. *)
Definition PrRun n (t : nat) (x : 'I_n -> record) (Q : pred tables) : R :=
  \sum_(f : {ffun M -> 'S_n} |
      Q (table (fun i => ((x i).1, swapped (fun i => (x i).1.1) (fun i => (x i).2) f i))))
    \prod_c run p (stratum (fun i => (x i).1.1) c) t (f c).

(* The chance that every stratum has stopped; it is a function of the invariants and tends to 1. *)
Definition stopped (t : nat) (N : tables) : R := \prod_c (1 - lone p (n_m N c) ^+ t).

Theorem PrRunE n t (x : 'I_n -> record) Q : PrRun t x Q = stopped t (table x) * Pr p x Q.
Proof.
rewrite /PrRun /Pr /prob mulr_sumr; apply: eq_bigr => f _.
rewrite /stopped /law -big_split /=; apply: eq_bigr => c _.
by rewrite run_psa // n_mE.
Qed.

Theorem Pr_total n (x : 'I_n -> record) : Pr p x predT = 1.
Proof. exact: law_sum1. Qed.

Theorem stopped_invariant t (N N' : tables) : same_invariants N N' -> stopped t N = stopped t N'.
Proof.
case=> E _; apply: eq_bigr => c _; congr (1 - lone p _ ^+ _).
by apply: eq_bigr => h _; rewrite E.
Qed.

(* Theorem 1 for the algorithm, also when it gives up after t draws. *)
Theorem theorem1_run n t (x x' : 'I_n -> record) Q :
  same_invariants (table x) (table x') ->
  PrRun t x Q <= budget p (paper_b (table x)) ^+ dHam (table x) (table x') * PrRun t x' Q.
Proof.
move=> E; have [h _] := theorem1_paper p_gt0 p_lt1 Q E.
rewrite !PrRunE -(stopped_invariant t E) mulrCA ler_wpmul2l //.
apply: prodr_ge0 => c _; rewrite subr_ge0 -n_mE exprn_ile1 //; last exact/ltW/lone_lt1.
by rewrite /lone !mulr_ge0 ?ler0n ?exprn_ge0 // ?subr_ge0 ltW.
Qed.

(* Theorem B for stratified files, without square roots: every such L is valid. *)
Theorem theoremB n b (L : R) (x x' : 'I_n -> record) Q :
  same_invariants (table x) (table x') -> (bmax (table x) <= b)%N -> (3 < b)%N ->
  odds p <= L -> (der b)%:R <= (L * odds p) ^+ 2 * (der (b - 2))%:R ->
  Pr p x Q <= L ^+ dHam (table x) (table x') * Pr p x' Q.
Proof.
move=> E xb b4 oL VL; apply: (psa_dp p_gt0 p_lt1 Q E xb); last exact: covers_tight.
by apply: le_trans oL; apply/ltW/odds_gt0.
Qed.

(* A closed form a little below the paper's: max {o, b / o}, b at least 2. *)
Theorem theorem1_sharp n b (x x' : 'I_n -> record) Q :
  same_invariants (table x) (table x') -> (bmax (table x) <= b)%N -> (1 < b)%N ->
  Pr p x Q <= Num.max (odds p) (b%:R / odds p) ^+ dHam (table x) (table x') * Pr p x' Q.
Proof.
move=> E xb b2; apply: (psa_dp p_gt0 p_lt1 Q E xb); last exact: covers_sharp.
by rewrite le_maxr (ltW (odds_gt0 p_gt0 p_lt1)).
Qed.

(* Files of one universe have the same number of records. *)
Lemma same_size n n' (x : 'I_n -> record) (x' : 'I_n' -> record) :
  same_invariants (table x) (table x') -> n = n'.
Proof.
have e k (y : 'I_k -> record) : (\sum_m n_m (table y) m)%N = k.
  rewrite -[RHS]card_ord -cardsT -(sum_fibres _ (fun i => (y i).1.1)); apply: eq_bigr => m _.
  by rewrite -n_mE; apply: eq_card => i; rewrite !inE.
case=> E _; rewrite -(e _ x) -(e _ x'); apply: eq_bigr => m _.
by apply: eq_bigr => h _; rewrite E.
Qed.
End Main.

(* The rationals. *)
Corollary theorem1_rat (p : rat) (M H S : finType) n (x x' : 'I_n -> M * H * S) Q :
  0 < p -> p < 1 -> same_invariants (table x) (table x') ->
  Pr p x Q <= Num.max (p / (1 - p)) ((paper_b (table x)).+1%:R / (p / (1 - p))) ^+ dHam (table x) (table x') * Pr p x' Q.
Proof. by move=> p0 p1 E; have [] := theorem1_paper p0 p1 Q E. Qed.
