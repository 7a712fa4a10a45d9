(* Several strata: independent runs of Algorithm 1, and the bound for two files in the order of Lemma 5.

   T is the set of records, m gives each its match value.  rc c is the permutation r inside the stratum c, and shift is
   the bijection g -> r^-1 g, stratum by stratum: it keeps the output and changes the number of moved records little. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify ring.
From Stirred Require Import derangements algorithm one_stratum.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Strata.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Variables (T M S : finType).
Implicit Types (g r : {perm T}) (m : T -> M) (s : T -> S) (f : {ffun M -> {perm T}}).

(* The stratum of the match value c. *)
Definition stratum m c : {set T} := [set i | m i == c].

(* Independent runs of Algorithm 1, one per stratum. *)
Definition law m f : R := \prod_c psa p (stratum m c) (f c).

(* The swapped file: record i takes the swap value of the record that its stratum's permutation sends it to. *)
Definition swapped m s f : {ffun T -> S} := [ffun i => s (f (m i) i)].

(* The chance that the swapped values have the property Q. *)
Definition prob m s (Q : pred {ffun T -> S}) : R := \sum_(f | Q (swapped m s f)) law m f.

Theorem law_sum1 m : \sum_f law m f = 1.
Proof.
rewrite /law -(bigA_distr_bigA (fun c g => psa p (stratum m c) g)) /= big1 // => c _.
exact: psa_sum1.
Qed.

Lemma law_ge0 m f : 0 <= law m f.
Proof. by apply: prodr_ge0 => c _; apply: psa_ge0. Qed.

Lemma psa_ratio (A : {set T}) g r (L : R) :
  moved r \subset A -> (moved r != set0 -> covers p #|A| L) ->
  psa p A g <= L ^+ #|moved r| * psa p A (g * r^-1)%g.
Proof.
move=> rA gL; rewrite /psa moved_on //; case: ifP => gA; last by rewrite mulr0.
have [r0|rn0] := eqVneq (moved r) set0.
  have -> : r = 1%g.
    by apply/permP => i; rewrite perm1; apply/eqP; have /setP/(_ i) := r0; rewrite !inE => /negbFE.
  by rewrite invg1 mulg1 (_ : moved 1 = set0) ?cards0 ?expr0 ?mul1r //; apply/setP => i; rewrite !inE perm1 eqxx.
rewrite [X in _ <= X]mulrCA ler_pmul2l ?constant_gt0 //.
apply: gL; rewrite ?card_moved_neq1 ?moved_le ?moved_ge ?subset_leq_card //.
by rewrite moved_on.
Qed.

Section Restrict.
Variables (m : T -> M) (r : {perm T}).
Hypothesis rm : forall i, m (r i) = m i.

Definition rfun (c : M) i := if m i == c then r i else i.
Lemma rfun_inj c : injective (rfun c).
Proof.
move=> i j; rewrite /rfun; case: ifP => ic; case: ifP => jc; first exact: perm_inj.
- by move=> e; rewrite -rm e jc in ic.
- by move=> e; rewrite -rm -e ic in jc.
- by [].
Qed.
(* r in the stratum c only *)
Definition rc c := perm (@rfun_inj c).

Lemma moved_rc c : moved (rc c) = moved r :&: stratum m c.
Proof. by apply/setP => i; rewrite !inE permE /rfun; case: ifP; rewrite ?andbT ?andbF ?eqxx. Qed.

Lemma sum_rc : (\sum_c #|moved (rc c)| = #|moved r|)%N.
Proof.
rewrite -[RHS]sum1_card (partition_big m xpredT) //=; apply: eq_bigr => c _.
by rewrite moved_rc -sum1_card; apply: eq_bigl => i; rewrite !inE.
Qed.

Definition shift f : {ffun M -> {perm T}} := [ffun c => (f c * (rc c)^-1)%g].
Lemma shift_bij : bijective shift.
Proof.
exists (fun f : {ffun M -> {perm T}} => [ffun c => (f c * rc c)%g]) => f; apply/ffunP => c; rewrite !ffunE.
  by rewrite mulgKV.
by rewrite mulgK.
Qed.

(* Files with the same hold values and s' = s o r: one bound for every event. *)
Theorem dp_aligned s (Q : pred {ffun T -> S}) (L : R) : 0 <= L ->
  (forall c i, i \in moved r -> m i = c -> covers p #|stratum m c| L) ->
  prob m s Q <= L ^+ #|moved r| * prob m (s \o r) Q.
Proof.
move=> L0 gL; rewrite /prob [X in _ <= _ * X](reindex shift) /=; last exact/onW_bij/shift_bij.
rewrite [X in X <= _]big_mkcond [X in _ <= _ * X]big_mkcond mulr_sumr; apply: ler_sum => f _.
have R0 : 0 <= L ^+ #|moved r| * (if Q (swapped m (s \o r) (shift f)) then law m (shift f) else 0).
  by rewrite mulr_ge0 ?exprn_ge0 //; case: ifP => // _; apply: law_ge0.
case: (boolP [forall c, moved (f c) \subset stratum m c]) => [/forallP sup|/forallPn[c nsup]]; last first.
  by case: ifP => // _; rewrite [law m f](bigD1 c) //= /psa (negbTE nsup) mul0r.
have -> : swapped m (s \o r) (shift f) = swapped m s f.
  apply/ffunP => i; rewrite !ffunE permM /=; congr (s _).
  set j := f (m i) i.
  have mj : m j = m i.
    have [/eqP e|h] := boolP (j == i); first by rewrite e.
    have : j \in moved (f (m i)) by rewrite inE (inj_eq perm_inj).
    by move/(subsetP (sup _)); rewrite inE => /eqP.
  set k := ((rc (m i))^-1)%g j; have jE : j = rc (m i) k by rewrite permKV.
  have kE : m k == m i.
    by rewrite -mj jE permE /rfun; case: ifP; rewrite ?rm.
  by rewrite jE permE /rfun kE.
case: ifP => _; last by rewrite mulr0.
rewrite /law -sum_rc -prodrXr -big_split /=.
apply: ler_prod => c _; rewrite psa_ge0 //= ffunE; apply: psa_ratio.
  by rewrite moved_rc subsetIr.
by move=> /set0Pn[i]; rewrite moved_rc inE => /andP[ir]; rewrite inE => /eqP ic; apply: (gL c i).
Qed.
End Restrict.
End Strata.
