(* Two tables of one universe are joined by few exchanges of two records: Theorem N of swapping/proof.md.

   The records that Lemma 5 moves can be chosen so that no cycle meets a hold value or a swap value twice.  A cycle of r
   records is r - 1 exchanges, so a factor for one exchange gives a factor for every pair, for any mechanism on tables. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify.
From Stirred Require Import derangements one_stratum alignment.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Orbits.
Variable T : finType.
Implicit Types r : {perm T}.

Lemma moved_of_porbit r (i j : T) : j \in porbit r i -> j != i -> i \in moved r.
Proof.
case/porbitP => k ->; apply: contraR; rewrite inE negbK => /eqP ri; apply/eqP.
by elim: k => [|k IH]; rewrite ?expg0 ?perm1 // expgSr permM IH.
Qed.

Lemma moved_porbit r i : (i \in moved r) = (1 < #|porbit r i|).
Proof.
apply/idP/card_gt1P => [ri|[x [y [xi yi xy]]]].
  exists i, (r i); split; rewrite ?porbit_id ?mem_porbit1 //; last by rewrite eq_sym; move: ri; rewrite inE.
  by have := mem_porbit r 1 i; rewrite expg1.
have [xi'|/eqP xi'] := eqVneq x i; last by apply: moved_of_porbit xi _; apply/eqP.
by apply: moved_of_porbit yi _; rewrite -xi' eq_sym.
Qed.

Lemma sum_porbits r : \sum_(O in porbits r) #|O| = #|T|.
Proof.
rewrite -[RHS]sum1_card (partition_big (porbit r) (mem (porbits r))) /=; last by move=> i _; apply: imset_f.
apply: eq_bigr => O /imsetP[x _ ->]; rewrite -sum1_card; apply: eq_bigl => i.
by rewrite eq_porbit_mem.
Qed.

Lemma sum_porbits_moved r : \sum_(O in porbits r | 1 < #|O|) #|O| = #|moved r|.
Proof.
rewrite -[RHS]sum1_card (partition_big (porbit r) (fun O => (O \in porbits r) && (1 < #|O|))) /=; last first.
  by move=> i; rewrite moved_porbit => ->; rewrite andbT; apply: imset_f.
apply: eq_bigr => O /andP[/imsetP[x _ ->] gt1]; rewrite -sum1_card; apply: eq_bigl => i.
rewrite eq_porbit_mem moved_porbit; case: (boolP (i \in porbit r x)) => [ix|_]; rewrite ?andbF ?andbT //.
by rewrite (_ : porbit r i = porbit r x) ?gt1 //; apply/eqP; rewrite eq_porbit_mem.
Qed.

(* the lengths of the nontrivial cycles *)
Definition lengths r : seq nat := [seq #|(O : {set T})| | O <- enum [set O in porbits r | 1 < #|O|]].

Lemma sum_lengths r : sumn (lengths r) = #|moved r|.
Proof. by rewrite sumnE big_map big_enum /= -sum_porbits_moved; apply: eq_bigl => O; rewrite !inE. Qed.

Lemma card_porbits_lengths r : #|T| - #|porbits r| = \sum_(k <- lengths r) k.-1.
Proof.
rewrite big_map big_enum /= -(sum_porbits r) -sum1_card -sumnB; last first.
  by move=> O /imsetP[x _ ->]; rewrite card_gt0; apply/set0Pn; exists x; apply: porbit_id.
rewrite (bigID (fun O : {set T} => 1 < #|O|)) /= [X in _ + X]big1 ?addn0; last first.
  by move=> O /andP[_]; lia.
by apply: eq_big => [O|O _]; rewrite ?inE ?subn1.
Qed.

Lemma porbits_tperm r (i j : T) : i != j -> j \in porbit r i -> #|porbits (tperm i j * r)%g| = #|porbits r|.+1.
Proof.
move=> ij ji; have := porbits_mul_tperm r i j.
by rewrite /= porbit_sym ji /= double0 addn0 ij addn1.
Qed.

Lemma porbits_tpermr r (i j : T) : i != j -> j \in porbit r i -> #|porbits (r * tperm i j)%g| = #|porbits r|.+1.
Proof.
move=> ij ji; rewrite -porbitsV invMg tpermV porbits_tperm // ?porbitsV //.
by rewrite porbitV.
Qed.
End Orbits.

Section Aligned.
Variables (n : nat) (H S : finType).
Variables (h h' : 'I_n -> H) (s s' : 'I_n -> S).
Hypothesis hold_margin : forall a, #|[set i | h i == a]| = #|[set i | h' i == a]|.
Hypothesis swap_margin : forall b, #|[set i | s i == b]| = #|[set i | s' i == b]|.
Implicit Types b r : 'S_n.

Definition aligned (br : 'S_n * 'S_n) : bool :=
  [&& [forall i, h' (br.1 i) == h i], [forall i, s' (br.1 i) == s (br.2 i)], #|moved br.2| == dist h h' s s' &
    [forall i in moved br.2, forall j in moved br.2, (h i, s i) != (h j, s (br.2 j))]].

(* The moved records of Lemma 5 leave cells with a surplus for cells with a deficit. *)
Lemma aligned_exists : exists br, aligned br.
Proof.
have [b [r [bh bs rD _]]] := lemma5 hold_margin swap_margin; exists (b, r).
apply/and4P; split; rewrite /= ?rD //; try by apply/forallP => i; rewrite ?bh ?bs.
pose D c := #|[set i in moved r | (h i, s i) == c]|.
pose A c := #|[set i in moved r | (h i, s (r i)) == c]|.
have E c : #|[set i | (h i, s i) == c]| - #|[set i | (h' i, s' i) == c]| = D c - A c.
  rewrite -[X in _ - X](card_preim b) -(cardsID (moved r)) -[X in _ - X](cardsID (moved r)).
  set u := _ :&: _; set v := _ :\: _; set u' := _ :&: _; set v' := _ :\: _.
  have -> : u = [set i in moved r | (h i, s i) == c] by apply/setP => i; rewrite !inE andbC.
  have -> : u' = [set i in moved r | (h i, s (r i)) == c] by apply/setP => i; rewrite !inE bh bs andbC.
  have -> : v = v'; last by rewrite -/(D c) -/(A c); lia.
  by apply/setP => i; rewrite !inE negbK bh bs; case: eqP => // ->.
have Z : \sum_c (D c - (D c - A c)) = 0.
  rewrite sumnB; last by move=> c _; lia.
  rewrite (_ : \sum_c D c = #|moved r|); last by rewrite -(sum_fibres (moved r) (fun i => (h i, s i))).
  by rewrite rD /dist (eq_bigr _ (fun c _ => E c)) subnn.
apply/forall_inP => i im; apply/forall_inP => j jm; apply/eqP => e.
have := Z; move/eqP; rewrite sum_nat_eq0 => /forallP/(_ (h i, s i))/=.
have : 0 < D (h i, s i) by rewrite card_gt0; apply/set0Pn; exists i; rewrite inE im eqxx.
have : 0 < A (h i, s i) by rewrite card_gt0; apply/set0Pn; exists j; rewrite inE jm -e eqxx.
by lia.
Qed.

(* It can be chosen so that no cycle meets a hold value or a swap value twice; the cycles are conformal: no cell is
   left by one record and entered by another. *)
Theorem short_cycles : exists b r,
  [/\ forall i, h' (b i) = h i, forall i, s' (b i) = s (r i), #|moved r| = dist h h' s s',
      forall i j, j \in porbit r i -> i != j -> (h i != h j) && (s i != s j)
    & forall i j, i \in moved r -> j \in moved r -> (h i, s i) != (h j, s (r j))].
Proof.
have [br0 Abr0] := aligned_exists.
case: (arg_maxnP (fun br : 'S_n * 'S_n => #|porbits br.2|) Abr0) => -[b r] /and4P[/= Eb Er Dr conf] max.
have bh i : h' (b i) = h i by apply/eqP; move/forallP: Eb; apply.
have bs i : s' (b i) = s (r i) by apply/eqP; move/forallP: Er; apply.
have cf i j : i \in moved r -> j \in moved r -> (h i, s i) != (h j, s (r j)).
  by move=> im jm; move/forall_inP: conf => /(_ i im)/forall_inP/(_ j jm).
exists b, r; split=> //; first exact/eqP.
move=> i j ji ij; apply/andP.
have im : i \in moved r by apply: moved_of_porbit ji _; rewrite eq_sym.
have jm : j \in moved r by apply: (@moved_of_porbit _ _ _ i); rewrite // porbit_sym.
pose t := tperm i j.
have tm k : (t k \in moved r) = (k \in moved r) by rewrite /t; case: tpermP => [->|->|//]; rewrite im jm.
split; apply/eqP => e.
- have te k : h (t k) = h k by rewrite /t; case: tpermP => [->|->|].
  suff Abr : aligned ((t * b)%g, (t * r)%g).
    by have := max _ Abr; rewrite /= porbits_tperm // /geq /= ltnn.
  have M : moved (t * r)%g = moved r.
    apply/setP => k; case: (boolP (k \in moved r)) => km.
      rewrite inE permM; apply/eqP => rk; have := cf k (t k) km; rewrite tm te rk eqxx.
      by move=> /(_ km).
    apply/negbTE; rewrite inE negbK permM (_ : t k = k); first by move: km; rewrite inE negbK.
    by rewrite /t tpermD //; apply: contraNneq km => <-.
  apply/and4P; split; rewrite /= ?M //.
  + by apply/forallP => k; rewrite permM bh te.
  + by apply/forallP => k; rewrite !permM bs.
  + apply/forall_inP => k km; apply/forall_inP => l lm; rewrite permM -(te l).
    by apply: cf; rewrite ?tm.
- have te k : s (t k) = s k by rewrite /t; case: tpermP => [->|->|].
  suff Abr : aligned (b, (r * t)%g).
    by have := max _ Abr; rewrite /= porbits_tpermr // /geq /= ltnn.
  have M : moved (r * t)%g = moved r.
    apply/setP => k; case: (boolP (k \in moved r)) => km.
      rewrite inE permM; apply/eqP => rk; have := cf k k km km; rewrite -[s (r k)]te rk.
      by rewrite eqxx.
    apply/negbTE; rewrite inE negbK permM; move: (km); rewrite inE negbK => /eqP ->.
    by rewrite /t tpermD //; apply: contraNneq km => <-.
  apply/and4P; split; rewrite /= ?M //.
  + by apply/forallP => k; rewrite permM te bs.
  + apply/forall_inP => k km; apply/forall_inP => l lm; rewrite permM te.
    exact: cf.
Qed.
End Aligned.

Section Files.
Variable C : finType.
(* Every table is the table of a file. *)
Lemma file_of n (N : {ffun C -> nat}) : \sum_c N c = n ->
  exists x : 'I_n -> C, forall c, #|[set i | x i == c]| = N c.
Proof.
move=> En; pose sq := flatten [seq nseq (N c) c | c <- enum C].
have sz : size sq == n.
  rewrite size_flatten /shape -map_comp sumnE big_map big_enum /= -En.
  by apply/eqP; apply: eq_bigr => c _; rewrite size_nseq.
exists (tnth (Tuple sz)) => c; rewrite -sum1dep_card.
rewrite -(big_tuple _ _ (Tuple sz) (fun c' => c' == c) (fun=> 1)) sum1_count /=.
rewrite /sq count_flatten -map_comp sumnE big_map big_enum /= (bigD1 c) //= count_nseq /= eqxx mul1n.
by rewrite big1 ?addn0 // => c' /negbTE nc; rewrite count_nseq /= nc mul0n.
Qed.
End Files.

Section Tables.
Variables H S : finType.
Local Notation table := {ffun H * S -> nat}.
Implicit Types (N y : table) (c : seq table).

Definition rows N (a : H) : nat := \sum_b N (a, b).
Definition cols N (b : S) : nat := \sum_a N (a, b).
(* the universe: the same hold margin and the same swap margin *)
Definition sameU N y : bool := [forall a, rows N a == rows y a] && [forall b, cols N b == cols y b].
(* half the l1 distance *)
Definition dist2 N y : nat := \sum_c (N c - y c).
(* two tables of one universe that differ by one exchange of two records *)
Definition adj N y : bool := sameU N y && (dist2 N y == 2).

Lemma sameUP N y : reflect ((forall a, rows N a = rows y a) /\ (forall b, cols N b = cols y b)) (sameU N y).
Proof.
apply: (iffP andP) => -[Eh Es]; first by split=> *; apply/eqP; [move/forallP: Eh | move/forallP: Es]; apply.
by split; apply/forallP => *; rewrite ?Eh ?Es.
Qed.

Lemma sameU_refl N : sameU N N. Proof. exact/sameUP. Qed.
Lemma sameU_sym N y : sameU N y -> sameU y N.
Proof. by move=> /sameUP[e1 e2]; apply/sameUP; split=> *; rewrite ?e1 ?e2. Qed.
Lemma sameU_trans N y z : sameU N y -> sameU y z -> sameU N z.
Proof. by move=> /sameUP[e1 e2] /sameUP[f1 f2]; apply/sameUP; split=> *; rewrite ?e1 ?e2 ?f1 ?f2. Qed.

Section OneFile.
Variables (n : nat) (h : 'I_n -> H).
Implicit Types s : 'I_n -> S.
Definition tab2 (h' : 'I_n -> H) s : table := [ffun c => #|[set i | (h' i, s i) == c]|].

Lemma rows_tab2 h' s a : rows (tab2 h' s) a = #|[set i | h' i == a]|.
Proof.
have := hold_fibre setT h' s a; rewrite (_ : [set i in _ | _] = [set i | h' i == a]); last by apply/setP => i; rewrite !inE.
by move=> ->; apply: eq_bigr => b _; rewrite ffunE; apply: eq_card => i; rewrite !inE.
Qed.
Lemma cols_tab2 h' s b : cols (tab2 h' s) b = #|[set i | s i == b]|.
Proof.
have := swap_fibre setT h' s b; rewrite (_ : [set i in _ | _] = [set i | s i == b]); last by apply/setP => i; rewrite !inE.
by move=> ->; apply: eq_bigr => a _; rewrite ffunE; apply: eq_card => i; rewrite !inE.
Qed.

Lemma dist2_tab2 h' s s' : dist2 (tab2 h s) (tab2 h' s') = dist h h' s s'.
Proof. by rewrite /dist2 /dist; apply: eq_bigr => c _; rewrite !ffunE. Qed.

Lemma tab2_ext s s' : s =1 s' -> tab2 h s = tab2 h s'.
Proof. by move=> e; apply/ffunP => c; rewrite !ffunE; apply: eq_card => i; rewrite !inE e. Qed.

Lemma sameU_perm s (r : 'S_n) : sameU (tab2 h s) (tab2 h (s \o r)).
Proof.
apply/sameUP; split=> [a|b]; first by rewrite !rows_tab2.
by rewrite !cols_tab2 -[LHS](card_preim r); apply: eq_card => i; rewrite !inE.
Qed.

Lemma dist_perm s (r : 'S_n) : dist2 (tab2 h s) (tab2 h (s \o r)) <= #|moved r|.
Proof.
rewrite -(sum_fibres (moved r) (fun i => (h i, s i))); apply: leq_sum => c _; rewrite !ffunE leq_subLR.
apply: leq_trans (leq_card_setU _ _); apply: subset_leq_card; apply/subsetP => i.
rewrite !inE => e; rewrite e andbT; case: (r i =P i) => [ri|]; last by rewrite orbT.
by rewrite /= ri e.
Qed.

(* One exchange changes nothing, or is a step of distance 2. *)
Lemma exchange s i j : tab2 h (s \o tperm i j) = tab2 h s \/ adj (tab2 h s) (tab2 h (s \o tperm i j)).
Proof.
set s1 := s \o _; have U : sameU (tab2 h s) (tab2 h s1) := sameU_perm s (tperm i j).
have m2 : #|moved (tperm i j)| <= 2.
  apply: (@leq_trans #|[set i; j]|); last by rewrite cards2; case: (_ != _).
  by apply: subset_leq_card; apply/subsetP => k; rewrite !inE; case: tpermP => [->|->|]; rewrite ?eqxx ?orbT.
have le2 := leq_trans (dist_perm s (tperm i j)) m2; rewrite -/s1 in le2.
have hm a : #|[set k | h k == a]| = #|[set k | h k == a]| by [].
have sm b : #|[set k | s k == b]| = #|[set k | s1 k == b]|.
  by have /sameUP[_] := U => /(_ b); rewrite !cols_tab2.
have n1 : dist2 (tab2 h s) (tab2 h s1) != 1.
  by rewrite dist2_tab2; have [_ [r [_ _ <- _]]] := lemma5 hm sm; apply: card_moved_neq1.
case: (eqVneq (dist2 (tab2 h s) (tab2 h s1)) 0) => [d0|nd]; [left|right]; last first.
  by rewrite /adj U /=; move: le2 n1 nd; lia.
have := dist_l1 h h s s1; rewrite -dist2_tab2 d0 => /eqP; rewrite sum_nat_eq0 => /forallP Z.
by apply/ffunP => c; rewrite !ffunE; have := Z c; rewrite /=; lia.
Qed.

(* A permutation of the records is a chain of exchanges, one less than its length for each cycle. *)
Lemma chain_perm s (r : 'S_n) : exists c,
  [/\ path adj (tab2 h s) c, last (tab2 h s) c = tab2 h (s \o r) & size c <= n - #|porbits r|].
Proof.
move: {2}(n - #|porbits r|) (leqnn (n - #|porbits r|)) => k; elim: k r => [|k IH] r rk.
  exists [::]; split=> //=; apply: tab2_ext => i /=; congr (s _).
  have le := sum_porbits r; rewrite card_ord in le.
  apply/esym/eqP; case: (boolP (i \in moved r)) => [im|]; last by rewrite inE negbK.
  have := card_porbits_lengths r; rewrite card_ord; move: rk; rewrite leqn0 => /eqP -> /esym/eqP.
  rewrite big_map big_enum /= sum_nat_eq0 => /forallP/(_ (porbit r i)); rewrite !inE imset_f //=.
  by move: im; rewrite moved_porbit; case: #|porbit r i| => [|[|m]].
case: (pickP (mem (moved r))) => [i /= im|none]; last first.
  exists [::]; split=> //=; apply: tab2_ext => i /=; congr (s _).
  by have /= := none i; rewrite inE => /negbFE/eqP.
have ij : i != r i by rewrite eq_sym; move: im; rewrite inE.
have ji : r i \in porbit r i by have := mem_porbit r 1 i; rewrite expg1.
have Er := porbits_tperm ij ji.
have le : #|porbits (tperm i (r i) * r)%g| <= n.
  by rewrite -[X in _ <= X]card_ord leq_imset_card.
have [|c [Pc Lc Sc]] := IH (tperm i (r i) * r)%g; first by rewrite Er; move: rk; lia.
have E : tab2 h (s \o r) = tab2 h ((s \o (tperm i (r i) * r)%g) \o tperm i (r i)).
  by apply: tab2_ext => l; rewrite /= permM tpermK.
case: (exchange (s \o (tperm i (r i) * r)%g) i (r i)) => [e|e].
  exists c; split=> //; first by rewrite Lc E e.
  by apply: leq_trans Sc _; rewrite Er leq_sub2l.
exists (rcons c (tab2 h (s \o r))); rewrite last_rcons rcons_path Pc Lc E e size_rcons; split=> //.
by rewrite (leq_ltn_trans Sc) // Er ltn_sub2l // -Er.
Qed.
End OneFile.

(* the number of rows and columns that are not empty, whichever is less *)
Definition width N : nat := minn #|[set a | 0 < rows N a]| #|[set b | 0 < cols N b]|.

Theorem exchange_chain N N' : sameU N N' -> exists (rs : seq nat) (c : seq table),
  [/\ all (fun k => 1 < k <= width N) rs, sumn rs = dist2 N N', path adj N c, last N c = N'
    & size c <= \sum_(k <- rs) k.-1].
Proof.
move=> U; have [Eh Es] := sameUP _ _ U.
have tot y : \sum_c y c = \sum_a rows y a by rewrite /rows pair_bigA /=; apply: eq_bigr => -[].
have [x Ex] := file_of (erefl (\sum_c N c)); have [|x' Ex'] := @file_of _ (\sum_c N c) N'.
  by rewrite !tot; apply: eq_bigr => a _; rewrite Eh.
set n := (\sum_c N c) in x Ex x' Ex'.
pose h i := (x i).1; pose s i := (x i).2; pose h' i := (x' i).1; pose s' i := (x' i).2.
have EN : N = tab2 h s.
  by apply/ffunP => c; rewrite ffunE -Ex; apply: eq_card => i; rewrite !inE /h /s; case: (x i).
have EN' : N' = tab2 h' s'.
  by apply/ffunP => c; rewrite ffunE -Ex'; apply: eq_card => i; rewrite !inE /h' /s'; case: (x' i).
have hm a : #|[set i | h i == a]| = #|[set i | h' i == a]|.
  by rewrite -(rows_tab2 h s) -(rows_tab2 h' s') -EN -EN' Eh.
have sm b : #|[set i | s i == b]| = #|[set i | s' i == b]|.
  by rewrite -(cols_tab2 h s) -(cols_tab2 h' s') -EN -EN' Es.
have [b [r [bh bs rD cyc _]]] := short_cycles hm sm.
have [c [Pc Lc Sc]] := chain_perm h s r.
exists (lengths r), c; split.
- apply/allP => k /mapP[O]; rewrite mem_enum !inE => /andP[/imsetP[i _ ->] gt1] ->; rewrite gt1 /= leq_min.
  have hin (Y : finType) (f : 'I_n -> Y) (A : {set Y}) : {in porbit r i &, injective f} ->
      (forall j, f j \in A) -> #|porbit r i| <= #|A|.
    move=> fi fA; rewrite -(card_in_imset fi); apply: subset_leq_card.
    by apply/subsetP => _ /imsetP[j _ ->].
  have orb j l : j \in porbit r i -> l \in porbit r i -> l \in porbit r j.
    by rewrite -!eq_porbit_mem => /eqP -> ->.
  apply/andP; split.
    apply: (hin _ h) => [j l ji li e|j]; last first.
      by rewrite inE EN rows_tab2 card_gt0; apply/set0Pn; exists j; rewrite inE.
    by apply/eqP; case: eqVneq => // nl; have := cyc j l (orb _ _ ji li) nl; rewrite e eqxx.
  apply: (hin _ s) => [j l ji li e|j]; last first.
    by rewrite inE EN cols_tab2 card_gt0; apply/set0Pn; exists j; rewrite inE.
  by apply/eqP; case: eqVneq => // nl; have := cyc j l (orb _ _ ji li) nl; rewrite e eqxx andbF.
- by rewrite sum_lengths rD EN EN' dist2_tab2.
- by rewrite EN.
- rewrite [in LHS]EN Lc EN'; apply/ffunP => d; rewrite !ffunE -[RHS](card_preim b); apply: eq_card => i.
  by rewrite !inE bh bs.
- by have := card_porbits_lengths r; rewrite card_ord => <-.
Qed.

(* So at most (1 - 1/r) exchanges per unit of distance. *)
Corollary exchange_number N N' : sameU N N' -> exists c,
  [/\ path adj N c, last N c = N' & size c * width N <= (width N).-1 * dist2 N N'].
Proof.
move=> U; have [rs [c [Ars Srs Pc Lc Sc]]] := exchange_chain U; exists c; split=> //.
rewrite -Srs (leq_trans (leq_mul Sc (leqnn _))) // sumnE big_distrl big_distrr /=.
rewrite big_seq [X in _ <= X]big_seq; apply: leq_sum => k /(allP Ars)/andP[k1 kr].
by move: k1 kr; case: k => // k; case: (width N) => //= w _ kw; rewrite !mulnS [w * k]mulnC leq_add2r.
Qed.

Section Kernel.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.
Variables (R : realFieldType) (Z : Type) (P : table -> Z -> R).
Hypothesis P_ge0 : forall y z, 0 <= P y z.

Lemma chain_loss (K : R) N c z : 0 <= K ->
  (forall y y', sameU N y -> adj y y' -> P y z <= K * P y' z) ->
  path adj N c -> P N z <= K ^+ size c * P (last N c) z.
Proof.
move=> K0; elim: c N => [|y c IH] N st /=; first by rewrite expr0 mul1r.
case/andP => a pc; have U : sameU N y by case/andP: a.
apply: le_trans (st _ _ (sameU_refl N) a) _; rewrite exprS -mulrA ler_wpmul2l //.
by apply: IH => // u u' yu; apply: st; apply: sameU_trans yu.
Qed.

(* Any mechanism: a factor K for one exchange inside the universe is a factor K^(sum (r_i - 1)) for any pair of it. *)
Theorem loss_cycles (K : R) N N' : 1 <= K -> sameU N N' ->
  (forall y y' z, sameU N y -> adj y y' -> P y z <= K * P y' z) ->
  exists rs : seq nat, [/\ all (fun k => 1 < k <= width N)%N rs, sumn rs = dist2 N N'
    & forall z, P N z <= K ^+ (\sum_(k <- rs) k.-1)%N * P N' z].
Proof.
move=> K1 U st; have K0 := le_trans ler01 K1.
have [rs [c [Ars Srs Pc Lc Sc]]] := exchange_chain U; exists rs; split=> // z.
apply: le_trans (chain_loss K0 (fun y y' => st y y' z) Pc) _.
by rewrite Lc ler_wpmul2r // ler_weexpn2l.
Qed.

(* Without roots: K = L^2 is a loss of (2 - 2/r) ln L for a unit of distance, r the smaller number of rows or columns. *)
Corollary loss_per_unit (L : R) N N' z : 1 <= L -> sameU N N' ->
  (forall y y' z, sameU N y -> adj y y' -> P y z <= L ^+ 2 * P y' z) ->
  P N z ^+ width N <= L ^+ ((width N).-1.*2 * dist2 N N') * P N' z ^+ width N.
Proof.
move=> L1 U st; have L0 := le_trans ler01 L1.
have [c [Pc Lc Sc]] := exchange_number U.
have h := chain_loss (exprn_ge0 2 L0) (fun y y' => st y y' z) Pc; rewrite Lc in h.
apply: (@le_trans _ _ ((L ^+ 2 ^+ size c * P N' z) ^+ width N)).
  by apply: ler_expn2r; rewrite ?nnegrE ?mulr_ge0 ?exprn_ge0.
rewrite exprMn ler_wpmul2r ?exprn_ge0 // -!exprM ler_weexpn2l //.
by move: Sc; rewrite -mul2n -!mulnA leq_mul2l.
Qed.
End Kernel.
End Tables.
