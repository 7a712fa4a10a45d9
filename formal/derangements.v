(* Derangement numbers d(k): how they grow, and what they count.

   der k is d(k), the number of permutations of k points that fix none.  The proof goes through the identity
   sum_j C(k,j) d(j) = k!: every permutation deranges exactly the set of points it moves.  (R1) to (R4) are those of
   swapping/proof.md, Section 1; der_pow is the paper's Lemma 6. *)
From mathcomp Require Import all_ssreflect all_fingroup zify.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Fixpoint der (k : nat) : nat :=
  if k is k1.+1 then (if k1 is k2.+1 then k1 * (der k1 + der k2) else 0) else 1.

Lemma der0 : der 0 = 1. Proof. by []. Qed.
Lemma der1 : der 1 = 0. Proof. by []. Qed.
Lemma derSS k : der k.+2 = k.+1 * (der k.+1 + der k). Proof. by []. Qed.
Arguments der : simpl never.

(* The sum over all subset sizes: every permutation deranges the set it moves. *)
Definition dsum k := \sum_(j < k.+1) 'C(k, j) * der j.
Definition dsum1 k := \sum_(j < k.+1) 'C(k, j) * der j.+1.

Lemma dsumS k : dsum k.+1 = dsum k + dsum1 k.
Proof.
rewrite /dsum /dsum1 big_ord_recl bin0 [X in _ = X + _]big_ord_recl bin0 -addnA; congr (_ + _).
rewrite (eq_bigr (fun i : 'I_k.+1 => 'C(k, i.+1) * der i.+1 + 'C(k, i) * der i.+1)); last first.
  by move=> i _; rewrite lift0 binS mulnDl.
rewrite big_split /=; congr (_ + _).
by rewrite big_ord_recr /= bin_small // mul0n addn0.
Qed.

Lemma dsum1E k : dsum1 k = k * dsum k.
Proof.
elim: k => [|k IH]; first by rewrite /dsum1 big_ord_recl big_ord0.
rewrite dsumS /dsum1 big_ord_recl muln0 add0n.
rewrite mulnDr /dsum /dsum1 !big_distrr -big_split /=.
apply: eq_bigr => i _; rewrite /bump leq0n add1n derSS mulnA [_ * i.+1]mulnC -mul_bin_diag /=.
by rewrite -mulnA !mulnDr addnC !mulnA.
Qed.

Lemma dsumE k : dsum k = k`!.
Proof.
elim: k => [|k IH]; first by rewrite /dsum big_ord_recl big_ord0.
by rewrite dsumS dsum1E -mulSn IH factS.
Qed.

Lemma der_gt0 k : k != 1 -> 0 < der k.
Proof.
have H m : 0 < der m.+2.
  by elim: m => [//|m IH]; rewrite derSS muln_gt0 /= addn_gt0 IH.
by case: k => [|[|k]].
Qed.

Lemma der_mono1 k : 1 < k -> der k <= der k.+1.
Proof.
case: k => [|[|k]] // _; rewrite [der k.+3]derSS.
by rewrite (leq_trans (leq_addr (der k.+1) _)) // leq_pmull.
Qed.

(* (R4) *)
Lemma der_mono k l : k != 1 -> l != 1 -> k <= l -> der k <= der l.
Proof.
move=> k1 l1 kl; case: k k1 kl => [|[|k]] //= _ kl; first exact: der_gt0.
rewrite -(subnK kl); elim: (l - k.+2) => [|m IH]; first by rewrite add0n.
by apply: (leq_trans IH); rewrite addSn; apply: der_mono1; rewrite addnS addnS.
Qed.

Lemma der_leS k : k != 1 -> der k.+1 <= k.+2 * der k.
Proof.
case: k => [|[|k]] // _; rewrite [der k.+3]derSS [k.+4 * _](_ : _ = k.+2 * der k.+2 + 2 * der k.+2); last first.
  by rewrite -mulnDl addn2.
rewrite mulnDr leq_add2l derSS mulnA mulnDr (@leq_trans (2 * k.+1 * der k.+1)) ?leq_addr //.
by rewrite leq_mul2r; apply/orP; right; lia.
Qed.

Lemma expn_mono m n e : m <= n -> m ^ e <= n ^ e.
Proof. by case: e => // e h; rewrite leq_exp2r. Qed.

(* The paper's Lemma 6, for every pair k, k + a different from 1. *)
Lemma der_pow k a : k != 1 -> k + a != 1 -> der (k + a) <= (k + a).+1 ^ a * der k.
Proof.
move=> k1; case: k k1 => [|[|k]] //= _.
  rewrite add0n der0 muln1 => a1; apply: (@leq_trans a`!).
    by rewrite -dsumE /dsum big_ord_recr /= binn mul1n leq_addl.
  elim: a {a1} => // a IH; rewrite factS expnS leq_mul // ?leqW //.
  by rewrite (leq_trans IH) // expn_mono.
elim: a => [|a IH] _; first by rewrite addn0 expn0 mul1n.
have := der_leS (k := k.+2 + a) isT; rewrite -addnS => /leq_trans -> //.
rewrite expnS -mulnA leq_mul ?addnS // (leq_trans (IH _)) //.
by rewrite leq_mul2r; apply/orP; right; apply: expn_mono; lia.
Qed.

(* (R1): d(k+1) = (k+1) d(k) - (-1)^k *)
Lemma der_sign k : der k.+1 + ~~ odd k = k.+1 * der k + odd k.
Proof.
elim: k => [//|k IH]; rewrite derSS /= negbK mulnDr.
by move: IH; rewrite mulSn [k.+2 * _]mulSn mulSn; case: (odd k) => /=; lia.
Qed.

(* (R2): the quotients d(k+1)/d(k) increase. *)
Lemma der_logconvex k : 1 < k -> der k.+1 * der k.+1 <= der k * der k.+2.
Proof.
case: k => [|[|[|k]]] // _; move: k.+3 (isT : 2 < k.+3) => j j3.
have := der_sign j; have := der_sign j.+1.
have : 2 <= der j.+1 by apply: (@leq_trans (der 3)) => //; apply: der_mono; lia.
have : 2 <= der j by apply: (@leq_trans (der 3)) => //; apply: der_mono; lia.
rewrite /= negbK; move: (der j) (der j.+1) (der j.+2) => a b c a2 b2.
have ab : a + b <= a * b by case: a a2 => [|[|a]] // _; case: b b2 => [|[|b]] // _; lia.
have E : a * (j.+2 * b) = b * (j.+1 * a) + a * b by lia.
case: (odd j) => /= e1 e2.
  have F : b * b = b * (j.+1 * a) + b by rewrite -[in RHS](addn0 (j.+1 * a)) -mulnSr; congr (_ * _); lia.
  have G : a * c + a = a * (j.+2 * b) by rewrite -mulnSr; congr (_ * _); lia.
  by rewrite -(leq_add2r a) G E F; lia.
have F : b * b + b = b * (j.+1 * a) by rewrite -mulnSr; congr (_ * _); lia.
have -> : c = j.+2 * b + 1 by lia.
by rewrite mulnDr E -F; lia.
Qed.

Lemma der_ge k : k * der k <= der k.+1.
Proof. by case: k => [//|k]; rewrite derSS leq_mul2l leq_addr orbT. Qed.

(* (R3), for k + 2 >= 6 *)
Lemma der_R3 k : 3 < k -> der k.+2 <= (k.+2 * k.+1).+1 * der k.
Proof.
move=> k4; have dk : k.+1 <= der k.
  case: k k4 => [|[|[|[|k]]]] // _; elim: k => [//|k IH]; apply: leq_trans (der_ge _).
  by rewrite (@leq_trans (2 * (k.+4).+1)) ?leq_mul //; lia.
have E : k.+2 * der k.+1 + k.+2 * ~~ odd k = k.+2 * k.+1 * der k + k.+2 * odd k.
  by rewrite -mulnA -!mulnDr der_sign.
have := der_sign k.+1; rewrite /= negbK => F; rewrite mulSn.
by move: E F dk; case: (odd k); rewrite /= ?muln0 ?muln1 ?addn0; lia.
Qed.

Example der_values : [seq der k | k <- iota 0 9] = [:: 1; 0; 1; 2; 9; 44; 265; 1854; 14833].
Proof. by []. Qed.

Section Moved.
Variable T : finType.
Implicit Types (g r : {perm T}) (A B : {set T}).

Definition moved g : {set T} := [set i | g i != i].

Lemma moved_subE g A : (moved g \subset A) = perm_on A g.
Proof.
apply/subsetP/subsetP => H i Hi; apply: H; first by rewrite inE.
by move: Hi; rewrite inE.
Qed.

Lemma perm_on_partition A :
  \sum_(B : {set T} | B \subset A) #|[set g | moved g == B]| = #|A|`!.
Proof.
have E g : (g \in perm_on A) = (moved g \subset A) by rewrite moved_subE.
rewrite -card_perm -sum1_card (partition_big moved (fun B => B \subset A)) /=; last first.
  by move=> g; rewrite E.
apply: eq_bigr => B BA; rewrite -sum1dep_card; apply: eq_bigl => g; rewrite E.
by case: eqP => [->|]; rewrite ?BA ?andbF.
Qed.

(* A sum over the subsets of A that looks at their sizes only. *)
Lemma sum_subsets (R : Type) (idx : R) (op : Monoid.com_law idx) A (F : nat -> R) :
  \big[op/idx]_(B : {set T} | B \subset A) F #|B| =
  \big[op/idx]_(j < #|A|.+1) iter 'C(#|A|, j) (op (F j)) idx.
Proof.
rewrite (partition_big (fun B => inord #|B| : 'I_(#|A|.+1)) xpredT) //=.
apply: eq_bigr => j _; rewrite -(cards_draws A j) -big_const.
have E (B : {set T}) : B \subset A -> ((inord #|B| == j) = (#|B| == j)).
  by move=> BA; rewrite -val_eqE /= inordK // ltnS subset_leq_card.
apply: eq_big => [B|B /andP[BA]].
  by rewrite inE; case BA: (B \subset A) => //=; rewrite E.
by rewrite E // => /eqP ->.
Qed.

Lemma sum_der_subsets A :
  \sum_(B : {set T} | B \subset A) der #|B| = #|A|`!.
Proof.
rewrite -dsumE /dsum sum_subsets; apply: eq_bigr => j _.
by rewrite iter_addn_0 mulnC.
Qed.

(* The number of permutations that move exactly A. *)
Theorem card_moved A : #|[set g | moved g == A]| = der #|A|.
Proof.
move: {2}#|A| (leqnn #|A|) => n; elim: n A => [|n IH] A HA; last first.
  have := perm_on_partition A; rewrite -(sum_der_subsets A).
  rewrite (bigD1 A) //= [RHS](bigD1 A) //=.
  rewrite (_ : \sum_(B : {set T} | (B \subset A) && (B != A)) _ =
    \sum_(B : {set T} | (B \subset A) && (B != A)) der #|B|); first by move/addIn.
  apply: eq_bigr => B /andP[BA nBA]; apply: IH.
  have : B \proper A by rewrite properEneq nBA.
  by move/proper_card => h; rewrite -ltnS (leq_trans h).
have := perm_on_partition A; rewrite -(sum_der_subsets A).
move: HA; rewrite leqn0 cards_eq0 => /eqP ->.
by rewrite !(big_pred1 set0) // => B; rewrite subset0.
Qed.

Corollary card_derangements : #|[set g : {perm T} | [forall i, g i != i]]| = der #|T|.
Proof.
rewrite -cardsT -card_moved; apply: eq_card => g; rewrite !inE.
apply/forallP/eqP => [H|H i]; first by apply/setP => i; rewrite !inE H.
by have := in_setT i; rewrite -H inE.
Qed.

Lemma card_moved_neq1 g : #|moved g| != 1.
Proof.
apply/negP => /eqP h; have := card_moved (moved g); rewrite h der1 => /eqP.
by rewrite cards_eq0 => /eqP/setP/(_ g); rewrite !inE eqxx.
Qed.

End Moved.
