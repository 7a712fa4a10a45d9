(* The paper's Theorem 1, on files and their fully saturated tables.

   A record is (match, hold, swap).  Also here: the invariants, the distance (Lemma 2), that the order of the records
   does not matter (Lemma 4), and psa_dp, which turns any bound by size into a budget of the whole file. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify ring.
From Stirred Require Import derangements algorithm one_stratum alignment strata.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Theorem1.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
(* match, hold (other than match) and swap values *)
Variables (M H S : finType).
Local Notation record := (M * H * S)%type.
Local Notation tables := {ffun M * H * S -> nat}.
Implicit Types (N : tables) (Q : pred tables).

(* The fully saturated table of a file of n records. *)
Definition table n (x : 'I_n -> record) : tables := [ffun c => #|[set i | x i == c]|].

(* The swapping invariants. *)
Definition n_mh N (m : M) (h : H) : nat := (\sum_s N (m, h, s))%N.
Definition n_ms N (m : M) (s : S) : nat := (\sum_h N (m, h, s))%N.
Definition n_m N (m : M) : nat := (\sum_h n_mh N m h)%N.
Definition same_invariants N N' : Prop :=
  (forall m h, n_mh N m h = n_mh N' m h) /\ (forall m s, n_ms N m s = n_ms N' m s).

(* Half the l1 distance. *)
Definition dHam N N' : nat := (\sum_c (N c - N' c))%N.

