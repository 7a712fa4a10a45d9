(* Algorithm 1 in one stratum: its steps, and the law of the permutation it draws.

   selection, uniform and run write the algorithm down step by step; run_psa and psa_loop prove that its law is
   P(g) = c w(k), w(k) = o^k / d(k), k the number of moved records: formula (0) of swapping/proof.md. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify ring.
From Stirred Require Import derangements.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.POrderTheory.
Local Open Scope ring_scope.

Section Law.
Variables (R : realFieldType) (T : finType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Implicit Types (g r : {perm T}) (A B : {set T}).

(* Each record of the stratum A is selected with probability p, independently: the chance of the selection B. *)
Definition selection A B : R := \prod_(i in A) (if i \in B then p else 1 - p).
(* A uniform one of the permutations that move the selected records and no other. *)
Definition uniform B g : R :=
  if moved g == B then (#|[set g : {perm T} | moved g == B]|%:R)^-1 else 0.
(* Algorithm 1 with at most t draws of a selection; a lone selection is drawn again.
   The chance that it has stopped by then with the permutation g. *)
Fixpoint run A (t : nat) g : R :=
  if t is t1.+1 then
    \sum_(B : {set T} | B \subset A) selection A B * (if #|B| == 1%N then run A t1 g else uniform B g)
  else 0.

Definition odds : R := p / (1 - p).
Definition weight (k : nat) : R := odds ^+ k / (der k)%:R.
Definition lone (n : nat) : R := n%:R * p * (1 - p) ^+ n.-1.
Definition constant (n : nat) : R := (1 - p) ^+ n / (1 - lone n).
(* The law (0) of the permutation of the stratum A. *)
Definition psa A g : R := if moved g \subset A then constant #|A| * weight #|moved g| else 0.

Lemma q_gt0 : 0 < 1 - p. Proof. by rewrite subr_gt0. Qed.
Lemma odds_gt0 : 0 < odds. Proof. by rewrite divr_gt0 // q_gt0. Qed.

Lemma selectionE A B : B \subset A -> selection A B = p ^+ #|B| * (1 - p) ^+ (#|A| - #|B|).
Proof.
move=> BA; rewrite /selection (bigID (mem B)) /=; congr (_ * _).
  rewrite (eq_bigr (fun=> p)); last by move=> i /andP[_ ->].
  rewrite -prodr_const; apply: eq_bigl => i.
  by rewrite andbC; case: (boolP (i \in B)) => //= /(subsetP BA) ->.
rewrite (eq_bigr (fun=> 1 - p)); last by move=> i /andP[_ /negbTE ->].
rewrite -(cardsDS BA) -prodr_const; apply: eq_bigl => i.
by rewrite in_setD andbC.
Qed.

Lemma selection_gt0 A B : 0 < selection A B.
Proof. by apply: prodr_gt0 => i _; case: ifP; rewrite ?q_gt0. Qed.

Lemma sum_selection A : \sum_(B : {set T} | B \subset A) selection A B = 1.
Proof.
rewrite (eq_bigr _ (@selectionE A)).
rewrite (sum_subsets _ _ (fun k => p ^+ k * (1 - p) ^+ (#|A| - k))).
rewrite -[RHS](expr1n _ #|A|) -[X in _ = X ^+ _](subrK p 1) exprDn.
by apply: eq_bigr => j _; rewrite iter_addr addr0 mulrC.
Qed.

Lemma sum_lone A :
  \sum_(B : {set T} | (B \subset A) && (#|B| == 1%N)) selection A B = lone #|A|.
Proof.
rewrite (eq_bigr (fun=> p * (1 - p) ^+ #|A|.-1)); last first.
  by move=> B /andP[BA /eqP h]; rewrite selectionE // h expr1 subn1.
rewrite big_const iter_addr addr0 /lone -mulrA mulr_natl; congr (_ *+ _).
rewrite -[RHS]bin1 -(cards_draws A 1%N) cardsE.
by apply: eq_card => B; rewrite unfold_in.
Qed.

Lemma lone_lt1 A : lone #|A| < 1.
Proof.
rewrite -(sum_selection A) (bigID (fun B : {set T} => #|B| == 1%N)) /= sum_lone ltr_addl.
rewrite (bigD1 set0) ?cards0 ?sub0set //= ltr_paddr ?selection_gt0 //.
by apply: sumr_ge0 => B _; apply: ltW; apply: selection_gt0.
Qed.

Lemma lone_neq1 A : 1 - lone #|A| != 0.
Proof. by rewrite gt_eqF // subr_gt0 lone_lt1. Qed.

Lemma constant_gt0 A : 0 < constant #|A|.
Proof. by rewrite divr_gt0 ?exprn_gt0 ?q_gt0 // subr_gt0 lone_lt1. Qed.

Lemma weight_gt0 k : k != 1%N -> 0 < weight k.
Proof. by move=> k1; rewrite divr_gt0 ?exprn_gt0 ?odds_gt0 // ltr0n der_gt0. Qed.

Lemma psa_gt0 A g : moved g \subset A -> 0 < psa A g.
Proof. by move=> gA; rewrite /psa gA mulr_gt0 ?constant_gt0 // weight_gt0 // card_moved_neq1. Qed.

Lemma psa_ge0 A g : 0 <= psa A g.
Proof.
by rewrite /psa; case: ifP => // _; rewrite mulr_ge0 // ltW ?constant_gt0 // weight_gt0 // card_moved_neq1.
Qed.

(* One round that stops. *)
Lemma one_round A g :
  \sum_(B : {set T} | (B \subset A) && (#|B| != 1%N)) selection A B * uniform B g
  = (1 - lone #|A|) * psa A g.
Proof.
rewrite /psa; case: ifP => gA; last first.
  rewrite big1 ?mulr0 // => B /andP[BA _]; rewrite /uniform; case: eqP; rewrite ?mulr0 //.
  by move=> e; rewrite e BA in gA.
rewrite (bigD1 (moved g)) ?card_moved_neq1 ?gA //= big1 ?addr0; last first.
  by move=> B /andP[_ h]; rewrite /uniform eq_sym (negbTE h) mulr0.
rewrite /uniform eqxx card_moved selectionE // /constant /weight /odds expr_div_n.
have h3 : (der #|moved g|)%:R != 0 :> R by rewrite pnatr_eq0 -lt0n der_gt0 // card_moved_neq1.
have h4 : (1 - p) ^+ #|moved g| != 0 by rewrite expf_neq0 // gt_eqF // q_gt0.
rewrite (_ : (1 - p) ^+ #|A| = (1 - p) ^+ (#|A| - #|moved g|) * (1 - p) ^+ #|moved g|); last first.
  by rewrite -exprD subnK // subset_leq_card.
have F (a b c d e : R) : c != 0 -> d != 0 -> e != 0 ->
    a * b * d^-1 = e * (b * c / e * (a / c / d)).
  by move=> c0 d0 e0; field; rewrite c0 d0 e0.
by rewrite -F // lone_neq1.
Qed.

Lemma round A g (v : R) :
  \sum_(B : {set T} | B \subset A) selection A B * (if #|B| == 1%N then v else uniform B g)
  = lone #|A| * v + (1 - lone #|A|) * psa A g.
Proof.
rewrite (bigID (fun B : {set T} => #|B| == 1%N)) /=; congr (_ + _).
  by rewrite -sum_lone mulr_suml; apply: eq_bigr => B /andP[_ ->].
by rewrite -one_round; apply: eq_bigr => B /andP[_ /negbTE ->].
Qed.

(* Within t rounds the algorithm has stopped with probability 1 - lone ^ t, and then its law is (0). *)
Theorem run_psa A t g : run A t g = (1 - lone #|A| ^+ t) * psa A g.
Proof.
elim: t => [|t IH]; first by rewrite expr0 subrr mul0r.
by rewrite /= round IH exprS; ring.
Qed.

(* The same as an equation of the unbounded loop: (0) is its only solution. *)
Theorem psa_loop A (f : {perm T} -> R) :
  (forall g, f g = \sum_(B : {set T} | B \subset A)
     selection A B * (if #|B| == 1%N then f g else uniform B g)) <-> f =1 psa A.
Proof.
split=> [E g|E g]; last by rewrite round E; ring.
apply: (mulfI (lone_neq1 A)); have := E g; rewrite round => e.
by rewrite mulrBl mul1r {1}e addrAC subrr add0r.
Qed.

Theorem psa_sum1 A : \sum_g psa A g = 1.
Proof.
apply: (mulfI (lone_neq1 A)); rewrite mulr1 mulr_sumr.
under eq_bigr => g _ do rewrite -one_round.
rewrite exchange_big /= -[X in X - _](sum_selection A) -sum_lone.
rewrite [in RHS](bigID (fun B : {set T} => #|B| == 1%N)) /= addrAC subrr add0r.
apply: eq_bigr => B /andP[BA B1]; rewrite -mulr_sumr -[RHS]mulr1; congr (_ * _).
rewrite /uniform -big_mkcond /=.
rewrite (eq_bigl (mem [set g : {perm T} | moved g == B])); last by move=> g; rewrite !inE.
rewrite sumr_const -[_^-1 *+ _]mulr_natl mulfV // pnatr_eq0 -lt0n card_moved.
exact: der_gt0.
Qed.

(* Algorithm 1 skips strata with no or one record; so does the law. *)
Lemma psa_skip A g : (#|A| <= 1)%N -> psa A g = (g == 1%g)%:R.
Proof.
move=> A1; have id1 g1 : moved g1 \subset A -> g1 = 1%g.
  move=> /subset_leq_card h; have : #|moved g1| == 0%N.
    by move: (card_moved_neq1 g1) (leq_trans h A1); case: #|_| => [|[|k]].
  rewrite cards_eq0 => /eqP/setP e; apply/permP => i; rewrite perm1.
  by have := e i; rewrite !inE => /negbFE/eqP.
case: eqP => [->|ng] /=; last by rewrite /psa; case: ifP => // /id1.
rewrite -(psa_sum1 A) (bigD1 1%g) //= big1 ?addr0 // => g1 /eqP ng.
by rewrite /psa; case: ifP => // /id1.
Qed.

End Law.
