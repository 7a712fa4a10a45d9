(* The paper's bound (C): four types on both sides, with large margins, lose as much as all different values do.

   proposition9_given_output is the argument of the paper's Proposition 9 from the output it uses;
   four_types_loss applies it to margins (1, 1, m, m). *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify ring.
From Stirred Require Import derangements algorithm one_stratum alignment strata theorem_1 by_size attained.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Lemma moved_fill n (g : 'S_n) (a b : 'I_n) : a != b ->
  moved g = ~: [set a; b] -> moved (g * (tperm a b)^-1)%g = setT.
Proof.
move=> ab mg; apply/setP => i; rewrite !inE permM tpermV.
have fix_ j : j \in [set a; b] -> g j = j.
  by move=> jab; apply/eqP/negbNE; have : j \notin moved g by [rewrite mg inE jab]; rewrite inE.
case: (boolP (i \in [set a; b])) => iab.
  by rewrite fix_ //; have : i \in moved (tperm a b) by [rewrite moved_tperm]; rewrite inE.
have gi : i \in moved g by rewrite mg inE.
have -> : tperm a b (g i) = g i.
  apply/eqP/negbNE; have : g i \notin moved (tperm a b); last by rewrite inE.
  rewrite moved_tperm //; apply: contra iab => h; have := fix_ _ h => /perm_inj e.
  by rewrite -e.
by move: gi; rewrite inE.
Qed.

Section Witness.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Variables (n : nat) (H S : finType) (h : 'I_n -> H).
Local Notation o := (odds p).
Local Notation d k := ((der k)%:R : R).
Implicit Types (s : 'I_n -> S) (g r : 'S_n).

Definition file s (i : 'I_n) : unit * H * S := (tt, h i, s i).

Lemma Pr_file s Q : Pr p (file s) Q = \sum_(g : 'S_n | Q (table (file (s \o g)))) psa p setT g.
Proof.
rewrite /Pr /prob (reindex (fun g : 'S_n => [ffun _ : unit => g])) /=; last first.
  by exists (fun f : {ffun unit -> 'S_n} => f tt) => [g _|f _]; [rewrite ffunE | apply/ffunP => -[]; rewrite ffunE].
apply: eq_big => [g|g _].
  by congr (Q _); apply: table_ext => i; rewrite /file !ffunE.
rewrite /law (big_pred1 tt) /=; last by case.
by rewrite ffunE; congr psa; apply/setP => i; rewrite !inE.
Qed.

Lemma file_invariants s r : same_invariants (table (file s)) (table (file (s \o r))).
Proof.
split=> [a b|a b].
  by rewrite -(n_mhE (file s) (a, b)) -(n_mhE (file (s \o r)) (a, b)).
by rewrite -!n_msE -[LHS](card_preim r); apply: eq_card => i; rewrite !inE.
Qed.

Lemma file_dHam s r : (dHam (table (file s)) (table (file (s \o r))) <= #|moved r|)%N.
Proof.
rewrite -(sum_fibres (moved r) (file s)); apply: leq_sum => c _; rewrite !ffunE leq_subLR.
apply: leq_trans (leq_card_setU _ _); apply: subset_leq_card; apply/subsetP => i.
rewrite !inE => e; rewrite e andbT; case: (r i =P i) => [ri|]; last by rewrite orbT.
by rewrite /file /= ri -/(file s i) e.
Qed.

Variables (s : 'I_n -> S) (a b : 'I_n) (z : 'S_n).
Hypotheses (ab : a != b).
(* a and b are the only ones of their swap values, and of their hold values *)
Hypotheses (sa : forall i, s i = s a -> i = a) (sb : forall i, s i = s b -> i = b).
Hypotheses (ha : forall i, h i = h a -> i = a) (hb : forall i, h i = h b -> i = b).
(* the output keeps a and b, and no other type of the data *)
Hypotheses (za : z a = a) (zb : z b = b).
Hypothesis znew : forall i j, i \notin [set a; b] -> (h j, s (z j)) != (h i, s i).

Lemma same_output g : table (file (s \o g)) = table (file (s \o z)) -> moved g = ~: [set a; b].
Proof.
move=> e; have out i : exists j, (h j, s (z j)) = (h i, s (g i)).
  have : (0 < table (file (s \o g)) (tt, h i, s (g i)))%N.
    by rewrite ffunE card_gt0; apply/set0Pn; exists i; rewrite inE.
  rewrite e ffunE card_gt0 => /set0Pn[j]; rewrite inE => /eqP[e1 e2]; exists j; rewrite ?e1 ?e2.
  by congr pair.
apply/setP => i; rewrite in_setC [LHS]inE; case: (boolP (i \in [set a; b])) => iab /=.
  apply/negbTE/negPn/eqP; move: iab; rewrite !inE => /orP[]/eqP ->.
    by have [j [/ha -> e2]] := out a; apply: sa; rewrite -e2 za.
  by have [j [/hb -> e2]] := out b; apply: sb; rewrite -e2 zb.
by apply/eqP => gi; have [j ej] := out i; have := znew j iab; rewrite ej gi eqxx.
Qed.

Theorem proposition9_given_output (L : R) : (3 < n)%N -> 1 <= L ->
  (forall Q, Pr p (file s) Q <=
     L ^+ dHam (table (file s)) (table (file (s \o tperm a b))) * Pr p (file (s \o tperm a b)) Q) ->
  d n <= (L * o) ^+ 2 * d (n - 2).
Proof.
move=> n4 L1 v; pose r := tperm a b; pose Q (N : {ffun unit * H * S -> nat}) := N == table (file (s \o z)).
have o0 := odds_gt0 p_gt0 p_lt1.
have r2 : #|moved r| = 2%N by rewrite moved_tperm // cards2 ab.
pose G := [pred g : 'S_n | Q (table (file (s \o g)))].
have kG g : G g -> #|moved g| = (n - 2)%N /\ #|moved (g * r^-1)%g| = n.
  move=> /eqP/same_output mg; rewrite moved_fill // cardsT card_ord mg; split=> //.
  by have := cardsC [set a; b]; rewrite cards2 ab card_ord; move: n4; clear; lia.
pose K : R := #|G|%:R * constant p n.
have K0 : 0 < K.
  rewrite mulr_gt0 //; last by rewrite -[n]card_ord -cardsT constant_gt0.
  by rewrite ltr0n; apply/card_gt0P; exists z; rewrite unfold_in /= /Q eqxx.
have E1 : Pr p (file s) Q = K * weight p (n - 2).
  rewrite Pr_file (eq_bigr (fun=> constant p n * weight p (n - 2))); last first.
    by move=> g /kG[kg _]; rewrite /psa subsetT cardsT card_ord kg.
  by rewrite big_const iter_addr addr0 /K -mulrA mulr_natl.
have E2 : Pr p (file (s \o r)) Q = K * weight p n.
  rewrite Pr_file (reindex_inj (mulIg r^-1)%g) /=.
  rewrite (eq_bigl G); last first.
    by move=> g; congr Q; apply: table_ext => i; rewrite /file /= permM permKV.
  rewrite (eq_bigr (fun=> constant p n * weight p n)); last first.
    by move=> g /kG[_ kg]; rewrite /psa subsetT cardsT card_ord kg.
  by rewrite big_const iter_addr addr0 /K -mulrA mulr_natl.
have := v Q; rewrite E1 E2 [X in _ <= X]mulrCA ler_pmul2l // => le1.
have wn : 0 <= weight p n by apply/ltW/weight_gt0 => //; move: n4; clear; lia.
have {le1} : weight p (n - 2) <= L ^+ 2 * weight p n.
  apply: le_trans le1 _; rewrite ler_wpmul2r // ler_weexpn2l //.
  by have := file_dHam s r; rewrite r2.
have dn : 0 < d n by rewrite ltr0n der_gt0 //; move: (n4); clear; lia.
have dm : 0 < d (n - 2) by rewrite ltr0n der_gt0 //; move: (n4); clear; lia.
rewrite /weight mulrA ler_pdivl_mulr // mulrAC ler_pdivr_mulr //.
rewrite (_ : o ^+ n = o ^+ (n - 2) * o ^+ 2); last first.
  by rewrite -exprD; congr (_ ^+ _); move: (n4); clear; lia.
rewrite mulrCA -mulrA ler_pmul2l ?exprn_gt0 // => le2.
by rewrite exprMn.
Qed.
End Witness.

(* Four hold types and four swap types, with margins 1, 1, m, m on both sides. *)
Section FourTypes.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Variable m : nat.
Hypothesis m_gt0 : (0 < m)%N.
Local Notation n := (m.*2.+2).
Local Notation o := (odds p).

Definition ty (i : 'I_n) : bool * bool := ((i < 2)%N, if (i < 2)%N then (i == 0%N :> nat) else (i < m.+2)%N).
Definition znat (i : nat) : nat := if (i < 2)%N then i else if (i < m.+2)%N then (i + m)%N else (i - m)%N.
Definition zfun (i : 'I_n) : 'I_n := inord (znat i).
Lemma zfunE i : zfun i = znat i :> nat.
Proof. by rewrite /zfun inordK // /znat; case: i => i /= hi; case: ifP; last case: ifP; lia. Qed.
Lemma zfun_inj : injective zfun.
Proof.
apply: (can_inj (g := zfun)) => i; apply: val_inj; rewrite /= !zfunE /znat; case: i => i /= hi.
by repeat case: ifP; move: m_gt0 hi; clear; lia.
Qed.

Let a : 'I_n := ord0.
Let b : 'I_n := inord 1.
Let bE : b = 1%N :> nat. Proof. by rewrite inordK. Qed.

Theorem four_types_loss (L : R) : 1 <= L ->
  (forall Q, Pr p (file ty ty) Q <=
     L ^+ dHam (table (file ty ty)) (table (file ty (ty \o tperm a b))) * Pr p (file ty (ty \o tperm a b)) Q) ->
  (der n)%:R <= (L * o) ^+ 2 * (der (n - 2))%:R.
Proof.
have ua i : ty i = ty a -> i = a.
  by rewrite /ty /= => -[i2]; rewrite i2 => /eqP i0; apply: val_inj.
have ub i : ty i = ty b -> i = b.
  rewrite /ty bE /= => -[i2]; rewrite i2 => /negbT i0; apply: val_inj; rewrite /= bE.
  by move: i2 i0; clear; lia.
apply: (proposition9_given_output p_gt0 p_lt1 (z := perm zfun_inj)) => //.
- by rewrite -val_eqE /= bE.
- by rewrite permE; apply: val_inj; rewrite /= zfunE.
- by rewrite permE; apply: val_inj; rewrite /= zfunE bE.
- move=> i j; rewrite !inE -!val_eqE /= bE negb_or => /andP[i0 i1]; rewrite permE.
  have i2 : (i < 2)%N = false by move: i0 i1; clear; lia.
  apply/eqP => -[]; rewrite zfunE i2 => j2; rewrite j2 => e2; rewrite /znat j2 => z2; rewrite z2 -e2.
  move: j2 z2; case: ifP; case: j {e2} => j /= hj; move: m_gt0 hj; clear.
    by move=> *; lia.
  by move=> *; lia.
- by move: m_gt0; clear; lia.
Qed.
End FourTypes.
