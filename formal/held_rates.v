(* Theorem F of swapping/proof.md: rates that depend on held variables, in one stratum of at least four records.

   Record i is selected with odds o i.  Given the selection the derangement is uniform, so a permutation g has the chance
   C * prod_(i moved by g) o i / d(k): C is the chance that nobody is selected over that of no lone selection, and is the
   same for all files with these rates.  Files of one universe are taken in the order of Lemma 5: the same hold values,
   hence the same odds, record by record. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify ring.
From Stirred Require Import derangements algorithm one_stratum alignment strata theorem_1 by_size.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section HeldRates.
Variables (R : realFieldType) (n : nat) (o : 'I_n -> R) (low high L C : R).
Hypotheses (low_gt0 : 0 < low) (low_le : forall i, low <= o i) (le_high : forall i, o i <= high).
Hypotheses (n4 : (3 < n)%N) (highL : high <= L) (lowL : (der n)%:R <= (L * low) ^+ 2 * (der (n - 2))%:R).
Hypothesis C_ge0 : 0 <= C.
Local Notation d k := ((der k)%:R : R).
Implicit Types (g r : 'S_n).

Definition held g : R := C * (\prod_(i in moved g) o i) / d #|moved g|.

Let i0 : 'I_n := Ordinal (ltnW (ltnW (ltnW n4))).
Let o_gt0 i : 0 < o i. Proof. exact: lt_le_trans (low_le i). Qed.
Let low_high : low <= high. Proof. exact: le_trans (low_le i0) (le_high i0). Qed.
Let lowLL : low <= L. Proof. exact: le_trans highL. Qed.
Let L_gt0 : 0 < L. Proof. exact: lt_le_trans lowLL. Qed.
Let d_gt0 k : k != 1%N -> 0 < d k. Proof. by move=> k1; rewrite ltr0n der_gt0. Qed.

(* a rate with these odds *)
Let p : R := low / (1 + low).
Let one_low : 0 < 1 + low. Proof. by rewrite addr_gt0 ?ltr01. Qed.
Let p_gt0 : 0 < p. Proof. exact: divr_gt0. Qed.
Let p_lt1 : p < 1. Proof. by rewrite /p ltr_pdivr_mulr // mul1r ltr_addr ltr01. Qed.
Let odds_p : odds p = low.
Proof.
rewrite /odds /p; have h : 1 + low != 0 by rewrite gt_eqF.
have -> : 1 - low / (1 + low) = (1 + low)^-1 by field.
by rewrite invrK divfK.
Qed.

Let covered : covers p n L.
Proof. by apply: covers_tight => //; rewrite odds_p. Qed.
Let L1 : 1 <= L.
Proof. by apply: (L_ge1 p_gt0 p_lt1 n4); rewrite ?odds_p. Qed.

Let base : 1 <= L * low.
Proof.
have Ll0 : 0 <= L * low by rewrite mulr_ge0 // ltW.
rewrite -(@ler_pexpn2r _ 2) ?nnegrE ?ler01 // expr1n -(@ler_pmul2r _ (d (n - 2))); last by apply: d_gt0; nlia.
by rewrite mul1r; apply: le_trans lowL; rewrite ler_nat der_mono //; nlia.
Qed.

(* What covers says, without odds on both sides. *)
Let rise k l D : k != 1%N -> l != 1%N -> D != 1%N -> (k <= l)%N -> (l <= n)%N -> (l <= k + D)%N ->
  d l <= L ^+ D * low ^+ (l - k) * d k.
Proof.
move=> k1 l1 D1 kl ln lD; have := covered k1 l1 D1 (leq_trans kl ln) ln (leq_trans kl (leq_addr _ _)) lD.
rewrite /weight odds_p mulrA ler_pdivl_mulr ?d_gt0 // mulrAC ler_pdivr_mulr ?d_gt0 //.
by rewrite -{2}(subnKC kl) exprD mulrA [L ^+ D * _]mulrC -!mulrA ler_pmul2l ?exprn_gt0 // !mulrA.
Qed.

(* one step up costs at most (L low)^2 *)
Let one_step k : (1 < k)%N -> (k < n)%N -> d k.+1 <= (L * low) ^+ 2 * d k.
Proof.
move=> k1 kn; have dn : 0 < d (n - 2) by apply: d_gt0; nlia.
rewrite -(@ler_pmul2r _ (d (n - 2))) // mulrAC; apply: (@le_trans _ _ (d n * d k)); last first.
  by rewrite ler_wpmul2r ?ler0n.
rewrite -!natrM ler_nat.
have up j : (1 < j)%N -> (j < n)%N -> (der j.+1 * der (n - 1) <= der n * der j)%N.
  move=> j1 jn; rewrite -(subnKC jn); elim: (n - j.+1)%N => [|a IH].
    by rewrite addn0 subn1 /= mulnC.
  have e : (j.+1 + a.+1 - 1 = (j.+1 + a))%N by nlia.
  rewrite e addnS; have e2 : (j.+1 + a - 1 = j + a)%N by nlia.
  rewrite e2 in IH; have lc := der_logconvex (k := j + a) (ltn_addr a j1).
  rewrite -addSn in lc; have d1 : (0 < der (j.+1 + a))%N by apply: der_gt0; nlia.
  have d2 : (0 < der (j + a))%N by apply: der_gt0; nlia.
  rewrite -(leq_pmul2r d2); apply: (@leq_trans (der (j.+1 + a) * der j * der (j.+1 + a))).
    by rewrite mulnAC leq_mul2r IH orbT.
  by rewrite mulnAC [X in (_ <= X)%N]mulnAC leq_mul2r [X in (_ <= X)%N]mulnC lc orbT.
have h1 := up k k1 kn.
have h2 : (der (n - 2) <= der (n - 1))%N by apply: der_mono; nlia.
by apply: leq_trans (leq_mul (leqnn _) h2) h1.
Qed.

Theorem theoremF g r : #|moved r| != 1%N -> held g <= L ^+ #|moved r| * held (g * r^-1)%g.
Proof.
move=> r1; set g' := (g * r^-1)%g; pose G := moved g; pose G' := moved g'; pose D := #|moved r|.
pose a := #|G :\: G'|; pose b := #|G' :\: G|.
have abD : (a + b <= D)%N.
  have := lemma0 g r; rewrite -/g' -/G -/G' => /subset_leq_card; rewrite cardsU.
  rewrite (_ : (G :\: G') :&: (G' :\: G) = set0) ?cards0 ?subn0 //.
  by apply/setP => i; rewrite !inE; case: (g i == i); rewrite ?andbF.
have k1 : #|G| != 1%N := card_moved_neq1 g; have l1 : #|G'| != 1%N := card_moved_neq1 g'.
have kb : (#|G| <= n)%N by rewrite -[X in (_ <= X)%N]card_ord max_card.
have lb : (#|G'| <= n)%N by rewrite -[X in (_ <= X)%N]card_ord max_card.
have kl : (#|G| + b = #|G'| + a)%N.
  by have := cardsID G' G; have := cardsID G G'; rewrite setIC -/a -/b; nlia.
pose com := \prod_(i in G :&: G') o i.
have com0 : 0 <= com by apply: prodr_ge0 => i _; apply: ltW.
have split (X Y : {set 'I_n}) : \prod_(i in X) o i = (\prod_(i in X :&: Y) o i) * \prod_(i in X :\: Y) o i.
  rewrite (bigID (mem Y)) /=; congr (_ * _); apply: eq_bigl => i; by rewrite !inE // andbC.
have up : \prod_(i in G) o i <= com * L ^+ a.
  rewrite (split G G') ler_wpmul2l // /a -prodr_const; apply: ler_prod => i _.
  by rewrite ltW //= (le_trans (le_high i)).
have down : com * low ^+ b <= \prod_(i in G') o i.
  rewrite (split G' G) setIC ler_wpmul2l // /b -prodr_const; apply: ler_prod => i _.
  by rewrite ltW //= low_le.
have key : d #|G'| <= L ^+ (D - a) * low ^+ b * d #|G|.
  have aD : (b <= D - a)%N by rewrite leq_subRL ?(leq_trans (leq_addr b a) abD).
  have Lb : (L * low) ^+ b <= L ^+ (D - a) * low ^+ b.
    by rewrite exprMn ler_wpmul2r ?exprn_ge0 ?ler_weexpn2l // ltW.
  have more c : (c <= b)%N -> d #|G'| <= (L * low) ^+ c * d #|G| -> d #|G'| <= L ^+ (D - a) * low ^+ b * d #|G|.
    move=> cb h; apply: le_trans h _; rewrite ler_wpmul2r ?ler0n //; apply: le_trans Lb.
    exact: ler_weexpn2l.
  case: (leqP #|G'| #|G|) => [le|lt].
    by apply: (more 0%N) => //; rewrite expr0 mul1r ler_nat der_mono.
  case: (eqVneq (#|G'| - #|G|)%N 1%N) => [e1|n1]; last first.
    apply: (more (#|G'| - #|G|)%N); first by nlia.
    by rewrite exprMn; apply: rise => //; nlia.
  have k2 : (1 < #|G|)%N by move: k1 l1 e1 lt; nlia.
  have eG : #|G'| = #|G|.+1 by nlia.
  case: (posnP a) => [a0|apos]; last by apply: (more 2%N); [nlia | rewrite eG; apply: one_step; nlia].
  have b1 : b = 1%N by nlia.
  have := @rise #|G| #|G'| D k1 l1 r1 (ltnW lt) lb; rewrite e1 a0 b1 subn0; apply.
  by move: abD; rewrite a0 b1 eG; nlia.
have fin : (\prod_(i in G) o i) * d #|G'| <= L ^+ D * (\prod_(i in G') o i) * d #|G|.
  apply: (@le_trans _ _ (com * L ^+ a * (L ^+ (D - a) * low ^+ b * d #|G|))).
    by apply: ler_pmul; rewrite ?ler0n //; apply: prodr_ge0 => i _; apply: ltW.
  have eD : L ^+ D = L ^+ a * L ^+ (D - a) by rewrite -exprD subnKC // (leq_trans (leq_addr b a)).
  have -> : com * L ^+ a * (L ^+ (D - a) * low ^+ b * d #|G|) = L ^+ D * (com * low ^+ b) * d #|G|.
    by rewrite eD; ring.
  rewrite ler_wpmul2r ?ler0n // ler_wpmul2l ?exprn_ge0 //.
  exact: ltW.
rewrite /held -/G -/G' -/D ler_pdivr_mulr ?d_gt0 //.
have -> : L ^+ D * (C * (\prod_(i in G') o i) / d #|G'|) * d #|G| = C * (L ^+ D * (\prod_(i in G') o i) * d #|G|) / d #|G'|.
  move: (d #|G'|)^-1 (L ^+ D) (\prod_(i in G') o i) (d #|G|) => e f u v; by ring.
by rewrite ler_pdivl_mulr ?d_gt0 // -[X in X <= _]mulrA ler_wpmul2l.
Qed.
End HeldRates.
