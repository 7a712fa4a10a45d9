(* Theorem B of swapping/proof.md: the best bound that depends on the size of the strata and the rate only.

   No square roots: L is the exponential of the budget, and the condition on it is d(b) <= (L o)^2 d(b-2).
   step k is w(k) / w(k+1).  Theorem B for files stands in results.v, that it is attained in attained.v. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify ring.
From Stirred Require Import derangements algorithm one_stratum alignment strata theorem_1.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

(* lia is slow with hypotheses over R in sight *)
Ltac nlia := match goal with R : realFieldType |- _ => clear dependent R end; lia.

Section Upper.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Local Notation o := (odds p).
Let o_gt0 : 0 < o. Proof. exact: odds_gt0. Qed.
Let o0 : 0 <= o. Proof. exact: ltW. Qed.
Local Notation d k := ((der k)%:R : R).
Let d_gt0 k : k != 1%N -> 0 < d k. Proof. by move=> k1; rewrite ltr0n der_gt0. Qed.

(* w(k) / w(k+1) *)
Definition step k : R := d k.+1 / d k / o.

Lemma step_gt0 k : (1 < k)%N -> 0 < step k.
Proof.
move=> k1; have h1 : 0 < d k by apply: d_gt0; nlia.
have h2 : 0 < d k.+1 by apply: d_gt0; nlia.
by apply: divr_gt0 => //; apply: divr_gt0.
Qed.

Lemma weightS k : (1 < k)%N -> weight p k = step k * weight p k.+1.
Proof.
move=> k1; rewrite /weight /step exprS.
have h1 : d k != 0 by rewrite gt_eqF // d_gt0 //; nlia.
have h2 : d k.+1 != 0 by rewrite gt_eqF // d_gt0 //; nlia.
have h3 : o != 0 by rewrite gt_eqF.
have F (a b c e : R) : a != 0 -> b != 0 -> c != 0 -> e / a = b / a / c * (c * e / b).
  by move=> a0 b0 c0; field; rewrite a0 b0 c0.
exact: F.
Qed.

Lemma step_mono1 k : (1 < k)%N -> step k <= step k.+1.
Proof.
move=> k1; rewrite /step ler_wpmul2r ?invr_ge0 // ler_pdivl_mulr; last by rewrite d_gt0 //; nlia.
rewrite mulrAC ler_pdivr_mulr; last by rewrite d_gt0 //; nlia.
by rewrite -!natrM ler_nat [X in (_ <= X)%N]mulnC der_logconvex.
Qed.

Lemma step_mono k l : (1 < k)%N -> (k <= l)%N -> step k <= step l.
Proof.
move=> k1 kl; rewrite -(subnKC kl); elim: (l - k)%N => [|a IH]; first by rewrite addn0.
by rewrite (le_trans IH) // addnS step_mono1 // ltn_addr.
Qed.

(* (R2): q_(k+1) <= q_k ^ 3 *)
Lemma step_cube k : (1 < k)%N -> step k <= 1 -> step k.+1 <= o ^+ 2.
Proof.
move=> k1; rewrite /step ler_pdivr_mulr // mul1r => qo.
rewrite ler_pdivr_mulr // -exprSr.
have kq : k%:R <= d k.+1 / d k.
  by rewrite ler_pdivl_mulr ?d_gt0 -?natrM ?ler_nat ?der_ge //; nlia.
apply: (@le_trans _ _ (k.+3%:R)).
  by rewrite ler_pdivr_mulr ?d_gt0 -?natrM ?ler_nat ?der_leS //; nlia.
apply: (@le_trans _ _ (k%:R ^+ 3)).
  rewrite -natrX ler_nat; case: k k1 {qo kq} => [|[|k]] // _.
  by rewrite !expnS expn0; nlia.
by apply: ler_expn2r; rewrite ?nnegrE ?ler0n ?(le_trans kq).
Qed.

Section Fix.
Variables (b : nat) (L : R).
Hypotheses (b4 : (3 < b)%N) (oL : o <= L) (VL : d b <= (L * o) ^+ 2 * d (b - 2)).

Let L0 : 0 <= L. Proof. exact: le_trans oL. Qed.

Lemma product_le : step (b - 2) * step (b - 1) <= L ^+ 2.
Proof.
have -> : step (b - 2) * step (b - 1) = d b / d (b - 2) / o ^+ 2.
  rewrite /step (_ : (b - 2).+1 = b - 1)%N; last by nlia.
  rewrite (_ : (b - 1).+1 = b)%N; last by nlia.
  have h1 : d (b - 2) != 0 by rewrite gt_eqF // d_gt0 //; nlia.
  have h2 : d (b - 1) != 0 by rewrite gt_eqF // d_gt0 //; nlia.
  have h3 : o != 0 by rewrite gt_eqF.
  have F (a c e v : R) : a != 0 -> c != 0 -> v != 0 -> c / a / v * (e / c / v) = e / a / v ^+ 2.
    by move=> a0 c0 v0; field; rewrite a0 c0 v0.
  exact: F.
rewrite ler_pdivr_mulr ?exprn_gt0 // -exprMn ler_pdivr_mulr //.
by apply: d_gt0; nlia.
Qed.

Lemma L_ge1 : 1 <= L.
Proof.
rewrite -(@ler_pexpn2r _ 4) ?nnegrE ?ler01 // expr1n.
apply: (@le_trans _ _ ((L * o) ^+ 2)); last first.
  rewrite exprMn -[4%N]/(2 + 2)%N exprD ler_wpmul2l ?exprn_ge0 //.
  by apply: ler_expn2r; rewrite ?nnegrE.
have db : 0 < d (b - 2) by apply: d_gt0; nlia.
rewrite -(ler_pmul2r db) mul1r; apply: le_trans VL; rewrite ler_nat der_mono //; nlia.
Qed.

Lemma step_le k : (1 < k)%N -> (k <= b - 2)%N -> step k <= L.
Proof.
move=> k1 kb; apply: le_trans (step_mono k1 kb) _.
have u0 : 0 < step (b - 2) by apply: step_gt0; nlia.
rewrite -(@ler_pexpn2r _ 2) ?nnegrE //; last exact: ltW.
apply: le_trans product_le; rewrite expr2 ler_pmul2l //.
by apply: step_mono; nlia.
Qed.

Lemma two_steps_le k : (1 < k)%N -> (k <= b - 2)%N -> step k * step k.+1 <= L ^+ 2.
Proof.
move=> k1 kb; apply: le_trans product_le.
by apply: ler_pmul; rewrite ?(ltW (step_gt0 _)) ?step_mono //; nlia.
Qed.

Lemma last_step_le : step (b - 1) <= L ^+ 2.
Proof.
have u0 : 0 < step (b - 1) by apply: step_gt0; nlia.
case: (lerP 1 (step (b - 2))) => h.
  by apply: le_trans product_le; rewrite ler_pmull.
rewrite (_ : b - 1 = (b - 2).+1)%N; last by nlia.
apply: (@le_trans _ _ (o ^+ 2)); first by apply: step_cube; [nlia | exact: ltW].
by apply: ler_expn2r; rewrite ?nnegrE.
Qed.

Let w0 k : k != 1%N -> 0 <= weight p k. Proof. by move=> k1; apply/ltW/weight_gt0. Qed.

(* Fewer records moved, from at least two. *)
Lemma chain k a : (1 < k)%N -> (k + a <= b - 1)%N -> weight p k <= L ^+ a * weight p (k + a).
Proof.
move=> k1; elim: a => [|a IH] kab; first by rewrite expr0 mul1r addn0.
apply: le_trans (IH _) _; first by nlia.
rewrite exprSr -mulrA ler_wpmul2l ?exprn_ge0 // addnS weightS; last by nlia.
by rewrite ler_wpmul2r ?w0 ?step_le //; nlia.
Qed.

Lemma up2 k a : (1 < k)%N -> a != 1%N -> (k + a <= b)%N -> weight p k <= L ^+ a * weight p (k + a).
Proof.
move=> k1; case: a => [|[|a]] // _ kab; first by rewrite expr0 mul1r addn0.
apply: le_trans (chain (a := a) k1 _) _; first by nlia.
rewrite -[a.+2]addn2 exprD -mulrA ler_wpmul2l ?exprn_ge0 // addnA addn2.
rewrite weightS; last by nlia.
rewrite (@weightS (k + a).+1); last by nlia.
by rewrite mulrA ler_wpmul2r ?w0 ?two_steps_le //; nlia.
Qed.

Lemma up k a D : (1 < k)%N -> (a <= D)%N -> D != 1%N -> (k + a <= b)%N ->
  weight p k <= L ^+ D * weight p (k + a).
Proof.
move=> k1 aD D1 kab; have L1 := L_ge1.
have mono c : (c <= D)%N -> weight p k <= L ^+ c * weight p (k + a) -> weight p k <= L ^+ D * weight p (k + a).
  by move=> cD h; apply: le_trans h _; rewrite ler_wpmul2r ?w0 ?ler_weexpn2l //; nlia.
case: (eqVneq a 1%N) => a1; last exact/(mono a)/up2.
apply: (mono 2%N); first by nlia.
rewrite a1 addn1 weightS // ler_wpmul2r ?w0 //; first by nlia.
case: (leqP k (b - 2)) => kb; last by rewrite (_ : k = b - 1)%N ?last_step_le //; nlia.
by apply: le_trans (step_le _ _) _ => //; rewrite -[X in X <= _]expr1 ler_weexpn2l.
Qed.

Theorem covers_tight : covers p b L.
Proof.
move=> k l D k1 l1 D1 kb lb klD lkD; have L1 := L_ge1.
case: (leqP l k) => lk; first exact: weight_down.
case: (ltnP 1 k) => k2.
  by rewrite -(subnKC (ltnW lk)); apply: up; nlia.
have -> : k = 0%N by nlia.
have w02 : weight p 0 <= L ^+ 2 * weight p 2.
  rewrite /weight expr0 (_ : der 0 = 1%N) // (_ : der 2 = 1%N) // !divr1 -exprMn.
  have db : 0 < d (b - 2) by apply: d_gt0; nlia.
  rewrite -(ler_pmul2r db) mul1r; apply: le_trans VL; rewrite ler_nat der_mono //; nlia.
apply: le_trans w02 _.
have h : weight p 2 <= L ^+ (l - 2) * weight p l.
  have {2}-> : l = (2 + (l - 2))%N by nlia.
  case: (eqVneq l 3%N) => [->|l3]; first by apply: chain; nlia.
  by apply: up2; nlia.
apply: (@le_trans _ _ (L ^+ 2 * (L ^+ (l - 2) * weight p l))).
  by rewrite ler_wpmul2l ?exprn_ge0.
by rewrite mulrA -exprD ler_wpmul2r ?w0 // ler_weexpn2l //; nlia.
Qed.
End Fix.

(* The same for strata of at most two and at most three records. *)
Lemma L_ge1_small (L : R) : o <= L -> 1 <= (L * o) ^+ 2 -> 1 <= L.
Proof.
move=> oL VL; have L0 : 0 <= L := le_trans o0 oL.
rewrite -(@ler_pexpn2r _ 4) ?nnegrE ?ler01 // expr1n; apply: le_trans VL _.
rewrite exprMn -[4%N]/(2 + 2)%N exprD ler_wpmul2l ?exprn_ge0 //.
by apply: ler_expn2r; rewrite ?nnegrE.
Qed.

Theorem covers_tight2 (L : R) : o <= L -> 1 <= (L * o) ^+ 2 -> covers p 2 L.
Proof.
move=> oL VL k l D k1 l1 D1 kb lb klD lkD; have L1 := L_ge1_small oL VL.
case: (leqP l k) => lk; first exact: weight_down.
have [-> el] : k = 0%N /\ l = 2%N by nlia.
rewrite el /weight expr0 (_ : der 0 = 1%N) // (_ : der 2 = 1%N) // !divr1.
by apply: le_trans VL _; rewrite exprMn ler_wpmul2r ?exprn_ge0 // ler_weexpn2l //; nlia.
Qed.

Theorem covers_tight3 (L : R) :
  o <= L -> 2%:R <= (L * o) ^+ 3 -> 2%:R <= L ^+ 2 * o -> covers p 3 L.
Proof.
move=> oL VL3 VL2; have L0 : 0 <= L := le_trans o0 oL.
have VL : 1 <= (L * o) ^+ 2.
  apply: exprn_ege1; case: (lerP 1 (L * o)) => // /ltW lt1.
  have : 2%:R <= 1 :> R by apply: le_trans VL3 _; rewrite exprn_ile1 ?(mulr_ge0 L0 o0).
  by rewrite (ler_nat _ 2 1).
have L1 := L_ge1_small oL VL.
move=> k l D k1 l1 D1 kb lb klD lkD.
case: (leqP l k) => lk; first exact: weight_down.
case: (leqP l 2) => l2; first by apply: (covers_tight2 oL VL) => //; nlia.
have el : l = 3%N by nlia.
have d3 : der 3 = 2%N by [].
have [ek|ek] : k = 0%N \/ k = 2%N by nlia.
  rewrite el ek /weight expr0 (_ : der 0 = 1%N) // d3 divr1 mulrA ler_pdivl_mulr ?ltr0n // mul1r.
  by apply: le_trans VL3 _; rewrite exprMn ler_wpmul2r ?exprn_ge0 // ler_weexpn2l //; nlia.
rewrite el ek /weight (_ : der 2 = 1%N) // d3 divr1 mulrA ler_pdivl_mulr ?ltr0n //.
rewrite [o ^+ 3]exprS mulrA [o ^+ 2 * _]mulrC ler_wpmul2r ?exprn_ge0 //.
by apply: le_trans VL2 _; rewrite ler_wpmul2r // ler_weexpn2l //; nlia.
Qed.

(* Closed form, a little better than the paper's: b in place of b + 1. *)
Theorem covers_sharp b : (1 < b)%N -> covers p b (Num.max o (b%:R / o)).
Proof.
move=> b2; set L := Num.max _ _.
have oL : o <= L by rewrite le_maxr lexx.
have L0 : 0 <= L := le_trans o0 oL.
have bLo : b%:R <= L * o by rewrite -ler_pdivr_mulr // le_maxr lexx orbT.
have bX k : (b%:R : R) ^+ k <= (L * o) ^+ k.
  by apply: ler_expn2r; rewrite ?nnegrE ?ler0n ?(mulr_ge0 L0 o0).
have VL : 1 <= (L * o) ^+ 2 by apply: le_trans (bX 2%N); rewrite -natrX ler1n expn_gt0; nlia.
have L1 := L_ge1_small oL VL.
case: (eqVneq b 2%N) => [->|n2]; first exact: covers_tight2.
case: (eqVneq b 3%N) => [b3|n3].
  rewrite b3; apply: covers_tight3 => //.
    by apply: le_trans (bX 3%N); rewrite -natrX ler_nat b3.
  rewrite expr2 -mulrA -[2%:R]mul1r ler_pmul ?ler01 ?ler0n // (le_trans _ bLo) // b3 ler_nat //.
apply: covers_tight => //; first by nlia.
apply: (@le_trans _ _ (b%:R ^+ 2 * d (b - 2))); last by rewrite ler_wpmul2r ?ler0n.
rewrite -natrX -natrM ler_nat.
have [b6|b5] := leqP 6 b; last by have [->|->] : b = 4%N \/ b = 5%N by nlia.
have -> : der b = der (b - 2).+2 by congr der; nlia.
apply: leq_trans (der_R3 _) _; first by nlia.
rewrite leq_mul2r; apply/orP; right.
have -> : ((b - 2).+2 * (b - 2).+1).+1 = (b * b.-1).+1 by congr (_ * _).+1; nlia.
by case: (b) b6 => // c _; rewrite /= expnS expn1; nlia.
Qed.
End Upper.
