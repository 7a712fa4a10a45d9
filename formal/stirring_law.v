(* Stirring in one stratum: its law, the sampler that draws it, and what one exchange of two records does to it.

   P(g) = lam^(cycles of g) / (lam (lam+1) ... (lam+n-1)), the law of Ewens.  draw writes the sampler down step by step, a
   Fisher-Yates shuffle in which record i stays with weight lam against 1 for each of the i - 1 earlier records. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify ring.
From Stirred Require Import derangements one_stratum exchanges.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Cycles.
Variable T : finType.
Implicit Types (g r : {perm T}) (A : {set T}) (i j : T).

(* the cycles of g that meet A, fixed points included *)
Definition cycles A g : nat := #|[set porbit g i | i in A]|.

Lemma cyclesT g : cycles setT g = #|porbits g|.
Proof. by congr #|pred_of_set _|; apply/setP => O; apply/imsetP/imsetP => -[i _ ->]; exists i. Qed.

Lemma porbit_fixed g i : g i = i -> porbit g i = [set i].
Proof.
move=> gi; apply/setP => j; rewrite inE; apply/idP/eqP => [ji|->]; last exact: porbit_id.
by apply/eqP; case: eqVneq => // /(moved_of_porbit ji); rewrite inE gi eqxx.
Qed.

Lemma porbits_cycles A g : moved g \subset A -> #|porbits g| = (cycles A g + #|~: A|)%N.
Proof.
move=> gA; have fixed i : i \in ~: A -> porbit g i = [set i].
  by rewrite inE => iA; apply: porbit_fixed; apply/eqP; apply: contraR iA => gi; apply: (subsetP gA); rewrite inE.
have -> : porbits g = [set porbit g i | i in A] :|: [set [set i] | i in ~: A].
  rewrite -(eq_in_imset fixed) -imsetU setUCr; apply/setP => O; apply/imsetP/imsetP => -[i _ ->]; by exists i.
rewrite cardsU disjoint_setI0 ?cards0 ?subn0; last first.
  rewrite -setI_eq0; apply/eqP/setP => O; rewrite !inE; apply/negP => /andP[/imsetP[i iA ->] /imsetP[j jA e]].
  by move: jA; rewrite inE => /negP; apply; have := porbit_id g i; rewrite e inE => /eqP <-.
by congr addn; apply: card_imset; apply: set1_inj.
Qed.

Lemma porbits_join g i j : i != j -> j \notin porbit g i -> #|porbits g| = #|porbits (g * tperm i j)%g|.+1.
Proof.
move=> ij ji; have := porbits_mul_tperm g^-1 i j; rewrite /= -[tperm i j]tpermV -invMg !porbitsV porbitV tpermV.
by rewrite porbit_sym ji ij addn1 addn2 => -[<-].
Qed.

(* A transposition on the right: the two records share a cycle, which it splits, or it joins their cycles. *)
Lemma porbits_exchange g i j : i != j ->
  if j \in porbit g i then #|porbits (g * tperm i j)%g| = #|porbits g|.+1
  else #|porbits g| = #|porbits (g * tperm i j)%g|.+1.
Proof. by move=> ij; case: ifP => ji; [apply: porbits_tpermr | apply: porbits_join; rewrite ?ji]. Qed.

Lemma moved_tperm A i j : i \in A -> j \in A -> moved (tperm i j) \subset A.
Proof. by move=> iA jA; apply/subsetP => k; rewrite inE; case: tpermP => [->|->|]; rewrite ?eqxx. Qed.

Lemma moved_exchange A g i j : i \in A -> j \in A -> (moved (g * tperm i j)%g \subset A) = (moved g \subset A).
Proof. by move=> iA jA; rewrite -[tperm i j]tpermV moved_on // moved_tperm. Qed.

Lemma cycles_exchange A g i j : moved g \subset A -> i \in A -> j \in A -> i != j ->
  if j \in porbit g i then cycles A (g * tperm i j)%g = (cycles A g).+1 else cycles A g = (cycles A (g * tperm i j)%g).+1.
Proof.
move=> gA iA jA ij; have gtA : moved (g * tperm i j)%g \subset A by rewrite moved_exchange.
have := porbits_exchange g ij; rewrite (porbits_cycles gA) (porbits_cycles gtA).
by case: ifP => _; rewrite -addSn => /addIn.
Qed.

Lemma cyclesV A g : cycles A g^-1 = cycles A g.
Proof. by rewrite /cycles; congr #|pred_of_set _|; apply: eq_imset => i; rewrite porbitV. Qed.
End Cycles.

Section Law.
Variables (R : realFieldType) (lam : R).
Hypothesis lam_gt0 : 0 < lam.
Variable T : finType.
Implicit Types (g r : {perm T}) (A : {set T}) (i j x y : T).

(* lam (lam + 1) ... (lam + n - 1) *)
Definition rising (n : nat) : R := \prod_(k < n) (lam + k%:R).

(* The law of the permutation of the stratum A. *)
Definition stir A g : R := if moved g \subset A then lam ^+ cycles A g / rising #|A| else 0.

(* The sampler.  The records are taken one by one; l holds those taken so far, the latest first.  The record x stays with
   weight lam, or exchanges its value with an earlier record j, with weight 1 for each.  The record that stands at place k
   after it is the one that stood at place tperm x j k before.  draw l g: the chance that the permutation is g. *)
Fixpoint draw (l : seq T) g : R :=
  if l is x :: earlier then
    \sum_(j <- x :: earlier) (if j == x then lam else 1) / (lam + (size earlier)%:R) * draw earlier (tperm x j * g)%g
  else (g == 1%g)%:R.

Lemma rising_gt0 n : 0 < rising n.
Proof. by apply: prodr_gt0 => k _; rewrite ltr_paddr ?ler0n //. Qed.

Lemma risingS n : rising n.+1 = rising n * (lam + n%:R).
Proof. by rewrite /rising big_ord_recr. Qed.

Lemma stir_ge0 A g : 0 <= stir A g.
Proof. by rewrite /stir; case: ifP => // _; rewrite divr_ge0 ?exprn_ge0 // ltW // rising_gt0. Qed.

Lemma stir_gt0 A g : moved g \subset A -> 0 < stir A g.
Proof. by move=> gA; rewrite /stir gA divr_gt0 ?exprn_gt0 // rising_gt0. Qed.

(* The sampler draws the law, in whatever order the records are taken. *)
Theorem draw_stir (l : seq T) g : uniq l -> draw l g = stir [set x in l] g.
Proof.
elim: l g => [|x l IH] g.
  move=> _; rewrite /= /stir /cycles (_ : [set x in [::]] = set0); last by apply/setP => i; rewrite !inE.
  rewrite imset0 !cards0 /rising big_ord0 subset0 divr1 expr0.
  case: eqP => [->|ng]; first by rewrite (_ : moved 1 == set0) //; apply/eqP/setP => i; rewrite !inE perm1 eqxx.
  case: ifP => // /eqP/setP e; case: ng; apply/permP => i; rewrite perm1.
  by apply/eqP; have := e i; rewrite !inE => /negbFE.
move=> /= /andP[xl ul]; set A' := [set y in l]; have A'l y : (y \in A') = (y \in l) by rewrite inE.
have -> : [set y in x :: l] = x |: A' by apply/setP => y; rewrite !inE.
set A := x |: A'; have xA' : x \notin A' by rewrite A'l.
have cA : #|A| = #|A'|.+1 by rewrite cardsU1 xA'.
have cA' : #|A'| = size l by rewrite cardsE; apply/card_uniqP.
have cC : #|~: A'| = #|~: A|.+1.
  by apply: (@addnI #|A'|); rewrite cardsC addnS -addSn -cA cardsC.
rewrite (eq_bigr (fun j => (if j == x then lam else 1) / (lam + (size l)%:R) * stir A' (tperm x j * g)%g)); last first.
  by move=> j _; rewrite IH.
have inA j : j \in x :: l -> j \in A by rewrite !inE.
case: (boolP (moved g \subset A)) => gA; last first.
  rewrite /stir (negbTE gA) big_seq big1 // => j jl.
  case: (boolP (moved (tperm x j * g)%g \subset A')) => [h|_]; last by rewrite mulr0.
  case/negP: gA; apply/subsetP => k; apply: contraLR => kA; rewrite inE negbK.
  have ntA' : k \notin moved (tperm x j * g)%g.
    by apply: contra kA => /(subsetP h) kA'; rewrite inE kA' orbT.
  move: ntA'; rewrite inE negbK permM tpermD //; apply: contraNneq kA => <-; rewrite ?inA //.
  by rewrite !inE eqxx.
pose j0 := (g^-1)%g x; have gj : g j0 = x by rewrite permKV.
have j0A : j0 \in A.
  rewrite inE; case: (eqVneq j0 x) => [->|j0x]; first by rewrite inE eqxx.
  have : j0 \in moved g by rewrite inE gj eq_sym.
  by move/(subsetP gA); rewrite inE.
have j0l : j0 \in x :: l by move: j0A; rewrite !inE.
rewrite (bigD1_seq j0) //= ?xl // big1 ?addr0; last first.
  move=> j jj; rewrite /stir; case: (boolP (moved (tperm x j * g)%g \subset A')) => [h|_]; last by rewrite mulr0.
  case/negP: xA'; apply: (subsetP h); rewrite inE permM tpermL.
  by apply: contra jj => /eqP e; apply/eqP; rewrite /j0 -e permK.
have h : moved (tperm x j0 * g)%g \subset A'.
  apply/subsetP => k; apply: contraLR => kA'; rewrite inE negbK permM.
  case: (eqVneq k x) => [->|kx]; first by rewrite tpermL gj.
  have kA : k \notin A by rewrite inE in_set1 negb_or kx.
  rewrite tpermD; [|by rewrite eq_sym|by apply: contraNneq kA => <-].
  by apply: contraR kA => gk; apply: (subsetP gA); rewrite inE.
rewrite /stir h gA cA -cA' risingS.
have r0 : rising #|A'| != 0 by rewrite gt_eqF // rising_gt0.
have l0 : lam + #|A'|%:R != 0 by rewrite gt_eqF // ltr_paddr ?ler0n //.
have e1 := porbits_cycles gA; have e2 := porbits_cycles h.
case: (eqVneq j0 x) => [e|j0x].
  move: e2; rewrite e tperm1 mul1g e1 cC => e2; have -> : cycles A g = (cycles A' g).+1.
    by move: e2; rewrite addnS -addSn => /addIn.
  rewrite exprS; have F (a b c d : R) : c != 0 -> d != 0 -> a / d * (b / c) = a * b / (c * d).
    by move=> c0 d0; field; rewrite c0 d0.
  exact: F.
have xo : j0 \in porbit g x.
  by rewrite porbit_sym; have := mem_porbit g 1 j0; rewrite expg1 gj.
have e3 : #|porbits (tperm x j0 * g)%g| = #|porbits g|.+1 by apply: porbits_tperm; rewrite // eq_sym.
have -> : cycles A g = cycles A' (tperm x j0 * g)%g by move: e3; rewrite e1 e2 cC addnS => -[/addIn].
have F (b c d : R) : c != 0 -> d != 0 -> 1 / d * (b / c) = b / (c * d).
  by move=> c0 d0; field; rewrite c0 d0.
exact: F.
Qed.

Lemma draw_sum1 (l : seq T) : uniq l -> \sum_g draw l g = 1.
Proof.
elim: l => [_|x l IH] /=.
  by rewrite (bigD1 1%g) //= eqxx big1 ?addr0 // => g /negbTE ->.
case/andP => xl ul; rewrite exchange_big /=.
rewrite (eq_bigr (fun j => (if j == x then lam else 1) / (lam + (size l)%:R))); last first.
  move=> j _; rewrite -mulr_sumr -[RHS]mulr1 -(IH ul); congr (_ * _).
  rewrite [RHS](reindex_inj (mulgI (tperm x j))); exact: eq_bigr.
rewrite -mulr_suml big_cons eqxx (_ : \sum_(j <- l) _ = (size l)%:R); last first.
  rewrite (eq_big_seq (fun=> 1)) ?big_const_seq ?count_predT ?iter_addr_0 //.
  by move=> j jl; rewrite (negbTE (_ : j != x)) //; apply: contraNneq xl => <-.
by rewrite mulfV // gt_eqF // ltr_paddr ?ler0n //.
Qed.

(* The law is a law. *)
Theorem stir_sum1 A : \sum_g stir A g = 1.
Proof.
rewrite -(draw_sum1 (enum_uniq (mem A))); apply: eq_bigr => g _; rewrite draw_stir ?enum_uniq //.
by congr stir; apply/setP => i; rewrite inE mem_enum.
Qed.

(* The weights of all permutations of A. *)
Corollary sum_weights A : \sum_(g | moved g \subset A) lam ^+ cycles A g = rising #|A|.
Proof.
have r0 : rising #|A| != 0 by rewrite gt_eqF // rising_gt0.
apply: (mulIf (invr_neq0 r0)); rewrite mulfV // -[RHS](stir_sum1 A) mulr_suml big_mkcond.
by apply: eq_bigr => g _; rewrite /stir; case: ifP.
Qed.

(* ---- one exchange ---- *)

Lemma stir_split A g i j : i \in A -> j \in A -> i != j -> j \in porbit g i ->
  stir A (g * tperm i j)%g = lam * stir A g.
Proof.
move=> iA jA ij ji; rewrite /stir moved_exchange //; case: ifP => gA; last by rewrite mulr0.
by have := cycles_exchange gA iA jA ij; rewrite ji => ->; rewrite exprS mulrA.
Qed.

Lemma stir_join A g i j : i \in A -> j \in A -> i != j -> j \notin porbit g i ->
  stir A g = lam * stir A (g * tperm i j)%g.
Proof.
move=> iA jA ij ji; rewrite /stir moved_exchange //; case: ifP => gA; last by rewrite mulr0.
by have := cycles_exchange gA iA jA ij; rewrite (negbTE ji) => ->; rewrite exprS mulrA.
Qed.

(* exp |ln lam| *)
Definition factor : R := Num.max lam lam^-1.

Lemma factor_lam : lam <= factor. Proof. by rewrite le_maxr lexx. Qed.
Lemma factor_inv : lam^-1 <= factor. Proof. by rewrite le_maxr lexx orbT. Qed.
Lemma factor_ge1 : 1 <= factor.
Proof.
case: (lerP 1 lam) => l1; first exact: le_trans l1 factor_lam.
by apply: le_trans factor_inv; rewrite invf_ge1 // ltW.
Qed.

(* An exchange changes the chance of a permutation by the factor lam, up or down. *)
Theorem stir_exchange A g i j : i \in A -> j \in A ->
  stir A g <= factor * stir A (g * tperm i j)%g.
Proof.
move=> iA jA; case: (eqVneq i j) => [->|ij].
  by rewrite tperm1 mulg1 ler_pemull ?stir_ge0 // factor_ge1.
case: (boolP (j \in porbit g i)) => ji.
  rewrite (stir_split iA jA ij ji) mulrA ler_pemull ?stir_ge0 //.
  by rewrite -(mulVf (lt0r_neq0 lam_gt0)) ler_wpmul2r ?factor_inv // ltW.
by rewrite (stir_join iA jA ij ji) ler_wpmul2r ?stir_ge0 ?factor_lam.
Qed.
End Law.
