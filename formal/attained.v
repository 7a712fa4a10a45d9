(* What is published has the invariants of the data (Proposition 4), and Theorem B is attained.

   Files whose hold values are all different and whose swap values are all different need the whole budget. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify ring.
From Stirred Require Import derangements algorithm one_stratum alignment strata theorem_1 by_size.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Kept.
Variables (R : realFieldType) (p : R) (M H S : finType) (n : nat) (x : 'I_n -> M * H * S).

(* A draw moves no record out of its stratum, and no two records get the value of one. *)
Lemma strata_perm (m : 'I_n -> M) (f : {ffun M -> 'S_n}) : law p m f != 0 ->
  (forall i, m (f (m i) i) = m i) /\ injective (fun i => f (m i) i).
Proof.
move=> lf; pose sg i := f (m i) i.
have sup c : moved (f c) \subset stratum m c.
  by apply: contraR lf => ns; rewrite /law (bigD1 c) //= /psa (negbTE ns) mul0r.
have msg i : m (sg i) = m i.
  have [/eqP e|h] := boolP (sg i == i); first by rewrite e.
  have : sg i \in moved (f (m i)) by rewrite inE (inj_eq perm_inj).
  by move/(subsetP (sup _)); rewrite inE => /eqP.
split=> // i j e; have := msg i; rewrite /sg e -/(sg j) msg => mij; move: e; rewrite mij; exact: perm_inj.
Qed.

(* The paper's Proposition 4: what the PSA publishes has the invariants of the data. *)
Theorem invariants_kept (f : {ffun M -> 'S_n}) :
  law p (fun i => (x i).1.1) f != 0 ->
  same_invariants (table (fun i => ((x i).1, swapped (fun i => (x i).1.1) (fun i => (x i).2) f i))) (table x).
Proof.
move=> lf; pose m i := (x i).1.1; pose sg i := f (m i) i.
have [msg sg_inj] : (forall i, m (sg i) = m i) /\ injective sg := strata_perm lf.
split=> [a h|a s].
  by rewrite -(n_mhE _ (a, h)) -(n_mhE x (a, h)).
rewrite -!n_msE -[RHS](card_preim (perm sg_inj)); apply: eq_card => i.
by rewrite !inE ffunE permE -[(x (sg i)).1.1]/(m (sg i)) msg.
Qed.
End Kept.

Section Lower.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Variable n : nat.
Local Notation o := (odds p).
Local Notation d k := ((der k)%:R : R).
Implicit Types g r : 'S_n.

Definition labelled (z : 'I_n -> 'I_n) (i : 'I_n) : unit * 'I_n * 'I_n := (tt, i, z i).

Lemma table_labelled z c : table (labelled z) c = (z c.1.2 == c.2).
Proof.
case: c => [[[] a] b] /=; rewrite ffunE; have [e|ne] := eqVneq (z a) b.
  rewrite (_ : [set i | _] = [set a]) ?cards1 //; apply/setP => i.
  by rewrite !inE /labelled !xpair_eqE /=; case: eqP => //= ->; rewrite e eqxx.
rewrite (_ : [set i | _] = set0) ?cards0 //; apply/setP => i.
by rewrite !inE /labelled !xpair_eqE /=; case: eqP => //= ->; rewrite (negbTE ne).
Qed.

Lemma table_labelled_inj z z' : table (labelled z) = table (labelled z') -> z =1 z'.
Proof.
move=> e i; have := congr1 (fun N : {ffun _ -> nat} => N (tt, i, z i)) e.
by rewrite !table_labelled /= eqxx; case: eqP.
Qed.

Lemma Pr_labelled g r : Pr p (labelled r) (fun N => N == table (labelled g)) = psa p setT (g * r^-1)%g.
Proof.
rewrite /Pr /prob (big_pred1 [ffun=> (g * r^-1)%g]) /=; last first.
  move=> f; apply/eqP/eqP => [e|->].
    apply/ffunP => -[]; rewrite ffunE; apply/permP => i; rewrite permM.
    have /table_labelled_inj/(_ i) : table (labelled (swapped (fun i => (labelled r i).1.1) (fun i => (labelled r i).2) f)) = table (labelled g) := e.
    by rewrite ffunE /= => <-; rewrite permK.
  by apply: table_ext => i; rewrite !ffunE /labelled /= permM permKV.
rewrite /law (big_pred1 tt) /=; last by case.
by rewrite ffunE; congr psa; apply/setP => i; rewrite !inE.
Qed.

Lemma labelled_invariants r : same_invariants (table (labelled (1%g : 'S_n))) (table (labelled r)).
Proof.
split=> [a h|a s].
  by rewrite -(n_mhE (labelled (1%g : 'S_n)) (a, h)) -(n_mhE (labelled r) (a, h)).
rewrite -!n_msE -[LHS](card_preim r); apply: eq_card => i.
by rewrite !inE /labelled /= perm1.
Qed.

Lemma labelled_dHam r : dHam (table (labelled (1%g : 'S_n))) (table (labelled r)) = #|moved r|.
Proof.
have ti : injective (fun i : 'I_n => (tt, i, i)) by move=> i j [].
rewrite -(card_imset (mem (moved r)) ti) -sum1_card big_mkcond /=.
apply: eq_bigr => -[[[] a] b] _; rewrite !table_labelled /= perm1.
case: imsetP => [[i]|ni]; first by rewrite inE => ri [-> ->]; rewrite eqxx (negbTE ri).
have [e|ne] := eqVneq a b; last by case: (r a == b).
rewrite e; case: eqP => // /eqP re; case: ni; exists b; rewrite ?inE //.
by rewrite e.
Qed.

Lemma moved_tperm (a b : 'I_n) : a != b -> moved (tperm a b) = [set a; b].
Proof.
move=> ab; apply/setP => i; rewrite !inE; case: tpermP => [->|->|/eqP ia /eqP ib].
- by rewrite eqxx eq_sym ab.
- by rewrite ab eqxx orbT.
- by rewrite eqxx (negbTE ia) (negbTE ib).
Qed.

Definition valid (L : R) := forall (x x' : 'I_n -> unit * 'I_n * 'I_n) Q,
  same_invariants (table x) (table x') -> Pr p x Q <= L ^+ dHam (table x) (table x') * Pr p x' Q.

Lemma valid_labelled L g r : valid L ->
  weight p #|moved g| <= L ^+ #|moved r| * weight p #|moved (g * r^-1)%g|.
Proof.
move=> v; have := v _ _ (fun N => N == table (labelled g)) (labelled_invariants r).
rewrite !Pr_labelled labelled_dHam invg1 mulg1 /psa !subsetT [X in _ <= X]mulrCA ler_pmul2l //.
exact: constant_gt0.
Qed.

Theorem theoremB_lower L : (1 < n)%N -> 0 <= L -> valid L ->
  o <= L /\ (n != 3%N -> d n <= (L * o) ^+ 2 * d (n - 2)).
Proof.
move=> n1 L0 v; have n0 : (0 < n)%N by lia.
pose a := Ordinal n0; pose b := Ordinal n1; have ab : a != b by [].
have r2 : #|moved (tperm a b)| = 2%N by rewrite moved_tperm // cards2 ab.
have o0 := odds_gt0 p_gt0 p_lt1; split.
  have := valid_labelled (tperm a b) (tperm a b) v; rewrite mulgV r2.
  rewrite (_ : moved 1 = set0); last by apply/setP => i; rewrite !inE perm1 eqxx.
  rewrite cards0 /weight expr0 (_ : der 0 = 1%N) // (_ : der 2 = 1%N) // !divr1 mulr1.
  by rewrite ler_pexpn2r ?nnegrE // ltW.
move=> n3; have : (0 < #|[set g : 'S_n | moved g == ~: [set a; b]]|)%N.
  rewrite card_moved; apply: der_gt0; have := cardsC [set a; b]; rewrite cards2 ab card_ord.
  by move: n3 (n1); clear; lia.
rewrite card_gt0 => /set0Pn[g]; rewrite inE => /eqP mg.
have kg : #|moved g| = (n - 2)%N.
  by rewrite mg; have := cardsC [set a; b]; rewrite cards2 ab card_ord; move: (n1); clear; lia.
have kg' : moved (g * (tperm a b)^-1)%g = setT.
  apply/setP => i; rewrite !inE permM tpermV.
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
have := valid_labelled g (tperm a b) v; rewrite kg kg' r2 cardsT card_ord /weight.
have dn : 0 < d n by rewrite ltr0n der_gt0 //; move: (n1); clear; lia.
have dm : 0 < d (n - 2) by rewrite ltr0n der_gt0 //; move: (n1) n3; clear; lia.
rewrite mulrA ler_pdivl_mulr // mulrAC ler_pdivr_mulr //.
rewrite (_ : o ^+ n = o ^+ (n - 2) * o ^+ 2); last first.
  by rewrite -exprD; congr (_ ^+ _); move: (n1); clear; lia.
rewrite mulrCA -mulrA ler_pmul2l ?exprn_gt0 // => h.
by rewrite exprMn.
Qed.

(* Theorem B for n >= 4: the loss of the files of n records is exactly this. *)
Theorem theoremB_exact L : (3 < n)%N -> 0 <= L ->
  valid L <-> (o <= L /\ d n <= (L * o) ^+ 2 * d (n - 2)).
Proof.
move=> n4 L0; split=> [v|[oL VL] x x' Q E].
  have n1 : (1 < n)%N by lia.
  by case: (theoremB_lower n1 L0 v) => oL h; split=> //; apply: h; move: n4; clear; lia.
apply: (psa_dp (b := n) p_gt0 p_lt1 Q E _ L0); last exact: covers_tight.
by apply/bigmax_leqP => m _; rewrite -n_mE -[X in (_ <= X)%N]card_ord max_card.
Qed.
End Lower.
