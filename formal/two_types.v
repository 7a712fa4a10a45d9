(* Theorem C of swapping/proof.md: two hold types.

   Name each swap value by the record that holds it, and let Z be the set of values that end in the first row.  The
   output depends on Z only, and the weight phi Z of the permutations that do this depends only on the number t of values
   that leave the first row.  One exchange changes t by at most one, so the quotients of neighbouring Phi_t bound the loss. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify.
From Stirred Require Import derangements algorithm one_stratum alignment strata theorem_1 by_size attained four_types exchanges.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section TwoTypes.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Variables (n : nat) (S : finType) (h : 'I_n -> bool).
Implicit Types (s : 'I_n -> S) (g r : 'S_n) (Z : {set 'I_n}).

(* the records of the first row *)
Definition row1 : {set 'I_n} := [set i | h i].
Local Notation A := row1.

(* the weight of the permutations after which the values of the records in Z are in the first row *)
Definition phi Z : R := \sum_(g : 'S_n | g @^-1: Z == A) weight p #|moved g|.

Lemma phi_ge0 Z : 0 <= phi Z.
Proof. by apply: sumr_ge0 => g _; apply/ltW/weight_gt0 => //; apply: card_moved_neq1. Qed.

Lemma phi_card Z : #|Z| != #|A| -> phi Z = 0.
Proof. by move=> ne; rewrite /phi big_pred0 // => g; apply: contraNF ne => /eqP <-; rewrite card_preim. Qed.

(* It depends on the number of values that leave the first row only. *)
Lemma phi_sym Z Z' : #|Z| = #|Z'| -> #|A :\: Z| = #|A :\: Z'| -> phi Z = phi Z'.
Proof.
move=> EZ EA.
have [|b Hb] := @fibre_perm n _ (fun i => (i \in A, i \in Z)) (fun i => (i \in A, i \in Z')).
  have fib (B : {set 'I_n}) u v : [set i | (i \in A, i \in B) == (u, v)] =
      (if u then A else ~: A) :&: (if v then B else ~: B).
    by apply/setP => i; rewrite !inE xpair_eqE; case: u; case: v; rewrite !inE ?eqb_id ?eqbF_neg.
  case=> u v; rewrite !fib.
  have c1 := cardsID Z A; have c2 := cardsID Z' A.
  have c3 := cardsID A Z; have c4 := cardsID A Z'.
  have c5 := cardsID Z (~: A); have c6 := cardsID Z' (~: A).
  have e1 (B : {set 'I_n}) : B :\: A = ~: A :&: B by rewrite setDE setIC.
  rewrite e1 setIC in c3; rewrite e1 setIC in c4; rewrite !setDE in c1 c2 c5 c6 EA.
  by case: u; case: v; move: EZ EA c1 c2 c3 c4 c5 c6; clear; lia.
have bA i : (b i \in A) = (i \in A) by case: (Hb i).
have bZ i : (b i \in Z') = (i \in Z) by case: (Hb i).
rewrite /phi [RHS](reindex (fun g => (b^-1 * g * b)%g)) /=; last first.
  exists (fun g => (b * g * b^-1)%g) => g _; first by rewrite !mulgA mulgV mul1g mulgK.
  by rewrite !mulgA mulVg mul1g mulgKV.
apply: eq_big => [g|g _].
  apply/eqP/eqP => /setP e; apply/setP => i.
    by rewrite !inE !permM bZ; have := e ((b^-1)%g i); rewrite !inE => ->; have := bA ((b^-1)%g i); rewrite permKV !inE.
  by have := e (b i); rewrite !inE !permM permK bZ => ->; have := bA i; rewrite !inE.
by have := moved_conj g (b^-1)%g; rewrite invgK => ->; rewrite card_preim.
Qed.

Definition Phi (t : nat) : R :=
  if [pick Z : {set 'I_n} | (#|Z| == #|A|) && (#|A :\: Z| == t)] is Some Z then phi Z else 0.

Lemma PhiE Z : #|Z| = #|A| -> phi Z = Phi #|A :\: Z|.
Proof.
move=> EZ; rewrite /Phi; case: pickP => [Z' /andP[/eqP e1 /eqP e2]|/(_ Z)]; last by rewrite EZ !eqxx.
by apply: phi_sym; rewrite ?EZ ?e1 ?e2.
Qed.

(* The output table, by the set of values in the first row. *)
Definition out_table Z s : {ffun unit * bool * S -> nat} := [ffun c => #|[set j | ((j \in Z) == c.1.2) && (s j == c.2)]|].

Lemma im_pre g Z : (g @: A == Z) = (g @^-1: Z == A).
Proof.
apply/eqP/eqP => /setP e; apply/setP => i.
  by rewrite inE -e mem_imset //; apply: perm_inj.
apply/imsetP/idP => [[j jA ->]|iZ]; first by have := e j; rewrite inE jA.
by exists ((g^-1)%g i); rewrite ?permKV // -e inE permKV.
Qed.

Lemma table_out g Z s : g @^-1: Z = A -> table (file h (s \o g)) = out_table Z s.
Proof.
move=> /setP e; apply/ffunP => -[[[] u] v]; rewrite !ffunE -[RHS](card_preim g) /=; apply: eq_card => i.
by have := e i; rewrite !inE /file /= !xpair_eqE /= => ->.
Qed.

Lemma PrE s Q : Pr p (file h s) Q = constant p n * \sum_(Z | Q (out_table Z s)) phi Z.
Proof.
rewrite Pr_file (partition_big (fun g : 'S_n => g @: A) xpredT) //= mulr_sumr [RHS]big_mkcond /=.
apply: eq_bigr => Z _; rewrite /phi; case: ifP => QZ.
  rewrite mulr_sumr; apply: eq_big => [g|g _]; last by rewrite /psa subsetT cardsT card_ord.
  by rewrite im_pre; case: eqP => [/table_out ->|]; rewrite ?QZ ?andbF.
by apply: big_pred0 => g; rewrite im_pre; case: eqP => [/table_out ->|]; rewrite ?QZ ?andbF.
Qed.

Lemma preK (a b : 'I_n) Z : tperm a b @^-1: (tperm a b @^-1: Z) = Z.
Proof. by apply/setP => i; rewrite !inE tpermK. Qed.

Lemma PrE_exchange s Q a b :
  Pr p (file h (s \o tperm a b)) Q = constant p n * \sum_(Z | Q (out_table Z s)) phi (tperm a b @^-1: Z).
Proof.
have fi : injective (fun Z : {set 'I_n} => (tperm a b @^-1: Z : {set 'I_n})).
  by apply: (can_inj (g := fun Z : {set 'I_n} => (tperm a b @^-1: Z : {set 'I_n}))) => Z; apply: preK.
rewrite PrE; congr (_ * _); rewrite (reindex_inj fi) /=; apply: eq_bigl => Z; congr Q.
apply/ffunP => c; rewrite !ffunE -[RHS](card_preim (tperm a b)); apply: eq_card => i.
by rewrite !inE.
Qed.

Lemma one_more a b Z : a \in A -> b \notin A -> a \in Z -> b \notin Z ->
  #|A :\: tperm a b @^-1: Z| = #|A :\: Z|.+1.
Proof.
move=> aA bA aZ bZ; rewrite (_ : A :\: _ = a |: (A :\: Z)); first by rewrite cardsU1 !inE aZ.
apply/setP => i; rewrite in_setU1 !in_setD [i \in _ @^-1: _]inE.
case: tpermP => [->|->|/eqP ia /eqP ib]; rewrite ?eqxx ?aA ?bZ //=.
  by rewrite aZ (negbTE bA) andbF; case: eqP => // e; rewrite -e (negbTE bA) in aA.
by rewrite (negbTE ia).
Qed.

Lemma in_range a b Z : #|Z| = #|A| -> a \in A -> b \notin A -> a \in Z -> b \notin Z ->
  (#|A :\: Z| < minn #|A| #|~: A|)%N.
Proof.
move=> EZ aA bA aZ bZ; rewrite leq_min; apply/andP; split.
  rewrite -(cardsID Z A) -[X in (X <= _)%N]add1n leq_add2r card_gt0; apply/set0Pn; exists a.
  by rewrite inE aA.
have -> : #|A :\: Z| = #|Z :\: A|.
  by have := cardsID Z A; have := cardsID A Z; rewrite setIC EZ; move=> <- /addnI.
apply: proper_card; apply/properP; split; first by apply/subsetP => i; rewrite !inE => /andP[].
by exists b; rewrite !inE ?(negbTE bZ) ?andbF //; move: bA; rewrite inE.
Qed.

Section Bound.
Variable K : R.
Hypothesis K1 : 1 <= K.
Hypothesis PhiK : forall t, (t < minn #|A| #|~: A|)%N -> Phi t.+1 <= K * Phi t /\ Phi t <= K * Phi t.+1.

Lemma phi_exchange a b Z : phi Z <= K * phi (tperm a b @^-1: Z).
Proof.
set W := _ @^-1: Z; have K0 := le_trans ler01 K1.
have same : phi Z = phi W -> phi Z <= K * phi W by move=> ->; rewrite ler_pemull // phi_ge0.
have EW : #|W| = #|Z| by rewrite card_preim.
have [EZ|ne] := eqVneq #|Z| #|A|; last by rewrite phi_card // mulr_ge0 // phi_ge0.
have main c e : tperm a b = tperm c e -> c \in A -> e \notin A -> phi Z <= K * phi W.
  move=> te cA eA; rewrite {}/W te in same EW *; set W := _ @^-1: Z in same EW *.
  case: (boolP (c \in Z)) => cZ; case: (boolP (e \in Z)) => eZ.
  - apply: same; congr phi; apply/setP => i; rewrite inE; case: tpermP => [->|->|//]; by rewrite cZ eZ.
  - rewrite !PhiE ?EW // one_more //.
    by case: (PhiK (in_range EZ cA eA cZ eZ)).
  - have cW : c \in W by rewrite inE tpermL.
    have eW : e \notin W by rewrite inE tpermR.
    have EW' : #|W| = #|A| by rewrite EW.
    have := one_more cA eA cW eW; rewrite preK => E1.
    by rewrite (PhiE EZ) (PhiE EW') E1; case: (PhiK (in_range EW' cA eA cW eW)).
  - apply: same; congr phi; apply/setP => i; rewrite inE; case: tpermP => [->|->|//].
      by rewrite (negbTE cZ) (negbTE eZ).
    by rewrite (negbTE cZ) (negbTE eZ).
case: (boolP (a \in A)) => aA; case: (boolP (b \in A)) => bA.
- apply: same; apply: phi_sym; rewrite ?EW // -[LHS](card_preim (tperm a b)); apply: eq_card => i.
  rewrite [LHS]inE !in_setD [i \in W]inE; congr (_ && _); case: tpermP => [->|->|//]; by rewrite aA bA.
- exact: (main a b).
- by apply: (main b a) => //; rewrite tpermC.
- apply: same; apply: phi_sym; rewrite ?EW // -[LHS](card_preim (tperm a b)); apply: eq_card => i.
  rewrite [LHS]inE !in_setD [i \in W]inE; congr (_ && _); case: tpermP => [->|->|//].
    by rewrite (negbTE aA) (negbTE bA).
  by rewrite (negbTE aA) (negbTE bA).
Qed.

Lemma Pr_exchange s Q a b : Pr p (file h s) Q <= K * Pr p (file h (s \o tperm a b)) Q.
Proof.
rewrite PrE PrE_exchange mulrCA ler_wpmul2l //; last first.
  by rewrite mulr_sumr; apply: ler_sum => Z _; apply: phi_exchange.
by rewrite -[n]card_ord -cardsT; apply/ltW/constant_gt0.
Qed.

Lemma Pr_chain s r Q : Pr p (file h s) Q <= K ^+ (n - #|porbits r|) * Pr p (file h (s \o r)) Q.
Proof.
have K0 := le_trans ler01 K1.
have Pr0 x : 0 <= Pr p (file h x) Q.
  by rewrite PrE mulr_ge0 ?sumr_ge0 // => [|Z _]; rewrite ?phi_ge0 // -[n]card_ord -cardsT; apply/ltW/constant_gt0.
move: {2}(n - #|porbits r|)%N (leqnn (n - #|porbits r|)%N) => k; elim: k r => [|k IH] r rk.
all: case: (pickP (mem (moved r))) => [i /= im|none]; last first.
1,3: suff -> : Pr p (file h s) Q = Pr p (file h (s \o r)) Q by rewrite ler_pemull ?exprn_ege1.
1,2: by apply: Pr_ext => i; rewrite /file /=; have /= := none i; rewrite inE => /negbFE/eqP ->.
all: have ij : i != r i by rewrite eq_sym; move: im; rewrite inE.
all: have ji : r i \in porbit r i by have := mem_porbit r 1 i; rewrite expg1.
all: have Er := porbits_tperm ij ji.
all: have le : (#|porbits (tperm i (r i) * r)%g| <= n)%N by rewrite -[X in (_ <= X)%N]card_ord leq_imset_card.
  by move: rk; rewrite leqn0 subn_eq0 leqNgt -Er le.
apply: le_trans (IH (tperm i (r i) * r)%g _) _.
  by rewrite Er subnS; move: rk; clear; lia.
have -> : (n - #|porbits r| = (n - #|porbits (tperm i (r i) * r)%g|).+1)%N by rewrite Er subnSK // -Er.
rewrite exprSr -mulrA ler_wpmul2l ?exprn_ge0 //; apply: le_trans (Pr_exchange _ _ i (r i)) _.
rewrite ler_wpmul2l // le_eqVlt; apply/orP; left; apply/eqP; apply: Pr_ext => l.
by rewrite /file /= permM tpermK.
Qed.
End Bound.

(* Theorem C, the bound: every pair of the universe, at every distance. *)
Theorem theoremC (L : R) s (x' : 'I_n -> unit * bool * S) Q : 1 <= L ->
  (forall t, (t < minn #|A| #|~: A|)%N -> Phi t.+1 <= L ^+ 2 * Phi t /\ Phi t <= L ^+ 2 * Phi t.+1) ->
  same_invariants (table (file h s)) (table x') ->
  Pr p (file h s) Q <= L ^+ dHam (table (file h s)) (table x') * Pr p x' Q /\
  Pr p x' Q <= L ^+ dHam (table (file h s)) (table x') * Pr p (file h s) Q.
Proof.
move=> L1 PhiL [Emh Ems]; pose h' i := (x' i).1.2; pose s' i := (x' i).2.
have Ex' i : x' i = file h' s' i by rewrite /file /h' /s'; case: (x' i) => [[[] u] v].
have EN' : table x' = table (file h' s') by apply: table_ext.
have pair1 (Y : eqType) (f : 'I_n -> Y) y : #|[set i | (tt, f i) == (tt, y)]| = #|[set i | f i == y]|.
  by apply: eq_card => i; rewrite !inE xpair_eqE.
have hm a : #|[set i | h i == a]| = #|[set i | h' i == a]|.
  by have := Emh tt a; rewrite EN' -(n_mhE (file h s) (tt, a)) -(n_mhE (file h' s') (tt, a)) /file /= !pair1.
have sm b : #|[set i | s i == b]| = #|[set i | s' i == b]|.
  by have := Ems tt b; rewrite EN' -!n_msE /file /= !pair1.
have [b [r [bh bs rD cyc _]]] := short_cycles hm sm.
have dE : dHam (table (file h s)) (table x') = #|moved r|.
  rewrite rD EN' /dHam /dist (reindex (fun c : bool * S => (tt, c.1, c.2))) /=; last first.
    by exists (fun c : unit * bool * S => (c.1.2, c.2)) => [[u v] _|[[[] u] v] _].
  by apply: eq_bigr => -[u v] _; rewrite !ffunE /=; congr (_ - _)%N; apply: eq_card => i; rewrite !inE /file !xpair_eqE.
rewrite dE -(Pr_reorder p x' b Q).
have -> : Pr p (fun i => x' (b i)) Q = Pr p (file h (s \o r)) Q.
  by apply: Pr_ext => i; rewrite Ex' /file /= bh bs.
suff E : (2 * (n - #|porbits r|))%N = #|moved r|.
  have c1 := Pr_chain (exprn_ege1 2 L1) PhiL s r Q; rewrite -exprM E in c1; split=> //.
  have := Pr_chain (exprn_ege1 2 L1) PhiL (s \o r) r^-1 Q; rewrite porbitsV -exprM E.
  by rewrite (@Pr_ext _ _ _ _ _ _ (file h ((s \o r) \o r^-1%g)) (file h s)) // => i; rewrite /file /= permKV.
have := card_porbits_lengths r; rewrite card_ord => ->; rewrite -sum_lengths sumnE big_distrr /= big_seq [RHS]big_seq.
apply: eq_bigr => k /mapP[O]; rewrite mem_enum !inE => /andP[/imsetP[i _ ->] gt1] ->.
suff : (#|porbit r i| <= 2)%N by move: gt1; lia.
rewrite -card_bool -(@card_in_imset _ _ h); first exact: max_card.
move=> j l ji li e; apply/eqP; case: eqVneq => // nl.
have : l \in porbit r j by move: ji li; rewrite -!eq_porbit_mem => /eqP -> ->.
by move=> /cyc/(_ nl); rewrite e eqxx.
Qed.

Lemma out_table_inj s Y Z : injective s -> out_table Y s = out_table Z s -> Y = Z.
Proof.
move=> si e; apply/setP => j.
have cell (X : {set 'I_n}) : (0 < out_table X s (tt, true, s j))%N = (j \in X).
  rewrite ffunE card_gt0; apply/set0Pn/idP => [[i]|jX]; last by exists j; rewrite inE /= jX !eqxx.
  by rewrite inE /= eqb_id => /andP[iX /eqP/si <-].
by rewrite -!cell e.
Qed.

(* Theorem C, attained: if all swap values differ, every t is needed. *)
Theorem theoremC_attained (L : R) s : injective s -> 1 <= L ->
  (forall (x' : 'I_n -> unit * bool * S) Q, same_invariants (table (file h s)) (table x') ->
    Pr p (file h s) Q <= L ^+ dHam (table (file h s)) (table x') * Pr p x' Q /\
    Pr p x' Q <= L ^+ dHam (table (file h s)) (table x') * Pr p (file h s) Q) ->
  forall t, (t < minn #|A| #|~: A|)%N -> Phi t.+1 <= L ^+ 2 * Phi t /\ Phi t <= L ^+ 2 * Phi t.+1.
Proof.
move=> si L1 v t; rewrite leq_min => /andP[tA tB].
have [T1 T1A T1t] := subset_of_size (ltnW tA); have [T2 T2B T2t] := subset_of_size (ltnW tB).
have T2A i : i \in T2 -> i \notin A by move=> /(subsetP T2B); rewrite inE.
pose Z := (A :\: T1) :|: T2.
have AZ : A :\: Z = T1.
  apply/setP => i; rewrite in_setD in_setU in_setD; case: (boolP (i \in T1)) => iT /=.
    by rewrite (subsetP T1A i iT) andbT; apply/negP => /T2A; rewrite (subsetP T1A i iT).
  by case: (boolP (i \in A)); rewrite ?andbF.
have EZ : #|Z| = #|A|.
  rewrite cardsU (_ : (A :\: T1) :&: T2 = set0); last first.
    by apply/setP => i; rewrite in_setI in_setD in_set0; apply/negP => /andP[/andP[_ iA] /T2A]; rewrite iA.
  by rewrite cards0 subn0 cardsDS // T1t T2t subnK // ltnW.
have [a] : exists a, a \in A :\: T1 by apply/set0Pn; rewrite -card_gt0 cardsDS // T1t subn_gt0.
rewrite in_setD => /andP[aT aA].
have [b] : exists b, b \in ~: A :\: T2 by apply/set0Pn; rewrite -card_gt0 cardsDS // T2t subn_gt0.
rewrite in_setD in_setC => /andP[bT bA].
have aZ : a \in Z by rewrite in_setU in_setD aT aA.
have bZ : b \notin Z by rewrite in_setU in_setD (negbTE bA) (negbTE bT) andbF.
have ab : a != b by apply: contraNneq bA => <-.
have EW : #|tperm a b @^-1: Z| = #|A| by rewrite card_preim.
have c0 : 0 < constant p n by rewrite -[n]card_ord -cardsT constant_gt0.
have E1 : Pr p (file h s) (pred1 (out_table Z s)) = constant p n * Phi t.
  rewrite PrE (big_pred1 Z); first by rewrite PhiE // AZ T1t.
  by move=> Y; apply/eqP/eqP => [/(out_table_inj si)|->].
have E2 : Pr p (file h (s \o tperm a b)) (pred1 (out_table Z s)) = constant p n * Phi t.+1.
  rewrite PrE_exchange (big_pred1 Z); first by rewrite PhiE // one_more // AZ T1t.
  by move=> Y; apply/eqP/eqP => [/(out_table_inj si)|->].
have d2 : (dHam (table (file h s)) (table (file h (s \o tperm a b))) <= 2)%N.
  by have := file_dHam h s (tperm a b); rewrite moved_tperm // cards2 ab.
have [le1 le2] := v _ (pred1 (out_table Z s)) (file_invariants h s (tperm a b)).
have LL : L ^+ dHam (table (file h s)) (table (file h (s \o tperm a b))) <= L ^+ 2 by apply: ler_weexpn2l.
have P0 u : (u <= t.+1)%N -> 0 <= Phi u.
  by move=> _; rewrite /Phi; case: pickP => [Y _|_] //; apply: phi_ge0.
move: le1 le2; rewrite E1 E2 ![L ^+ _ * (_ * _)]mulrCA !ler_pmul2l // => le1 le2.
by split; [apply: le_trans le2 _ | apply: le_trans le1 _]; apply: ler_wpmul2r => //; apply: P0.
Qed.

(* With all swap values different, the loss of the universe is exactly the largest of these quotients. *)
Corollary theoremC_exact (L : R) s : injective s -> 1 <= L ->
  (forall (x' : 'I_n -> unit * bool * S) Q, same_invariants (table (file h s)) (table x') ->
    Pr p (file h s) Q <= L ^+ dHam (table (file h s)) (table x') * Pr p x' Q /\
    Pr p x' Q <= L ^+ dHam (table (file h s)) (table x') * Pr p (file h s) Q) <->
  (forall t, (t < minn #|A| #|~: A|)%N -> Phi t.+1 <= L ^+ 2 * Phi t /\ Phi t <= L ^+ 2 * Phi t.+1).
Proof.
move=> si L1; split; first exact: theoremC_attained.
by move=> PhiL x' Q E; apply: theoremC.
Qed.
End TwoTypes.
