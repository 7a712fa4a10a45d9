(* Noise after the swap: part (ii) of Theorem M, for files with strata and the multiplicative premetric.

   The same draw is used on both files: the two swapped files then differ in no more records than the files themselves. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify.
From Stirred Require Import derangements algorithm one_stratum alignment strata theorem_1 attained.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Chains.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Variables (M H S : finType) (n : nat).
Local Notation record := (M * H * S)%type.
Local Notation tables := {ffun M * H * S -> nat}.
Implicit Types x u : 'I_n -> record.

Lemma dHam_differ u u' : (dHam (table u) (table u') <= #|[set i | u i != u' i]|)%N.
Proof.
rewrite -(sum_fibres [set i | u i != u' i] u); apply: leq_sum => c _; rewrite !ffunE leq_subLR.
apply: leq_trans (leq_card_setU _ _); apply: subset_leq_card; apply/subsetP => i.
by rewrite !inE => /eqP <-; rewrite eqxx andbT eq_sym; case: (u i == u' i).
Qed.

(* K N is the chance that the noise, given the swapped table N, gives an output in some set.  If it keeps the factor v per
   record within the swap's invariants, so does the chain. *)
Theorem noise_after_swap x x' (K : tables -> R) (v : R) : 1 <= v -> (forall N, 0 <= K N) ->
  (forall N N', same_invariants N N' -> K N <= v ^+ dHam N N' * K N') ->
  same_invariants (table x) (table x') -> mean p x K <= v ^+ dHam (table x) (table x') * mean p x' K.
Proof.
move=> v1 K0 near [Emh Ems].
have [|[m s]|al [r [ralh ralms rD _]]] := @lemma5 n _ _ (fun i => (x i).1) (fun i => (x' i).1)
  (fun i => ((x i).1.1, (x i).2)) (fun i => ((x' i).1.1, (x' i).2)).
- by move=> a; rewrite !n_mhE Emh.
- by rewrite !n_msE Ems.
rewrite dist_dHam in rD; pose y i : record := ((x i).1, (x (r i)).2).
have yE : (fun i => x' (al i)) =1 y.
  by move=> i; rewrite /y; case: (ralms i) => _ <-; rewrite -ralh; apply: surjective_pairing.
rewrite -rD -(mean_reorder p x' al K) (mean_ext p K yE) /mean mulr_sumr; apply: ler_sum => f _.
case: (eqVneq (law p (fun i => (x i).1.1) f) 0) => [e|lf]; first by rewrite e !mul0r mulr0.
rewrite mulrCA ler_wpmul2l ?law_ge0 //.
pose out (z : 'I_n -> record) := table (fun i => ((z i).1, swapped (fun i => (z i).1.1) (fun i => (z i).2) f i)).
have kx : same_invariants (out x) (table x) := invariants_kept lf.
have ky : same_invariants (out y) (table y) := @invariants_kept R p M H S n y f lf.
have xy : same_invariants (table x) (table y) by rewrite -(table_ext yE) table_reorder.
have kk : same_invariants (out x) (out y).
  by case: kx ky xy => a1 a2 [b1 b2] [c1 c2]; split=> *; [rewrite a1 c1 b1 | rewrite a2 c2 b2].
apply: le_trans (near _ _ kk) _.
rewrite ler_wpmul2r // ler_weexpn2l //; apply: leq_trans (dHam_differ _ _) _.
have [_ inj] := @strata_perm R p M n (fun i => (x i).1.1) f lf.
rewrite -(card_imset _ inj); apply: subset_leq_card; apply/subsetP => j /imsetP[i].
by rewrite !inE !ffunE /y /= => + ->; apply: contra => /eqP ->.
Qed.
End Chains.
