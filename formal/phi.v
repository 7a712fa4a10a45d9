(* The closed form of Phi_t by binomials and by Delta(k, t), as the code evaluates it. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify.
From Stirred Require Import derangements algorithm one_stratum alignment strata theorem_1 by_size attained four_types exchanges two_types.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

(* permutations of y + t points that move each of y given ones *)
Definition Delta (y t : nat) : nat := (\sum_(j < t.+1) 'C(t, j) * der (y + j))%N.

(* (I1) *)
Lemma DeltaS y t : Delta y t.+1 = (Delta y.+1 t + Delta y t)%N.
Proof.
rewrite /Delta big_ord_recl bin0 [X in _ = (_ + X)%N]big_ord_recl bin0 addnCA; congr (_ + _)%N.
rewrite (eq_bigr (fun i : 'I_t.+1 => 'C(t, i.+1) * der (y + i.+1) + 'C(t, i) * der (y.+1 + i)))%N; last first.
  by move=> i _; rewrite lift0 binS mulnDl addSnnS.
by rewrite big_split /= addnC; congr (_ + _)%N; rewrite big_ord_recr /= bin_small // mul0n addn0.
Qed.

Lemma Delta0 t : Delta 0 t = t`!.
Proof. by rewrite -dsumE /Delta /dsum; apply: eq_bigr => j _; rewrite add0n. Qed.

(* (I2) *)
Lemma Delta_rec y t : Delta y.+1 t = ((y + t) * Delta y t + y * Delta y.-1 t)%N.
Proof.
have D0 z : Delta z 0 = der z by rewrite /Delta big_ord_recl big_ord0 bin0 mul1n !addn0.
elim: t y => [|t IH] y; first by rewrite !D0 addn0; case: y => [|y] //=; rewrite derSS mulnDr.
case: y => [|y]; rewrite /= ?DeltaS; first by have := IH 0%N; have := IH 1%N; rewrite /=; lia.
by have := IH y.+1; have := IH y.+2; rewrite /=; nia.
Qed.

(* The alternating sum of proof.md: Delta(y + t, t). *)
Definition Delta_alternating_sum (y t : nat) : int := \sum_(j < y.+1) (-1) ^+ j * ('C(y, j) * (y + t - j)`!)%:Z.

Lemma Delta_alternating_sumS y t : Delta_alternating_sum y.+1 t = Delta_alternating_sum y t.+1 - Delta_alternating_sum y t.
Proof.
rewrite /Delta_alternating_sum big_ord_recl bin0 [X in _ = X - _]big_ord_recl bin0 -addrA addSnnS; congr (_ + _).
rewrite (eq_bigr (fun i : 'I_y.+1 => (-1) ^+ i.+1 * ('C(y, i.+1) * (y + t.+1 - i.+1)`!)%:Z
    - (-1) ^+ i * ('C(y, i) * (y + t - i)`!)%:Z)); last first.
  move=> i _; rewrite lift0 binS mulnDl PoszD mulrDr; congr (_ + _).
  by rewrite addnS subSS exprS mulN1r mulNr.
by rewrite sumrB; congr (_ - _); rewrite big_ord_recr /= bin_small // mul0n mulr0 addr0.
Qed.

Theorem Delta_alternating y t : (Delta y t)%:Z = Delta_alternating_sum y t.
Proof.
elim: y t => [|y IH] t.
  by rewrite Delta0 /Delta_alternating_sum big_ord_recl big_ord0 bin0 mul1n expr0 mul1r addr0 add0n subn0.
by rewrite Delta_alternating_sumS -!IH DeltaS PoszD addrK.
Qed.

Section Sums.
Variables (R : realFieldType) (T : finType).
Implicit Types (A X : {set T}) (g : {perm T}).

(* A sum over the permutations of A that looks at how many points of X they move. *)
Lemma sum_perm_on A X (G : nat -> R) : X \subset A ->
  \sum_(g : {perm T} | moved g \subset A) G #|moved g :&: X| =
  \sum_(y < #|X|.+1) ('C(#|X|, y) * Delta y (#|A| - #|X|))%:R * G y.
Proof.
move=> XA; rewrite (partition_big (@moved T) (fun V => V \subset A)) //=.
rewrite (eq_bigr (fun V : {set T} => (der #|V|)%:R * G #|V :&: X|)); last first.
  move=> V VA; rewrite (eq_bigr (fun=> G #|V :&: X|)); last by move=> g /andP[_ /eqP ->].
  rewrite mulr_natl -card_moved -sumr_const; apply: eq_bigl => g; rewrite inE.
  by case: (moved g =P V) => [->|]; rewrite ?VA ?andbF.
rewrite (reindex_onto (fun YU : {set T} * {set T} => YU.1 :|: YU.2) (fun V => (V :&: X, V :\: X))) /=; last first.
  by move=> V _; rewrite setID.
rewrite (eq_bigl (fun YU : {set T} * {set T} => (YU.1 \subset X) && (YU.2 \subset A :\: X))); last first.
  move=> [Y U] /=; apply/andP/andP => [[YUA /eqP[e1 e2]]|[YX UA]].
    split; first by rewrite -e1 subsetIr.
    by rewrite -e2; apply: setSD.
  have UX i : i \in U -> i \notin X by move=> /(subsetP UA); rewrite inE => /andP[].
  split.
    rewrite subUset (subset_trans YX XA) /=; apply: subset_trans UA _; exact: subsetDl.
  apply/eqP; congr (_, _); apply/setP => i; rewrite !inE; case: (boolP (i \in X)) => iX; rewrite ?andbT ?andbF /=.
  - by case: (boolP (i \in U)) => [/UX|]; rewrite ?iX ?orbF.
  - by apply/esym/negP => /(subsetP YX); rewrite (negbTE iX).
  - by apply/esym/negP => /UX; rewrite iX.
  - by case: (boolP (i \in Y)) => // /(subsetP YX); rewrite (negbTE iX).
rewrite -(pair_big (fun Y : {set T} => Y \subset X) (fun U : {set T} => U \subset A :\: X)
  (fun Y U => (der #|Y :|: U|)%:R * G #|(Y :|: U) :&: X|)) /=.
rewrite (eq_bigr (fun Y : {set T} => (Delta #|Y| (#|A| - #|X|))%:R * G #|Y|)); last first.
  move=> Y YX; rewrite (eq_bigr (fun U : {set T} => (der (#|Y| + #|U|))%:R * G #|Y|)); last first.
    move=> U UA; have dis : [disjoint Y & U].
      rewrite -setI_eq0; apply/eqP/setP => i; rewrite !inE; apply/negP => /andP[/(subsetP YX) iX /(subsetP UA)].
      by rewrite inE iX.
    rewrite cardsU (eqP (_ : Y :&: U == set0)) ?setI_eq0 // cards0 subn0; congr (_ * G _).
    apply: eq_card => i; rewrite !inE; case: (boolP (i \in U)) => [/(subsetP UA)|_].
      by rewrite inE => /andP[/negbTE iX _]; rewrite iX andbF; apply/esym/negP => /(subsetP YX); rewrite iX.
    by rewrite orbF; case: (boolP (i \in Y)) => // /(subsetP YX).
  rewrite -mulr_suml; congr (_ * _); rewrite (sum_subsets _ _ (fun k => (der (#|Y| + k))%:R)) cardsDS //.
  by rewrite /Delta natr_sum; apply: eq_bigr => j _; rewrite iter_addr addr0 natrM mulr_natl.
rewrite (sum_subsets _ _ (fun y => (Delta y (#|A| - #|X|))%:R * G y)); apply: eq_bigr => y _.
by rewrite iter_addr addr0 natrM -mulrA [RHS]mulr_natl.
Qed.

(* Permutations that keep A are pairs of permutations of A and of its complement. *)
Lemma sum_keep A (F : {perm T} -> R) :
  \sum_(g : {perm T} | g @^-1: A == A) F g =
  \sum_(g1 : {perm T} | moved g1 \subset A) \sum_(g2 : {perm T} | moved g2 \subset ~: A) F (g1 * g2)%g.
Proof.
have keep g : (g @^-1: A == A) -> forall i, (g i \in A) = (i \in A).
  by move=> /eqP/setP e i; have := e i; rewrite inE.
have nrm g : (g @^-1: A == A) -> g \in 'N(A | 'P)%g.
  by move=> /keep k; apply/astabsP => i; rewrite /= apermE k.
have nrmC g : (g @^-1: A == A) -> g \in 'N(~: A | 'P)%g.
  by move=> /keep k; apply/astabsP => i; rewrite /= apermE !in_setC k.
rewrite pair_big /= (reindex_onto (fun gg : {perm T} * {perm T} => (gg.1 * gg.2)%g)
  (fun g => (restr_perm A g, restr_perm (~: A) g))) /=; last first.
  move=> g kg; apply/permP => i; rewrite permM; case: (boolP (i \in A)) => iA.
    by rewrite (restr_permE (nrm _ kg) iA) (out_perm (restr_perm_on _ _)) // inE negbK keep.
  by rewrite (out_perm (restr_perm_on A _)) // (restr_permE (nrmC _ kg)) // inE.
apply: eq_bigl => -[g1 g2] /=; apply/andP/andP => [[kg /eqP[e1 e2]]|[m1 m2]].
  by split; rewrite moved_subE; [rewrite -e1 | rewrite -e2]; apply: restr_perm_on.
rewrite !moved_subE in m1 m2.
have out1 i : i \notin A -> g1 i = i by move=> iA; apply: (out_perm m1).
have out2 i : i \in A -> g2 i = i by move=> iA; apply: (out_perm m2); rewrite inE iA.
have c1 i : (g1 i \in A) = (i \in A) := perm_closed i m1.
have c2 i : (g2 i \in A) = (i \in A) by have := perm_closed i m2; rewrite !inE => /negb_inj.
have kg : (g1 * g2)%g @^-1: A == A by apply/eqP/setP => i; rewrite inE permM c2 c1.
split=> //; apply/eqP; congr (_, _); apply/permP => i; case: (boolP (i \in A)) => iA.
- by rewrite (restr_permE (nrm _ kg) iA) permM out2 ?c1.
- by rewrite (out_perm (restr_perm_on A _)) // out1.
- by rewrite (out_perm (restr_perm_on (~: A) _)) ?inE ?iA // out2.
- by rewrite (restr_permE (nrmC _ kg)) ?inE // permM out1.
Qed.
End Sums.

Section Closed.
Variables (R : realFieldType) (p : R) (n : nat) (h : 'I_n -> bool).
Local Notation A := (row1 h).
Implicit Types (g : 'S_n) (Z : {set 'I_n}).

(* Phi_t of proof.md, with k_i = t + y_i and A_i(k_i, t) = C(n_i - t, y_i) Delta(y_i, t) *)
Definition Phi_formula (n1 n2 t : nat) : R :=
  \sum_(y1 < (n1 - t).+1) ('C(n1 - t, y1) * Delta y1 t)%:R *
    \sum_(y2 < (n2 - t).+1) ('C(n2 - t, y2) * Delta y2 t)%:R * weight p (t.*2 + y1 + y2).

Lemma phi_closed Z : #|Z| = #|A| -> phi p h Z = Phi_formula #|A| #|~: A| #|A :\: Z|.
Proof.
move=> EZ; set t := #|A :\: Z|.
have ZA : #|Z :\: A| = t.
  by have := cardsID Z A; have := cardsID A Z; rewrite setIC EZ; move=> <- /addnI.
pose f i : 'I_n + bool := if (i \in A) == (i \in Z) then inl i else inr (i \in A).
pose f' i : 'I_n + bool := if (i \in A) == (i \in Z) then inl i else inr (i \in Z).
have [|sg Hsg] := @fibre_perm n _ f f'.
  case=> [j|u]; first by apply: eq_card => i; rewrite !inE /f /f'; case: ifP.
  have e1 : [set i | f i == inr u] = if u then A :\: Z else Z :\: A.
    by apply/setP => i; rewrite inE /f; case: (u); rewrite in_setD; case: (i \in A); case: (i \in Z).
  have e2 : [set i | f' i == inr u] = if u then Z :\: A else A :\: Z.
    by apply/setP => i; rewrite inE /f'; case: (u); rewrite in_setD; case: (i \in A); case: (i \in Z).
  by rewrite e1 e2; case: (u); rewrite ZA.
have fixS i : (i \in A) == (i \in Z) -> sg i = i.
  by have := Hsg i; rewrite /f /f' => + e; rewrite e; case: ifP => // _ [].
have sgA i : (sg i \in A) = (i \in Z).
  case: (boolP ((i \in A) == (i \in Z))) => e; first by rewrite fixS // (eqP e).
  have := Hsg i; rewrite /f /f' (negbTE e); case: ifP => // + [e2]; rewrite -e2.
  by move: e; case: (i \in A); case: (i \in Z); case: (sg i \in A).
rewrite /phi (reindex_inj (mulIg sg^-1%g)) /=.
rewrite (eq_bigl (fun g => g @^-1: A == A)); last first.
  move=> g; apply/eqP/eqP => /setP e; apply/setP => i; have := e i; rewrite !inE permM.
    by rewrite -sgA permKV inE.
  by rewrite -sgA permKV inE.
rewrite sum_keep.
have cardM g1 g2 : moved g1 \subset A -> moved g2 \subset ~: A ->
    #|moved (g1 * g2 * sg^-1)%g| = (t.*2 + #|moved g1 :&: (A :&: Z)| + #|moved g2 :&: (~: A :\: Z)|)%N.
  rewrite !moved_subE => m1 m2.
  have out1 i : i \notin A -> g1 i = i by move=> iA; apply: (out_perm m1).
  have out2 i : i \in A -> g2 i = i by move=> iA; apply: (out_perm m2); rewrite inE iA.
  have c1 i : (g1 i \in A) = (i \in A) := perm_closed i m1.
  have c2 i : (g2 i \in A) = (i \in A) by have := perm_closed i m2; rewrite !in_setC => /negb_inj.
  set M := moved _.
  have MA i : (i \in A) != (i \in Z) -> i \in M.
    move=> ne; rewrite inE !permM -(inj_eq (@perm_inj _ sg)) permKV; apply: contra ne => /eqP e.
    by have := sgA i; rewrite -e c2 c1 => ->.
  have ME i : (i \in A) == (i \in Z) -> (i \in M) = (g2 (g1 i) != i).
    by move=> e; rewrite inE !permM -(inj_eq (@perm_inj _ sg)) permKV fixS.
  rewrite -(cardsID A M) -(cardsID Z (M :&: A)) -(cardsID Z (M :\: A)).
  have -> : M :&: A :&: Z = moved g1 :&: (A :&: Z).
    apply/setP => i; rewrite !in_setI -andbA; case: (boolP (i \in A)) => iA; case: (boolP (i \in Z)) => iZ; rewrite ?andbF //.
    by rewrite !andbT ME ?iA ?iZ // inE out2 ?c1.
  have -> : (M :&: A) :\: Z = A :\: Z.
    apply/setP => i; rewrite !in_setD in_setI; case: (boolP (i \in A)) => iA; case: (boolP (i \in Z)) => iZ; rewrite ?andbF //.
    by rewrite MA // iA (negbTE iZ).
  have -> : (M :\: A) :&: Z = Z :\: A.
    apply/setP => i; rewrite in_setI !in_setD; case: (boolP (i \in A)) => iA; case: (boolP (i \in Z)) => iZ; rewrite ?andbF //=.
    by rewrite MA // iZ (negbTE iA).
  have -> : (M :\: A) :\: Z = moved g2 :&: (~: A :\: Z).
    apply/setP => i; rewrite in_setD in_setD in_setI in_setD in_setC.
    case: (boolP (i \in A)) => iA; case: (boolP (i \in Z)) => iZ; rewrite ?andbF //=.
    by rewrite ME ?(negbTE iA) ?(negbTE iZ) // out1 // inE andbT.
  by rewrite ZA -/t; lia.
have X1 : #|A :&: Z| = (#|A| - t)%N by rewrite -(cardsID Z A) addnK.
have X2 : #|~: A :\: Z| = (#|~: A| - t)%N.
  rewrite -(cardsID Z (~: A)) (_ : ~: A :&: Z = Z :\: A) ?ZA ?addKn //.
  by apply/setP => i; rewrite !inE andbC.
have tA : (t <= #|A|)%N by rewrite subset_leq_card // subsetDl.
have tB : (t <= #|~: A|)%N.
  by rewrite -ZA subset_leq_card //; apply/subsetP => i; rewrite !inE => /andP[].
pose G y1 : R := \sum_(y2 < (#|~: A| - t).+1) ('C(#|~: A| - t, y2) * Delta y2 t)%:R * weight p (t.*2 + y1 + y2).
transitivity (\sum_(g1 : 'S_n | moved g1 \subset A) G #|moved g1 :&: (A :&: Z)|).
  apply: eq_bigr => g1 m1; have XB : ~: A :\: Z \subset ~: A by apply: subsetDl.
  have := sum_perm_on (fun y2 => weight p (t.*2 + #|moved g1 :&: (A :&: Z)| + y2)) XB.
  by rewrite X2 subKn // /G => <-; apply: eq_bigr => g2 m2; rewrite cardM.
by rewrite (sum_perm_on G (subsetIl A Z)) X1 subKn.
Qed.

Theorem Phi_closed t : (t <= minn #|A| #|~: A|)%N -> Phi p h t = Phi_formula #|A| #|~: A| t.
Proof.
rewrite leq_min => /andP[tA tB].
have [T1 T1A T1t] := subset_of_size tA; have [T2 T2B T2t] := subset_of_size tB.
have T2A i : i \in T2 -> i \notin A by move=> /(subsetP T2B); rewrite in_setC.
pose Z := (A :\: T1) :|: T2.
have AZ : A :\: Z = T1.
  apply/setP => i; rewrite in_setD in_setU in_setD; case: (boolP (i \in T1)) => iT /=.
    by rewrite (subsetP T1A i iT) andbT; apply/negP => /T2A; rewrite (subsetP T1A i iT).
  by case: (boolP (i \in A)); rewrite ?andbF.
have EZ : #|Z| = #|A|.
  rewrite cardsU (_ : (A :\: T1) :&: T2 = set0); last first.
    by apply/setP => i; rewrite in_setI in_setD in_set0; apply/negP => /andP[/andP[_ iA] /T2A]; rewrite iA.
  by rewrite cards0 subn0 cardsDS // T1t T2t subnK.
by rewrite -{1}T1t -AZ -PhiE // phi_closed // AZ T1t.
Qed.
End Closed.

(* L^2 bounds all quotients of neighbouring Phi_t, both ways. *)
Definition bounds_quotients (R : realFieldType) (p : R) n1 n2 (L : R) : Prop :=
  forall t, (t < minn n1 n2)%N -> Phi_formula p n1 n2 t.+1 <= L ^+ 2 * Phi_formula p n1 n2 t /\
                                 Phi_formula p n1 n2 t <= L ^+ 2 * Phi_formula p n1 n2 t.+1.

(* From the files x and x' the chances of a table with the property Q differ by a factor of at most L per unit of distance. *)
Definition alike (R : realFieldType) (p : R) n (H S : finType) (L : R) (x x' : 'I_n -> unit * H * S) Q : Prop :=
  Pr p x Q <= L ^+ dHam (table x) (table x') * Pr p x' Q /\ Pr p x' Q <= L ^+ dHam (table x) (table x') * Pr p x Q.

(* Theorem C with the closed form. *)
Theorem theoremC_formula (R : realFieldType) (p : R) n (S : finType) (h : 'I_n -> bool) (s : 'I_n -> S) (L : R)
    (x' : 'I_n -> unit * bool * S) Q :
  0 < p -> p < 1 -> 1 <= L -> bounds_quotients p #|row1 h| #|~: row1 h| L ->
  same_invariants (table (file h s)) (table x') -> alike p L (file h s) x' Q.
Proof.
move=> p0 p1 L1 hF E; apply: theoremC => // t tm.
by rewrite (Phi_closed p tm) (Phi_closed p (ltnW tm)); apply: hF.
Qed.