(* The largest stratum that has two hold values and two swap values. *)
Definition counts N m : bool :=
  (1 < #|[set h | 0 < n_mh N m h]|)%N && (1 < #|[set s | 0 < n_ms N m s]|)%N.
Definition bmax N : nat := \max_(m | counts N m) n_m N m.
(* The paper's b: the largest stratum that has two different records. *)
Definition paper_b N : nat := \max_(m | (1 < #|[set c : H * S | 0 < N (m, c.1, c.2)]|)%N) n_m N m.

(* The chance that the PSA, given the file x, publishes a table with the property Q. *)
Definition Pr n (x : 'I_n -> record) Q : R :=
  prob p (fun i => (x i).1.1) (fun i => (x i).2) (fun z => Q (table (fun i => ((x i).1, z i)))).

Lemma table_reorder n (x : 'I_n -> record) (b : 'S_n) : table (fun i => x (b i)) = table x.
Proof.
apply/ffunP => c; rewrite !ffunE -[RHS](card_preim b); apply: eq_card => i.
by rewrite !inE.
Qed.

Lemma table_ext n (x y : 'I_n -> record) : x =1 y -> table x = table y.
Proof. by move=> e; apply/ffunP => c; rewrite !ffunE; apply: eq_card => i; rewrite !inE e. Qed.

(* The mean of K over the tables that the PSA publishes, given the file x. *)
Definition mean n (x : 'I_n -> record) (K : tables -> R) : R := \sum_f law p (fun i => (x i).1.1) f *
  K (table (fun i => ((x i).1, swapped (fun i => (x i).1.1) (fun i => (x i).2) f i))).

Lemma Pr_mean n (x : 'I_n -> record) Q : Pr x Q = mean x (fun N => (Q N)%:R).
Proof. by rewrite /Pr /prob /mean big_mkcond; apply: eq_bigr => f _; rewrite mulr_natr mulrb. Qed.

Lemma mean_ext n (x y : 'I_n -> record) K : x =1 y -> mean x K = mean y K.
Proof.
move=> e; apply: eq_bigr => f _; congr (_ * K _); last by apply: table_ext => i; rewrite !ffunE !e.
rewrite /law; apply: eq_bigr => c _; congr psa.
by apply/setP => i; rewrite !inE e.
Qed.

Lemma Pr_ext n (x y : 'I_n -> record) Q : x =1 y -> Pr x Q = Pr y Q.
Proof. by rewrite !Pr_mean; apply: mean_ext. Qed.

(* The paper's Lemma 4. *)
Lemma mean_reorder n (x : 'I_n -> record) (b : 'S_n) K : mean (fun i => x (b i)) K = mean x K.
Proof.
pose conj (f : {ffun M -> 'S_n}) : {ffun M -> 'S_n} := [ffun c => (b * f c * b^-1)%g].
have conj_bij : bijective conj.
  exists (fun f : {ffun M -> 'S_n} => [ffun c => (b^-1 * f c * b)%g]) => f; apply/ffunP => c; rewrite !ffunE.
    by rewrite !mulgA mulVg mul1g mulgKV.
  by rewrite !mulgA mulgV mul1g mulgK.
rewrite /mean (reindex conj) /=; last exact: onW_bij.
apply: eq_bigr => f _; congr (_ * K _); last first.
  rewrite -[RHS](table_reorder _ b); apply: table_ext => i.
  by rewrite !ffunE !permM permKV.
rewrite /law; apply: eq_bigr => c _; rewrite ffunE /psa moved_conj.
have -> : stratum (fun i => (x (b i)).1.1) c = b @^-1: stratum (fun i => (x i).1.1) c.
  by apply/setP => i; rewrite !inE.
by rewrite preim_sub !card_preim.
Qed.

Lemma Pr_reorder n (x : 'I_n -> record) (b : 'S_n) Q : Pr (fun i => x (b i)) Q = Pr x Q.
Proof. by rewrite !Pr_mean mean_reorder. Qed.

Lemma n_mhE n (x : 'I_n -> record) a : #|[set i | (x i).1 == a]| = n_mh (table x) a.1 a.2.
Proof.
have := hold_fibre setT (fun i => (x i).1) (fun i => (x i).2) a.
rewrite (_ : [set i in _ | _] = [set i | (x i).1 == a]); last by apply/setP => i; rewrite !inE.
move=> ->; apply: eq_bigr => s _; rewrite ffunE; apply: eq_card => i.
by rewrite !inE -!surjective_pairing.
Qed.

Lemma n_msE n (x : 'I_n -> record) m s :
  #|[set i | ((x i).1.1, (x i).2) == (m, s)]| = n_ms (table x) m s.
Proof.
have := hold_fibre setT (fun i => ((x i).1.1, (x i).2)) (fun i => (x i).1.2) (m, s).
rewrite (_ : [set i in _ | _] = [set i | ((x i).1.1, (x i).2) == (m, s)]); last by apply/setP => i; rewrite !inE.
move=> ->; apply: eq_bigr => h _; rewrite ffunE; apply: eq_card => i.
rewrite !inE; case: (x i) => [[u v] w]; rewrite !xpair_eqE /=.
by rewrite -!andbA [(w == s) && _]andbC.
Qed.

Lemma n_mE n (x : 'I_n -> record) m : #|stratum (fun i => (x i).1.1) m| = n_m (table x) m.
Proof.
have := hold_fibre setT (fun i => (x i).1.1) (fun i => (x i).1.2) m.
rewrite (_ : [set i in _ | _] = stratum (fun i => (x i).1.1) m); last by apply/setP => i; rewrite !inE.
move=> ->; apply: eq_bigr => h _; rewrite -(n_mhE x (m, h)); apply: eq_card => i.
by rewrite !inE -surjective_pairing.
Qed.

Lemma cellE n (x : 'I_n -> record) (c : record) :
  #|[set i | ((x i).1, ((x i).1.1, (x i).2)) == (c.1, (c.1.1, c.2))]| = table x c.
Proof.
rewrite ffunE; apply: eq_card => i; rewrite !inE.
by case: (x i) c => [[a b] v] [[d e] u]; rewrite !xpair_eqE /=; case: (a == d); rewrite ?andbF.
Qed.

Lemma dist_dHam n (x x' : 'I_n -> record) :
  dist (fun i => (x i).1) (fun i => (x' i).1) (fun i => ((x i).1.1, (x i).2))
    (fun i => ((x' i).1.1, (x' i).2)) = dHam (table x) (table x').
Proof.
rewrite /dist /dHam (bigID (fun c : (M * H) * (M * S) => c.1.1 == c.2.1)) /= [X in (_ + X)%N]big1 ?addn0; last first.
  move=> c nc; rewrite (_ : [set i | ((x i).1, _) == c] = set0) ?cards0 //.
  apply/setP => i; rewrite !inE; apply/negP => /eqP e.
  by move: nc; rewrite -e /= eqxx.
rewrite (reindex_onto (fun c : record => (c.1, (c.1.1, c.2))) (fun c => (c.1, c.2.2))) /=; last first.
  by move=> [[a b] [u v]] /= /eqP ->.
apply: eq_big => [c|c _]; first by rewrite eqxx -surjective_pairing eqxx.
by rewrite !cellE.
Qed.

(* The distance is symmetric between files of the same size, and half the l1 distance. *)
Lemma dHam_l1 n (x x' : 'I_n -> record) :
  (\sum_c ((table x c - table x' c) + (table x' c - table x c)) = (dHam (table x) (table x')).*2)%N.
Proof.
have e (u : 'I_n -> record) : (\sum_c table u c = n)%N.
  rewrite -[RHS]card_ord -cardsT -(sum_fibres _ u); apply: eq_bigr => c _.
  by rewrite ffunE; apply: eq_card => i; rewrite !inE.
have h1 : (\sum_c table x c + \sum_c (table x' c - table x c) = \sum_c table x' c + \sum_c (table x c - table x' c))%N.
  by rewrite -!big_split /=; apply: eq_bigr => c _; lia.
by move: h1; rewrite !e => /addnI h1; rewrite big_split /= h1 addnn.
Qed.

Lemma dHamC n (x x' : 'I_n -> record) : dHam (table x) (table x') = dHam (table x') (table x).
Proof.
apply: double_inj; rewrite -!dHam_l1; apply: eq_bigr => c _; exact: addnC.
Qed.

Lemma bmax_paper N : (bmax N <= paper_b N)%N.
Proof.
apply/bigmax_leqP => m /andP[/card_gt1P[h [h' []]]]; rewrite !inE => hp hp' hh _.
have ex (u : H) : (0 < n_mh N m u)%N -> exists s : S, (0 < N (m, u, s))%N.
  move=> up; apply/existsP; apply: contraLR up => /existsPn e.
  by rewrite -leqNgt leqn0 /n_mh big1 // => s _; apply/eqP; rewrite -leqn0 leqNgt.
have [s sp] := ex h hp; have [s' sp'] := ex h' hp'.
rewrite /paper_b; apply: leq_bigmax_cond; apply/card_gt1P; exists (h, s), (h', s'); rewrite !inE /=.
by split=> //; rewrite xpair_eqE negb_and hh.
Qed.

Lemma bmax_invariant N N' : same_invariants N N' -> bmax N = bmax N'.
Proof.
case=> Emh Ems; rewrite /bmax; apply: eq_big => [m|m _].
  by rewrite /counts; congr (_ && _); congr (leq _ _); apply: eq_card => u; rewrite !inE ?Emh ?Ems.
by apply: eq_bigr => h _; rewrite Emh.
Qed.

(* Any valid bound by size is a valid bound for the PSA. *)
Theorem psa_dp (n b : nat) (L : R) (x x' : 'I_n -> record) Q :
  same_invariants (table x) (table x') -> (bmax (table x) <= b)%N -> 0 <= L -> covers p b L ->
  Pr x Q <= L ^+ dHam (table x) (table x') * Pr x' Q.
Proof.
move=> [Emh Ems] xb L0 gL.
have [|[m s]|al [r [ralh ralms rD rmv]]] := @lemma5 n _ _ (fun i => (x i).1) (fun i => (x' i).1)
  (fun i => ((x i).1.1, (x i).2)) (fun i => ((x' i).1.1, (x' i).2)).
- by move=> a; rewrite !n_mhE Emh.
- by rewrite !n_msE Ems.
rewrite dist_dHam in rD.
have rm i : (x (r i)).1.1 = (x i).1.1 by case: (ralms i) => <- _; rewrite ralh.
rewrite -rD -(Pr_reorder x' al Q).
have -> : Pr (fun i => x' (al i)) Q = Pr (fun i => ((x i).1, (x (r i)).2)) Q.
  apply: Pr_ext => i; case: (ralms i) => _ <-; rewrite -ralh.
  exact: surjective_pairing.
apply: (dp_aligned p_gt0 p_lt1 rm) => // c i /rmv/andP[sn Nlt] ic.
apply: covers_le gL; rewrite n_mE; apply: leq_trans xb.
rewrite /bmax; apply: leq_bigmax_cond.
rewrite !cellE in Nlt.
have hp j : (0 < n_mh (table x) (x j).1.1 (x j).1.2)%N.
  by rewrite -(n_mhE x (x j).1) card_gt0; apply/set0Pn; exists j; rewrite inE.
have sp j : (0 < n_ms (table x) (x j).1.1 (x j).2)%N.
  by rewrite -n_msE card_gt0; apply/set0Pn; exists j; rewrite inE.
apply/andP; split; apply/card_gt1P; last first.
  exists (x i).2, (x (r i)).2; rewrite !inE -ic sp -(rm i) sp; split=> //.
  by apply: contra sn => /eqP ->; rewrite rm.
case: (pickP [pred h | (h != (x i).1.2) && (0 < table x' (c, h, (x i).2))%N]) => [h /= /andP[hn ht]|none].
  exists (x i).1.2, h; rewrite !inE -ic hp ic eq_sym hn; split=> //.
  rewrite Emh /n_mh (bigD1 (x i).2) //= addn_gt0 ht //.
have := Ems c (x i).2; rewrite /n_ms (bigD1 (x i).1.2) //= [in RHS](bigD1 (x i).1.2) //=.
rewrite -ic -!surjective_pairing [X in (_ = _ + X)%N]big1 ?addn0; last first.
  by move=> h hn; have := none h; rewrite /= hn ic /= => /negbT; rewrite -eqn0Ngt => /eqP.
by move=> e; move: Nlt; rewrite -e; lia.
Qed.

(* The paper's Theorem 1, with b counting only strata with two hold and two swap values. *)
Theorem theorem1 n (x x' : 'I_n -> record) Q :
  same_invariants (table x) (table x') ->
  Pr x Q <= budget p (bmax (table x)) ^+ dHam (table x) (table x') * Pr x' Q.
Proof.
move=> E; apply: (psa_dp _ E (leqnn _)); last exact: covers_paper.
by rewrite (le_trans ler01) // budget_ge1.
Qed.

(* Both ways, with the paper's own b. *)
Theorem theorem1_paper n (x x' : 'I_n -> record) Q :
  same_invariants (table x) (table x') ->
  Pr x Q <= budget p (paper_b (table x)) ^+ dHam (table x) (table x') * Pr x' Q /\
  Pr x' Q <= budget p (paper_b (table x)) ^+ dHam (table x) (table x') * Pr x Q.
Proof.
move=> E; have E' : same_invariants (table x') (table x) by case: E => [e1 e2]; split=> *; rewrite ?e1 ?e2.
have L0 : 0 <= budget p (paper_b (table x)) by rewrite (le_trans ler01) // budget_ge1.
have g : covers p (paper_b (table x)) (budget p (paper_b (table x))) by apply: covers_paper.
split; first by apply: (psa_dp _ E (bmax_paper _)).
by rewrite dHamC; apply: (psa_dp _ E' _ L0 g); rewrite (bmax_invariant E') bmax_paper.
Qed.

End Theorem1.
