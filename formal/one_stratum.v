(* One stratum: how far the weights of two permutations with the same output can be apart.

   Lemma 0 of swapping/proof.md, and the property `covers`: L is the exponential of a budget that is large enough for
   every stratum of at most b records.  The paper's budget has it. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify ring.
From Stirred Require Import derangements algorithm.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Lemma0.
Variable T : finType.
Implicit Types g r : {perm T}.

(* Lemma 0.  (g * r^-1)%g is the function r^-1 after g. *)
Lemma lemma0 g r :
  (moved g :\: moved (g * r^-1)%g) :|: (moved (g * r^-1)%g :\: moved g) \subset moved r.
Proof.
apply/subsetP => i; rewrite !inE permM; apply: contraLR => /negPn/eqP ri.
have E : ((r^-1)%g (g i) == i) = (g i == i) by rewrite -(inj_eq (@perm_inj _ r)) permKV ri.
by rewrite E; case: (g i == i).
Qed.

Lemma moved_subU g r : moved g \subset moved (g * r^-1)%g :|: moved r.
Proof.
apply/subsetP => i gi; rewrite in_setU; case: (boolP (i \in moved _)) => //= h.
by apply: (subsetP (lemma0 g r)); rewrite in_setU in_setD gi h.
Qed.

Lemma movedV r : moved r^-1 = moved r.
Proof. by apply/setP => i; rewrite !inE -{1}(inj_eq (@perm_inj _ r)) permKV eq_sym. Qed.

Lemma moved_subV g r : moved (g * r^-1)%g \subset moved g :|: moved r.
Proof. by have := moved_subU (g * r^-1)%g r^-1; rewrite invgK mulgKV movedV. Qed.

Lemma moved_le g r : (#|moved g| <= #|moved (g * r^-1)%g| + #|moved r|)%N.
Proof. by rewrite (leq_trans (subset_leq_card (moved_subU g r))) // leq_card_setU. Qed.

Lemma moved_ge g r : (#|moved (g * r^-1)%g| <= #|moved g| + #|moved r|)%N.
Proof. by rewrite (leq_trans (subset_leq_card (moved_subV g r))) // leq_card_setU. Qed.

Lemma moved_on g r (A : {set T}) :
  moved r \subset A -> (moved (g * r^-1)%g \subset A) = (moved g \subset A).
Proof.
by move=> rA; apply/idP/idP => h; [apply: (subset_trans (moved_subU g r))
  | apply: (subset_trans (moved_subV g r))]; rewrite subUset h.
Qed.

(* r^-1 after g after r, as a function. *)
Lemma moved_conj g r : moved (r * g * r^-1)%g = r @^-1: moved g.
Proof.
by apply/setP => i; rewrite !inE !permM -(inj_eq (@perm_inj _ r)) permKV.
Qed.

Lemma card_preim (r : {perm T}) (A : {set T}) : #|r @^-1: A| = #|A|.
Proof. by rewrite -im_permV card_imset //; apply: perm_inj. Qed.

Lemma preim_sub (r : {perm T}) (A B : {set T}) : (r @^-1: A \subset r @^-1: B) = (A \subset B).
Proof.
apply/idP/idP => [h|]; last exact: preimsetS.
by apply/subsetP => i iA; have := subsetP h ((r^-1)%g i); rewrite !inE permKV; apply.
Qed.

End Lemma0.

Section Bound.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Local Notation o := (odds p).

(* exp of the paper's budget: max {o, (b + 1) / o} *)
Definition budget (b : nat) : R := Num.max o (b.+1%:R / o).

Let o_gt0 : 0 < o. Proof. exact: odds_gt0. Qed.

Lemma budget_ge_o b : o <= budget b. Proof. by rewrite le_maxr lexx. Qed.
Lemma budget_ge_b b : b.+1%:R / o <= budget b. Proof. by rewrite le_maxr lexx orbT. Qed.

Lemma budget_ge1 b : 1 <= budget b.
Proof.
have E0 : 0 <= budget b by rewrite (le_trans (ltW o_gt0)) // budget_ge_o.
rewrite -(@ler_pexpn2r _ 2) ?nnegrE ?ler01 // expr1n.
apply: (@le_trans _ _ (o * (b.+1%:R / o))).
  by rewrite mulrCA mulfV ?gt_eqF // mulr1 ler1n.
by rewrite expr2 ler_pmul ?budget_ge_o ?budget_ge_b ?(ltW o_gt0) // divr_ge0 ?ler0n // ltW.
Qed.

Lemma budget_mono b c : (b <= c)%N -> budget b <= budget c.
Proof.
move=> bc; rewrite /budget le_maxl budget_ge_o (le_trans _ (budget_ge_b c)) //.
by rewrite ler_pmul2r ?invr_gt0 // ler_nat.
Qed.

Lemma exp_le (L x : R) a D : 1 <= L -> 0 <= x -> x <= L -> (a <= D)%N -> x ^+ a <= L ^+ D.
Proof.
move=> L1 x0 xL aD; apply: (@le_trans _ _ (L ^+ a)); last exact: ler_weexpn2l.
by apply: ler_expn2r; rewrite ?nnegrE // (le_trans x0).
Qed.

(* More records moved than before. *)
Lemma weight_down (L : R) D k l : 1 <= L -> o <= L -> k != 1%N -> l != 1%N ->
  (l <= k)%N -> (k <= l + D)%N -> weight p k <= L ^+ D * weight p l.
Proof.
move=> L1 oL k1 l1 lk klD; have L0 := le_trans ler01 L1; have o0 := ltW o_gt0.
have dk : 0 < (der k)%:R :> R by rewrite ltr0n der_gt0.
have dl : 0 < (der l)%:R :> R by rewrite ltr0n der_gt0.
rewrite /weight mulrA ler_pdivl_mulr // mulrAC ler_pdivr_mulr //.
rewrite -{1}(subnK lk) exprD ler_pmul ?mulr_ge0 ?exprn_ge0 ?ler0n //.
  by rewrite ler_wpmul2r ?exprn_ge0 // exp_le // leq_subLR.
by rewrite ler_nat der_mono.
Qed.

Lemma weight_ratio b D k l : k != 1%N -> l != 1%N -> (k <= b)%N -> (l <= b)%N ->
  (k <= l + D)%N -> (l <= k + D)%N ->
  weight p k <= budget b ^+ D * weight p l.
Proof.
move=> k1 l1 kb lb klD lkD; have E1 := budget_ge1 b; have o0 := ltW o_gt0.
case: (leqP l k) => lk; first exact: weight_down (budget_ge_o b) _ _ _ _.
have dk : 0 < (der k)%:R :> R by rewrite ltr0n der_gt0.
have dl : 0 < (der l)%:R :> R by rewrite ltr0n der_gt0.
rewrite /weight mulrA ler_pdivl_mulr // mulrAC ler_pdivr_mulr //.
have kl := ltnW lk.
apply: (@le_trans _ _ (o ^+ k * (b.+1%:R ^+ (l - k) * (der k)%:R))).
  rewrite ler_wpmul2l ?exprn_ge0 // -natrX -natrM ler_nat -{1}(subnKC kl).
  by rewrite (leq_trans (der_pow _ _)) ?subnKC // leq_mul2r expn_mono ?orbT.
rewrite mulrA ler_wpmul2r ?ler0n // -[in X in _ <= X](subnKC kl) exprD mulrA mulrAC [o ^+ k * _]mulrC.
rewrite ler_wpmul2r ?exprn_ge0 //.
apply: (@le_trans _ _ ((b.+1%:R / o) ^+ (l - k) * o ^+ (l - k))).
  by rewrite -exprMn divfK // gt_eqF.
rewrite ler_wpmul2r ?exprn_ge0 // exp_le ?budget_ge_b ?leq_subLR //.
by rewrite divr_ge0 ?ler0n.
Qed.

(* L is the exponential of a valid budget for strata of at most b records. *)
Definition covers (b : nat) (L : R) := forall k l D : nat,
  k != 1%N -> l != 1%N -> D != 1%N -> (k <= b)%N -> (l <= b)%N ->
  (k <= l + D)%N -> (l <= k + D)%N -> weight p k <= L ^+ D * weight p l.

Lemma covers_paper b : covers b (budget b).
Proof. by move=> k l D k1 l1 _; apply: weight_ratio. Qed.

Lemma covers_le b c L : (b <= c)%N -> covers c L -> covers b L.
Proof. by move=> bc gc k l D k1 l1 D1 kb lb; apply: gc => //; apply: leq_trans bc. Qed.
End Bound.
