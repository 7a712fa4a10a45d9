(* Swap rates 0 and 1 have no finite budget (Propositions 6 and 7); Theorem B for two and for three records. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify ring.
From Stirred Require Import derangements algorithm one_stratum alignment strata theorem_1 by_size attained four_types results.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Zero.
Variables (R : realFieldType) (M H S : finType).
Local Notation record := (M * H * S)%type.
Local Notation tables := {ffun M * H * S -> nat}.

Lemma moved1 (T : finType) (g : {perm T}) : (moved g == set0) = (g == 1%g).
Proof.
apply/eqP/eqP => [/setP e|->]; last by apply/setP => i; rewrite !inE perm1 eqxx.
by apply/permP => i; rewrite perm1; have := e i; rewrite !inE => /negbFE/eqP.
Qed.

Lemma selection0 (T : finType) (A B : {set T}) : B \subset A -> selection (0 : R) A B = (B == set0)%:R.
Proof.
move=> BA; case: eqP => [->|/eqP/set0Pn[i iB]].
  by rewrite /selection big1 // => i _; rewrite inE subr0.
by rewrite /selection (bigD1 i) ?(subsetP BA) //= iB mul0r.
Qed.

(* Nobody is selected: one draw, and nothing moves. *)
Lemma run0 (T : finType) (A : {set T}) t g : run (0 : R) A t.+1 g = (g == 1%g)%:R.
Proof.
rewrite /= (bigD1 set0) ?sub0set //= big1 ?addr0; last first.
  by move=> B /andP[BA B0]; rewrite selection0 // (negbTE B0) mul0r.
rewrite selection0 ?sub0set // eqxx mul1r cards0 /= /uniform moved1; case: eqP => // _.
by rewrite card_moved cards0 der0 invr1.
Qed.

Theorem rate_zero n t (x : 'I_n -> record) (Q : pred tables) : PrRun (0 : R) t.+1 x Q = (Q (table x))%:R.
Proof.
rewrite /PrRun big_mkcond (bigD1 ([ffun=> 1%g] : {ffun M -> 'S_n})) // [X in GRing.add_comoid _ _ X]big1; last first.
  move=> f fn; case: ifP => // _.
  have [c fc] : exists c, f c != 1%g.
    apply/existsP; apply: contraR fn => /existsPn h; apply/eqP/ffunP => c; rewrite ffunE.
    by apply/eqP; have := h c; rewrite negbK.
  by rewrite (bigD1 c) // run0 (negbTE fc) /= mul0r.
have -> : table (fun i => ((x i).1, swapped (fun i => (x i).1.1) (fun i => (x i).2) [ffun=> 1%g] i)) = table x.
  by apply: table_ext => i; rewrite !ffunE perm1 -surjective_pairing.
apply: (etrans (addr0 _)); case: (Q _) => //.
by rewrite big1 // => c _; rewrite run0 ffunE eqxx.
Qed.

(* The paper's Proposition 6: p = 0 has no finite budget in any universe with two tables. *)
Theorem proposition6 n t (x x' : 'I_n -> record) (L : R) : table x <> table x' ->
  ~ (forall Q, PrRun (0 : R) t.+1 x Q <= L * PrRun (0 : R) t.+1 x' Q).
Proof.
move=> ne /(_ (pred1 (table x))); rewrite !rate_zero /= eqxx.
by case: eqP => [e|_]; [case: ne | rewrite mulr0 ler10].
Qed.
End Zero.

Section One.
Variables (R : realFieldType) (n : nat) (H S : finType).
Hypothesis n2 : (1 < n)%N.
Implicit Types g r : 'S_n.

Lemma PrRun_file (p : R) t (h : 'I_n -> H) (s : 'I_n -> S) Q :
  PrRun p t (file h s) Q = \sum_(g : 'S_n | Q (table (file h (s \o g)))) run p setT t g.
Proof.
rewrite /PrRun (reindex (fun g : 'S_n => [ffun _ : unit => g])) /=; last first.
  by exists (fun f : {ffun unit -> 'S_n} => f tt) => [g _|f _]; [rewrite ffunE | apply/ffunP => -[]; rewrite ffunE].
apply: eq_big => [g|g _].
  by congr (Q _); apply: table_ext => i; rewrite /file !ffunE.
rewrite (big_pred1 tt) /=; last by case.
by rewrite ffunE; congr run; apply/setP => i; rewrite !inE.
Qed.

(* Everybody is selected. *)
Lemma run1 t g : run (1 : R) setT t.+1 g = uniform R setT g.
Proof.
rewrite /= (bigD1 setT) //= big1 ?addr0; last first.
  move=> B /andP[_ BT]; have [i iB] : exists i, i \notin B.
    apply/existsP; apply: contraR BT => /existsPn h; apply/eqP/setP => i.
    by rewrite inE; have := h i; rewrite negbK.
  by rewrite /selection (bigD1 i) ?inE //= (negbTE iB) subrr !mul0r.
rewrite /selection big1 ?mul1r; last by move=> i _; rewrite inE.
by rewrite cardsT card_ord (gtn_eqF n2).
Qed.

(* The paper's Proposition 7: at p = 1 the file itself never comes out of all different values, from a deranged one
   it does. *)
Theorem proposition7 t (h : 'I_n -> H) (s : 'I_n -> S) : injective h -> injective s ->
  exists r, moved r = setT /\ forall L : R,
  ~ (forall Q, PrRun (1 : R) t.+1 (file h (s \o r)) Q <= L * PrRun (1 : R) t.+1 (file h s) Q).
Proof.
move=> hi si.
have : (0 < #|[set r : 'S_n | moved r == setT]|)%N.
  by rewrite card_moved cardsT card_ord der_gt0 //; move: n2; clear; lia.
rewrite card_gt0 => /set0Pn[r]; rewrite inE => /eqP mr; exists r; split=> // L.
move=> /(_ (pred1 (table (file h s)))); rewrite !PrRun_file [X in _ <= _ * X]big1; last first.
  move=> g /eqP e; rewrite run1 /uniform; case: eqP => // mg; exfalso.
  have i : 'I_n := Ordinal (ltnW n2).
  have : (0 < table (file h (s \o g)) (tt, h i, s (g i)))%N.
    by rewrite ffunE card_gt0; apply/set0Pn; exists i; rewrite inE.
  rewrite e ffunE card_gt0 => /set0Pn[j]; rewrite inE => /eqP[/hi ji /si jg].
  by have : i \in moved g; [rewrite mg inE | rewrite inE -jg ji eqxx].
rewrite mulr0 leNgt => /negP; apply.
rewrite (bigD1 r^-1%g); last first.
  by apply/eqP; apply: table_ext => i; rewrite /file /= permKV.
apply: ltr_paddr.
  by apply: sumr_ge0 => g _; rewrite run1 /uniform; case: ifP => // _; rewrite invr_ge0 ler0n.
rewrite run1 /uniform movedV mr eqxx invr_gt0 ltr0n card_moved cardsT card_ord der_gt0 //.
by move: n2; clear; lia.
Qed.
End One.

(* With two hold values and two swap values there is such a universe, of two records. *)
Corollary proposition7_two (R : realFieldType) (H S : finType) t : (1 < #|H|)%N -> (1 < #|S|)%N ->
  exists x x' : 'I_2 -> unit * H * S, same_invariants (table x) (table x') /\
    forall L : R, ~ (forall Q, PrRun (1 : R) t.+1 x' Q <= L * PrRun (1 : R) t.+1 x Q).
Proof.
move=> /card_gt1P[h0 [h1 [_ _ hn]]] /card_gt1P[s0 [s1 [_ _ sn]]].
pose two (Y : Type) (a b : Y) (i : 'I_2) := if i == ord0 then a else b.
have ti (Y : eqType) (a b : Y) : a != b -> injective (two Y a b).
  move=> ab i j; rewrite /two; case: eqP => [->|ni]; case: eqP => [->|nj] // e.
  - by rewrite e eqxx in ab.
  - by rewrite e eqxx in ab.
  - by apply: val_inj; case: i j ni nj {e} => [[|[|i]] hi] [[|[|j]] hj] // ni nj; [case: ni | case: nj]; apply: val_inj.
have [|r [_ h]] := @proposition7 R 2 H S _ t (two H h0 h1) (two S s0 s1) (ti _ _ _ hn) (ti _ _ _ sn) => //.
exists (file (two H h0 h1) (two S s0 s1)), (file (two H h0 h1) (two S s0 s1 \o r)); split=> //.
exact: file_invariants.
Qed.

Section Small.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Local Notation o := (odds p).

Lemma bmax_le n (x : 'I_n -> unit * 'I_n * 'I_n) : (bmax (table x) <= n)%N.
Proof. by apply/bigmax_leqP => m _; rewrite -n_mE -[X in (_ <= X)%N]card_ord max_card. Qed.

(* Theorem B for files of two records. *)
Theorem theoremB_exact2 (L : R) : 0 <= L -> valid p 2 L <-> (o <= L /\ 1 <= (L * o) ^+ 2).
Proof.
move=> L0; split=> [v|[oL VL] x x' Q E].
  have [oL h] := theoremB_lower p_gt0 p_lt1 (isT : (1 < 2)%N) L0 v; split=> //.
  by have := h isT; rewrite subnn (_ : der 2 = 1%N) // der0 mulr1.
exact: (psa_dp p_gt0 p_lt1 Q E (bmax_le x) L0 (covers_tight2 p_gt0 p_lt1 oL VL)).
Qed.

(* Theorem B for files of three records. *)
Theorem theoremB_exact3 (L : R) : 0 <= L ->
  valid p 3 L <-> [/\ o <= L, 2%:R <= (L * o) ^+ 3 & 2%:R <= L ^+ 2 * o].
Proof.
move=> L0; have o0 := odds_gt0 p_gt0 p_lt1; have d3 : der 3 = 2%N by [].
split=> [v|[oL VL3 VL2] x x' Q E]; last first.
  exact: (psa_dp p_gt0 p_lt1 Q E (bmax_le x) L0 (covers_tight3 p_gt0 p_lt1 oL VL3 VL2)).
have [oL _] := theoremB_lower p_gt0 p_lt1 (isT : (1 < 3)%N) L0 v; split=> //.
  have : (0 < #|[set r : 'S_3 | moved r == setT]|)%N by rewrite card_moved cardsT card_ord.
  rewrite card_gt0 => /set0Pn[r]; rewrite inE => /eqP mr.
  have := valid_labelled p_gt0 p_lt1 1%g r v; rewrite mul1g movedV mr cardsT card_ord.
  rewrite (_ : moved 1 = set0); last by apply/eqP; rewrite moved1.
  rewrite cards0 /weight expr0 der0 d3 divr1 mulrA ler_pdivl_mulr ?ltr0n // mul1r -exprMn //.
pose a : 'I_3 := inord 0; pose b : 'I_3 := inord 1; pose c : 'I_3 := inord 2.
have [ab bc ca] : [/\ a != b, b != c & c != a] by rewrite -!val_eqE /= !inordK.
have [ba cb ac] : [/\ b != a, c != b & a != c] by rewrite ![_ == a]eq_sym [c == b]eq_sym [a == c]eq_sym.
have all3 i : [|| i == a, i == b | i == c].
  by rewrite -!val_eqE /= !inordK //; case: i => [[|[|[|]]]].
have M : moved (tperm a b * (tperm b c)^-1)%g = setT.
  apply/setP => i; rewrite !inE permM tpermV; have /or3P[/eqP->|/eqP->|/eqP->] := all3 i.
  - by rewrite tpermL tpermL ca.
  - by rewrite tpermR tpermD.
  - by rewrite (tpermD ac bc) tpermR.
have := valid_labelled p_gt0 p_lt1 (tperm a b) (tperm b c) v.
rewrite M !moved_tperm // !cards2 ab bc cardsT card_ord /weight d3 (_ : der 2 = 1%N) // divr1 mulrA ler_pdivl_mulr ?ltr0n //.
by rewrite [o ^+ 3]exprS mulrA [o ^+ 2 * _]mulrC ler_pmul2r ?exprn_gt0.
Qed.
End Small.
