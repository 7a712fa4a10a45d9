(* No mechanism that loses as little at an exchange leaves more records at their true place than stirring does. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Stirred Require Import derangements one_stratum exchanges stirring_law stirring_moves.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Mechanism.
Variables (R : realFieldType) (T Z : finType).
(* A file of n different records and n places: record i lives at the place x i.  From the output z one reads a place for
   each record; P x z is the chance of the output z. *)
Variables (place : Z -> T -> T) (P : {perm T} -> Z -> R) (K : R).
Hypotheses (P_sum1 : forall x, \sum_z P x z = 1) (K_gt0 : 0 < K).
(* At an exchange the mechanism loses at most ln K. *)
Hypothesis loss : forall x i j z, P x z <= K * P (tperm i j * x)%g z.
Local Notation files := (#|{perm T}|%:R : R).
Implicit Types (x : {perm T}) (i j c : T).

(* the chance that record i is published at the place c *)
Definition at_place x i c : R := \sum_(z | place z i == c) P x z.

Lemma at_place_sum1 x i : \sum_j at_place x i (x j) = 1.
Proof.
rewrite -(P_sum1 x) (partition_big (fun z => place z i) xpredT) //= [RHS](reindex_inj (@perm_inj _ x)) /=.
by apply: eq_bigr.
Qed.

Lemma at_other i j : \sum_x at_place x i (x i) <= K * \sum_x at_place x i (x j).
Proof.
rewrite [in X in _ <= X](reindex_inj (mulgI (tperm i j))) /= mulr_sumr; apply: ler_sum => x _.
by rewrite permM tpermR mulr_sumr; apply: ler_sum => z _; apply: loss.
Qed.

Let d_gt0 : 0 < K + #|T|.-1%:R. Proof. by rewrite ltr_paddr ?ler0n. Qed.

(* Each record, on average over all files. *)
Lemma no_better_record i : \sum_x at_place x i (x i) <= files * (K / (K + #|T|.-1%:R)).
Proof.
rewrite mulrA ler_pdivl_mulr // mulrDr; set S := \sum_x _.
have -> : files = S + \sum_(j | j != i) \sum_x at_place x i (x j).
  have -> : files = \sum_(x : {perm T}) 1 by rewrite sumr_const.
  rewrite (eq_bigr (fun x => \sum_j at_place x i (x j))); last by move=> x _; rewrite at_place_sum1.
  by rewrite exchange_big (bigD1 i).
rewrite mulrDl ler_add2l [X in _ <= X]mulr_suml.
have -> : S * #|T|.-1%:R = \sum_(j | j != i) S.
  rewrite sumr_const mulr_natr; congr (_ *+ _); rewrite -(cardC1 i).
  exact: eq_card.
by apply: ler_sum => j _; rewrite mulrC; apply: at_other.
Qed.

(* Theorem 4: the mean share of records at their true place. *)
Theorem no_better : (0 < #|T|)%N ->
  (\sum_x \sum_z P x z * #|[set i | place z i == x i]|%:R) / (files * #|T|%:R) <= K / (K + #|T|.-1%:R).
Proof.
move=> T0; have f0 : 0 < files * #|T|%:R.
  by rewrite mulr_gt0 // ltr0n //; apply/card_gt0P; exists 1%g.
rewrite ler_pdivr_mulr //.
have -> : \sum_x \sum_z P x z * #|[set i | place z i == x i]|%:R = \sum_i \sum_x at_place x i (x i).
  rewrite [RHS]exchange_big; apply: eq_bigr => x _ /=; rewrite /at_place.
  rewrite (eq_bigr (fun z => \sum_i if place z i == x i then P x z else 0)); last first.
    move=> z _; rewrite -big_mkcond -sum1_card natr_sum mulr_sumr; apply: eq_big => [i|i _]; first by rewrite inE.
    by rewrite mulr1.
  by rewrite exchange_big; apply: eq_bigr => i _; rewrite -big_mkcond.
apply: (@le_trans _ _ (\sum_(i : T) files * (K / (K + #|T|.-1%:R)))).
  by apply: ler_sum => i _; apply: no_better_record.
by rewrite sumr_const -[X in X <= _]mulr_natr [X in X * _ <= _]mulrC -mulrA.
Qed.
End Mechanism.

Section Laws.
Variables (R : realFieldType) (T : finType) (K : R) (q : {perm T} -> R).
Hypotheses (q_sum1 : \sum_g q g = 1) (K_gt0 : 0 < K) (T0 : (0 < #|T|)%N).
(* A law on permutations that loses at most ln K at an exchange. *)
Hypothesis loss : forall g i j, q g <= K * q (g * tperm i j)%g.

Corollary no_better_law : (\sum_g q g * #|[set i | g i == i]|%:R) / #|T|%:R <= K / (K + #|T|.-1%:R).
Proof.
pose P (x z : {perm T}) := q (z * x^-1)%g.
have P1 (x : {perm T}) : \sum_z P x z = 1.
  by rewrite -[RHS]q_sum1 [RHS](reindex_inj (mulIg (x^-1)%g)).
have Pl x i j z : P x z <= K * P (tperm i j * x)%g z by rewrite /P invMg tpermV mulgA; apply: loss.
have := @no_better R T _ (fun (z : {perm T}) i => z i) P K P1 K_gt0 Pl T0.
have -> : \sum_x \sum_z P x z * #|[set i | z i == x i]|%:R = #|{perm T}|%:R * \sum_g q g * #|[set i | g i == i]|%:R.
  rewrite mulr_natl -sumr_const; apply: eq_bigr => x _; rewrite (reindex_inj (mulIg x)); apply: eq_bigr => g _.
  rewrite /P mulgK; congr (_ * _%:R); apply: eq_card => i; rewrite !inE permM.
  by rewrite (inj_eq perm_inj).
have f0 : #|{perm T}|%:R != 0 :> R by rewrite pnatr_eq0 -lt0n; apply/card_gt0P; exists 1%g.
by rewrite -mulf_div mulfV // mul1r.
Qed.
End Laws.

Section Stirring.
Variables (R : realFieldType) (T : finType) (lam : R).
Hypotheses (lam_ge1 : 1 <= lam) (T0 : (0 < #|T|)%N).

(* Stirring loses at most ln lam, and attains the bound. *)
Theorem stirring_share :
  (forall (g : {perm T}) i j, stir lam setT g <= lam * stir lam setT (g * tperm i j)%g) /\
  (\sum_(g : {perm T}) stir lam setT g * #|[set i | g i == i]|%:R) / #|T|%:R = lam / (lam + #|T|.-1%:R).
Proof.
have lam_gt0 : 0 < lam by apply: lt_le_trans lam_ge1; rewrite ltr01.
split=> [g i j|].
  have := @stir_exchange R lam lam_gt0 T setT g i j (in_setT i) (in_setT j).
  by rewrite (_ : factor lam = lam) // /factor; apply/max_idPl; apply: le_trans lam_ge1; rewrite invf_le1.
have := mean_stay lam_gt0 (setT : {set T}); rewrite cardsT.
rewrite (eq_bigr (fun g : {perm T} => stir lam setT g * #|[set i | g i == i]|%:R)) => [->|g _]; last first.
  by congr (_ * _%:R); apply: eq_card => i; rewrite !inE.
by rewrite mulrC mulKf // pnatr_eq0 -lt0n.
Qed.
End Stirring.

Section Truth.
Variables (R : realFieldType) (X : finType) (d : X -> X -> nat) (P : X -> X -> R) (K C : R).
Hypotheses (P_sum1 : forall x, \sum_y P x y = 1) (K_gt0 : 0 < K) (C_gt0 : 0 < C).
(* A mechanism on the data sets X that loses at most ln K for a unit of the distance d; the weights K^-d have the same sum C
   for every data set. *)
Hypotheses (loss : forall x x' y, P x' y <= K ^+ d x x' * P x y) (C_sum : forall y, \sum_x K ^- d x y = C).

(* The truth is published with chance 1/C at most, on average: the chance that the law K^-d / C has. *)
Theorem truth_most : (\sum_x P x x) / #|X|%:R <= C^-1.
Proof.
case: (posnP #|X|) => [->|X0]; first by rewrite invr0 mulr0 invr_ge0 ltW.
rewrite ler_pdivr_mulr ?ltr0n // ler_pdivl_mull // mulr_sumr.
have -> : #|X|%:R = \sum_y \sum_x P x y :> R.
  by rewrite exchange_big (eq_bigr (fun=> 1)) ?sumr_const.
apply: ler_sum => y _; rewrite -(C_sum y) mulr_suml; apply: ler_sum => x _.
by rewrite ler_pdivr_mull ?exprn_gt0.
Qed.
End Truth.
