(* Two types: the law by types, its loss, and that no mechanism changes fewer slots.

   T is the set of slots: one for each record of the stratum, at its place.  A file says which slots hold a record of the
   first type: a set A.  An exchange of two records of different types replaces one slot of A.  The law by types gives the
   set B the weight psi^|A \ B|; the number of slots of each type that change hands then has Fisher's noncentral
   hypergeometric law. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify ring.
From Stirred Require Import derangements one_stratum.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Sets.
Variable T : finType.
Implicit Types A B U V : {set T}.

(* U and V change hands. *)
Definition traded A (p : {set T} * {set T}) : {set T} := A :\: p.1 :|: p.2.
Definition trades A t : {set {set T} * {set T}} :=
  setX [set U : {set T} | U \subset A & #|U| == t] [set V : {set T} | V \subset ~: A & #|V| == t].

Lemma card_leave A B : #|B| = #|A| -> #|B :\: A| = #|A :\: B|.
Proof. by move=> e; apply: (@addnI #|A :&: B|); rewrite cardsID setIC cardsID. Qed.

Lemma leave_le A B : #|B| = #|A| -> (#|A :\: B| <= minn #|A| #|~: A|)%N.
Proof.
move=> e; rewrite leq_min subset_leq_card ?subsetDl //= -(card_leave e).
by apply: subset_leq_card; apply/subsetP => k; rewrite !inE => /andP[].
Qed.

Lemma traded_leave A t p : p \in trades A t -> (A :\: traded A p = p.1) * (traded A p :\: A = p.2).
Proof.
rewrite !inE => /andP[/andP[/subsetP s1 _] /andP[/subsetP s2 _]].
split; apply/setP => k; rewrite !inE; have := s1 k; have := s2 k; rewrite !inE;
  by case: (k \in A); case: (k \in p.1); case: (k \in p.2) => //= h1 h2; rewrite ?(h1 isT) ?(h2 isT).
Qed.

Lemma traded_card A t p : p \in trades A t -> #|traded A p| = #|A|.
Proof.
move=> pt; have [e1 e2] := traded_leave pt; apply/eqP; rewrite eqn_leq -!(cardsID A (traded A p)) -!(cardsID (traded A p) A).
move: pt; rewrite e1 e2 !inE setIC => /andP[/andP[_ /eqP ->] /andP[_ /eqP ->]].
by rewrite leqnn.
Qed.

Lemma trades_of A B : #|B| = #|A| -> (A :\: B, B :\: A) \in trades A #|A :\: B|.
Proof.
move=> e; rewrite !inE /= subsetDl eqxx /= (card_leave e) eqxx andbT.
by apply/subsetP => k; rewrite !inE => /andP[].
Qed.

Lemma traded_of A B : traded A (A :\: B, B :\: A) = B.
Proof. by apply/setP => k; rewrite !inE; case: (k \in A); case: (k \in B). Qed.

(* The sets in which t slots of each type have changed hands. *)
Lemma card_apart A t : #|[set B : {set T} | (#|B| == #|A|) && (#|A :\: B| == t)]| = ('C(#|A|, t) * 'C(#|~: A|, t))%N.
Proof.
rewrite -(cards_draws A t) -(cards_draws (~: A) t) -cardsX -/(trades A t).
rewrite -(@card_in_imset _ _ (traded A) (trades A t)); last first.
  move=> p p' pt pt' e; have [e1 e2] := traded_leave pt; have [e1' e2'] := traded_leave pt'.
  by rewrite [p]surjective_pairing [p']surjective_pairing -e1 -e2 -e1' -e2' e.
apply: eq_card => B; rewrite inE; apply/andP/imsetP => [[/eqP e /eqP <-]|[p pt ->]].
  by exists (A :\: B, B :\: A); rewrite ?trades_of ?traded_of.
rewrite (traded_card pt) eqxx (traded_leave pt).1; split=> //.
by move: pt; rewrite !inE => /andP[/andP[_ ->]].
Qed.
End Sets.

Section Law.
Variables (R : realFieldType) (T : finType) (psi : R).
Hypothesis psi_gt0 : 0 < psi.
Implicit Types A B : {set T}.

Definition ways A t : R := ('C(#|A|, t) * 'C(#|~: A|, t))%:R.
Definition most A : nat := minn #|A| #|~: A|.
Definition norm A : R := \sum_(t < (most A).+1) ways A t * psi ^+ t.
(* Fisher's noncentral hypergeometric law of the number of slots of each type that change hands *)
Definition fisher A t : R := ways A t * psi ^+ t / norm A.
(* the law by types *)
Definition types A B : R := if #|B| == #|A| then psi ^+ #|A :\: B| / norm A else 0.

Lemma ways_gt0 A t : (t <= most A)%N -> 0 < ways A t.
Proof. by rewrite leq_min ltr0n muln_gt0 !bin_gt0. Qed.

Lemma norm_gt0 A : 0 < norm A.
Proof.
rewrite /norm big_ord_recl ltr_paddr ?mulr_gt0 ?ways_gt0 ?exprn_gt0 //.
by apply: sumr_ge0 => t _; rewrite mulr_ge0 ?ler0n // exprn_ge0 // ltW.
Qed.

Lemma types_ge0 A B : 0 <= types A B.
Proof. by rewrite /types; case: ifP => // _; rewrite divr_ge0 ?exprn_ge0 // ltW // norm_gt0. Qed.

Lemma norm_card A A' : #|A'| = #|A| -> norm A' = norm A.
Proof.
move=> e; have e' : #|~: A'| = #|~: A| by apply: (@addnI #|A|); rewrite cardsC -e cardsC.
by rewrite /norm /most /ways e e'.
Qed.

(* The mean of anything that depends on the number of changed slots. *)
Lemma types_mean A (G : nat -> R) : \sum_B types A B * G #|A :\: B| = \sum_(t < (most A).+1) fisher A t * G t.
Proof.
rewrite (bigID (fun B : {set T} => #|B| == #|A|)) /= [X in _ + X]big1 ?addr0; last first.
  by move=> B /negbTE nB; rewrite /types nB mul0r.
rewrite (partition_big (fun B : {set T} => inord #|A :\: B| : 'I_(most A).+1) xpredT) //=.
apply: eq_bigr => t _; transitivity (\sum_(B in [set B : {set T} | (#|B| == #|A|) && (#|A :\: B| == t)]) psi ^+ t / norm A * G t).
  apply: eq_big => [B|B /andP[eB /eqP <-]].
    rewrite inE; case: (boolP (#|B| == #|A|)) => //= /eqP e; rewrite -val_eqE /= inordK //.
    by rewrite ltnS leave_le.
  by rewrite /types eB inordK // ltnS leave_le //; apply/eqP.
by rewrite sumr_const card_apart -mulr_natl mulrA /fisher mulrA.
Qed.

Theorem types_sum1 A : \sum_B types A B = 1.
Proof.
have := types_mean A (fun=> 1); rewrite (eq_bigr (types A)) => [->|B _]; last by rewrite mulr1.
rewrite (eq_bigr (fun t : 'I_(most A).+1 => ways A t * psi ^+ t / norm A)); last by move=> t _; rewrite mulr1.
by rewrite -mulr_suml mulfV // gt_eqF // norm_gt0.
Qed.

(* Its sampler: draw t, then t slots of each type, uniformly; they change hands. *)
Theorem types_draw A B : types A B = \sum_(t < (most A).+1) fisher A t *
  (\sum_(p in trades A t) if traded A p == B then (ways A t)^-1 else 0).
Proof.
have w0 (t : 'I_(most A).+1) : ways A t != 0 by rewrite gt_eqF // ways_gt0 // -ltnS.
apply/esym; rewrite /types; case: (boolP (#|B| == #|A|)) => [/eqP e|nB]; last first.
  rewrite big1 // => t _; rewrite big1 ?mulr0 // => p pt; case: eqP => // eB.
  by case/eqP: nB; rewrite -eB (traded_card pt).
have lt : (#|A :\: B| < (most A).+1)%N by rewrite ltnS leave_le.
rewrite (bigD1 (Ordinal lt)) //= [X in _ + X]big1 ?addr0; last first.
  move=> t nt; rewrite big1 ?mulr0 // => p pt; case: eqP => // eB.
  case/eqP: nt; apply: val_inj => /=; rewrite -eB (traded_leave pt).1.
  by move: pt; rewrite !inE => /andP[/andP[_ /eqP ->]].
rewrite (bigD1 (A :\: B, B :\: A)) ?trades_of //= traded_of eqxx big1 ?addr0; last first.
  move=> p /andP[pt np]; case: eqP => // eB; case/eqP: np.
  by rewrite -eB !(traded_leave pt) -surjective_pairing.
rewrite /fisher; have := w0 (Ordinal lt); rewrite /= => w1; have n0 : norm A != 0 by rewrite gt_eqF // norm_gt0.
by field; rewrite w1 n0.
Qed.

(* A slot that is exchanged between A and A' counts once: |A \ A'| exchanges. *)
Theorem types_loss A A' B : psi <= 1 -> #|A'| = #|A| -> types A B <= psi ^- #|A :\: A'| * types A' B.
Proof.
move=> psi1 e; rewrite /types e; case: eqP => [eB|_]; last by rewrite mulr0.
rewrite (norm_card e) mulrA ler_pmul2r ?invr_gt0 ?norm_gt0 // ler_pdivl_mull ?exprn_gt0 // -exprD.
apply: ler_wiexpn2l; rewrite ?(ltW psi_gt0) // -(card_leave e) addnC.
apply: leq_trans (subset_leq_card _) (leq_card_setU _ _); apply/subsetP => k; rewrite !inE.
by case: (k \in A); case: (k \in A'); case: (k \in B).
Qed.

(* Every event, hence every table and anything computed from it. *)
Corollary types_loss_event A A' (Q : pred {set T}) : psi <= 1 -> #|A'| = #|A| ->
  \sum_(B | Q B) types A B <= psi ^- #|A :\: A'| * \sum_(B | Q B) types A' B.
Proof. by move=> psi1 e; rewrite mulr_sumr; apply: ler_sum => B _; apply: types_loss. Qed.

(* Attained where the data are published as they are. *)
Theorem types_attained A A' : #|A'| = #|A| -> 0 < types A A /\ types A A = psi ^- #|A :\: A'| * types A' A.
Proof.
move=> e; rewrite /types e !eqxx setDv cards0 expr0 (norm_card e) (card_leave e) mulrA mulVf ?mul1r; last first.
  by rewrite expf_neq0 // gt_eqF.
by rewrite invr_gt0 norm_gt0.
Qed.
End Law.

(* If the quotients a/f do not decrease, the mean under a is not the smaller one. *)
Section Ratio.
Variables (R : realFieldType) (m : nat) (a f : nat -> R).
Hypothesis f_gt0 : forall t, (t <= m)%N -> 0 < f t.
Hypothesis step : forall t, (t < m)%N -> a t * f t.+1 <= a t.+1 * f t.
Hypotheses (a_sum1 : \sum_(t < m.+1) a t = 1) (f_sum1 : \sum_(t < m.+1) f t = 1).

Lemma ratio_chain i j : (i <= j)%N -> (j <= m)%N -> a i * f j <= a j * f i.
Proof.
move=> ij; rewrite -(subnK ij); elim: (j - i)%N => [|k IH]; first by rewrite add0n.
rewrite addSn => lt; have kl := IH (ltnW lt); set l := (k + i)%N in lt kl *.
rewrite -(ler_pmul2r (f_gt0 (ltnW lt))).
apply: (@le_trans _ _ (a l * f i * f l.+1)).
  by rewrite mulrAC ler_wpmul2r // ltW // f_gt0.
rewrite mulrAC [X in _ <= X]mulrAC ler_wpmul2r ?step // ltW // f_gt0 //.
by apply: leq_trans (ltnW lt); apply: leq_addl.
Qed.

Lemma mean_le : \sum_(t < m.+1) f t * t%:R <= \sum_(t < m.+1) a t * t%:R.
Proof.
rewrite -subr_ge0; set E := _ - _.
have cross : E = \sum_(i < m.+1) \sum_(j < m.+1) (i%:R - j%:R) * (a i * f j).
  rewrite /E -[X in X - _]mulr1 -f_sum1 -[X in _ - X]mul1r -a_sum1 !mulr_suml -sumrB; apply: eq_bigr => i _.
  by rewrite !mulr_sumr -sumrB; apply: eq_bigr => j _; ring.
have cross' : E = \sum_(i < m.+1) \sum_(j < m.+1) (j%:R - i%:R) * (a j * f i) by rewrite cross exchange_big.
rewrite -(pmulrn_lge0 _ (isT : (0 < 2)%N)) mulr2n {1}cross cross' -big_split /=; apply: sumr_ge0 => i _.
rewrite -big_split /=; apply: sumr_ge0 => j _.
have -> : (i%:R - j%:R) * (a i * f j) + (j%:R - i%:R) * (a j * f i) = (i%:R - j%:R) * (a i * f j - a j * f i) by ring.
have im : (i <= m)%N by rewrite -ltnS. have jm : (j <= m)%N by rewrite -ltnS.
case: (leqP i j) => ij.
  by rewrite -mulrNN mulr_ge0 // opprB subr_ge0 ?ler_nat // ratio_chain.
by rewrite mulr_ge0 // subr_ge0 ?ler_nat ?ratio_chain // ltnW.
Qed.
End Ratio.

Section Optimal.
Variables (R : realFieldType) (T : finType) (k : nat) (P : {set T} -> {set T} -> R) (K : R).
Hypotheses (P_ge0 : forall A B, 0 <= P A B) (K_gt0 : 0 < K).
(* For every file A of k slots of the first type the mechanism publishes a set B of as many. *)
Hypothesis P_sum1 : forall A : {set T}, #|A| = k -> \sum_(B : {set T} | #|B| == k) P A B = 1.
(* It loses at most ln K when the records of the slots a and b, of different types, are exchanged. *)
Hypothesis loss : forall (A B : {set T}) a b, #|A| = k -> a \in A -> b \notin A -> P A B <= K * P (b |: A :\ a) B.
Implicit Types A B : {set T}.
Local Notation n2 := (#|T| - k)%N.

(* the chance, added up over all files, that t slots of each type change hands *)
Definition apart t : R := \sum_(A : {set T} | #|A| == k) \sum_(B : {set T} | (#|B| == k) && (#|A :\: B| == t)) P A B.

Lemma count_sum t (X : {set T} -> {set T} -> {set T * T}) c :
  (forall A B, #|A| = k -> #|B| = k -> #|A :\: B| = t -> #|X A B| = c) ->
  c%:R * apart t = \sum_(p : {set T} * (T * T)) \sum_(A : {set T})
    (if [&& #|A| == k, #|p.1| == k, #|A :\: p.1| == t & p.2 \in X A p.1] then P A p.1 else 0).
Proof.
move=> cX; rewrite exchange_big /apart mulr_sumr [LHS]big_mkcond /=; apply: eq_bigr => A _.
rewrite -(pair_bigA _ (fun B ab => if [&& #|A| == k, #|B| == k, #|A :\: B| == t & ab \in X A B] then P A B else 0)) /=.
case: (boolP (#|A| == k)) => [/eqP eA|nA] /=; last by rewrite big1 // => B _; rewrite big1.
rewrite mulr_sumr [LHS]big_mkcond; apply: eq_bigr => B _.
case: (boolP (#|B| == k)) => [/eqP eB|nB] /=; last by rewrite big1.
case: (boolP (#|A :\: B| == t)) => [/eqP eT|nT] /=; last by rewrite big1.
by rewrite -big_mkcond sumr_const cX // mulr_natl.
Qed.

Lemma apart_step t : ((k - t) * (n2 - t))%:R * apart t <= K * ((t.+1 * t.+1)%:R * apart t.+1).
Proof.
rewrite (@count_sum t (fun A B => setX (A :&: B) (~: (A :|: B)))); last first.
  move=> A B eA eB eT; rewrite cardsX; congr (_ * _)%N.
    by rewrite -eA -(cardsID B A) eT addnK.
  have eL : #|B :\: A| = t by rewrite card_leave ?eB.
  have sub : B :\: A \subset ~: A by apply/subsetP => x; rewrite !inE => /andP[].
  rewrite -eA -(cardsC A) addKn -eL -(cardsDS sub); apply: eq_card => x; rewrite !inE.
  by case: (x \in A); case: (x \in B).
rewrite (@count_sum t.+1 (fun A B => setX (B :\: A) (A :\: B))); last first.
  by move=> A B eA eB eT; rewrite cardsX card_leave ?eB // eT.
rewrite mulr_sumr; apply: ler_sum => -[B [a b]] _ /=.
pose f A : {set T} := tperm a b @^-1: A.
have ff : involutive f by move=> A; apply/setP => x; rewrite !inE tpermK.
rewrite [X in _ <= K * X](reindex_inj (inv_inj ff)) /= mulr_sumr; apply: ler_sum => A _.
case: ifP => [/and4P[/eqP eA eB /eqP eT abX]|_]; last by rewrite mulr_ge0 ?(ltW K_gt0) //; case: ifP.
have [[aA aB] [bA bB]] : (a \in A /\ a \in B) /\ (b \notin A /\ b \notin B).
  by move: abX; rewrite !inE /= negb_or => /andP[/andP[-> ->] /andP[-> ->]].
have ab : (a == b) = false by apply/negP => /eqP e; rewrite -e aA in bA.
have fE : f A = b |: A :\ a.
  apply/setP => x; rewrite !inE; case: tpermP => [->|->|/eqP/negbTE -> /eqP/negbTE ->] //=.
    by rewrite (negbTE bA) ab eqxx.
  by rewrite aA eqxx.
have fB : f A :\: B = b |: (A :\: B).
  apply/setP => x; rewrite fE !inE; case: (eqVneq x b) => [->|xb] /=; first by rewrite bB.
  by case: (eqVneq x a) => [->|] //=; rewrite aB.
rewrite ifT; first by rewrite fE; apply: loss.
apply/and4P; split=> //; first by rewrite card_preim eA.
  by rewrite fB cardsU1 !inE (negbTE bA) andbF eT.
by rewrite !inE /= tpermL tpermR aA aB bA bB.
Qed.

Lemma apart_mean A0 (G : nat -> R) : #|A0| = k ->
  \sum_(A : {set T} | #|A| == k) \sum_(B : {set T} | #|B| == k) P A B * G #|A :\: B| = \sum_(t < (most A0).+1) apart t * G t.
Proof.
move=> e0; rewrite (eq_bigr (fun t : 'I_(most A0).+1 => \sum_(A : {set T} | #|A| == k)
  \sum_(B : {set T} | (#|B| == k) && (#|A :\: B| == t)) P A B * G t)); last first.
  by move=> t _; rewrite /apart mulr_suml; apply: eq_bigr => A _; rewrite mulr_suml.
rewrite [RHS]exchange_big /=; apply: eq_bigr => A /eqP eA.
rewrite (partition_big (fun B : {set T} => inord #|A :\: B| : 'I_(most A0).+1) xpredT) //=.
have lt B : #|B| == k -> (#|A :\: B| < (most A0).+1)%N.
  move=> /eqP eB; have -> : most A0 = most A.
    by rewrite /most eA e0; congr minn; apply: (@addnI k); rewrite -{1}e0 -{1}eA !cardsC.
  by rewrite ltnS leave_le // eA.
apply: eq_bigr => t _; apply: eq_big => [B|B /andP[eB /eqP <-]]; last by rewrite inordK ?lt.
by case: (boolP (#|B| == k)) => //= eB; rewrite -val_eqE /= inordK ?lt.
Qed.

(* Theorem 9: the mean number of slots of each type that change hands, averaged over all files, is not smaller than that of
   the law by types with psi = 1/K. *)
Theorem types_optimal A0 : #|A0| = k ->
  \sum_B types K^-1 A0 B * #|A0 :\: B|%:R <=
  (\sum_(A : {set T} | #|A| == k) \sum_(B : {set T} | #|B| == k) P A B * #|A :\: B|%:R) / #|[set A : {set T} | #|A| == k]|%:R.
Proof.
move=> e0; have i0 : 0 < K^-1 by rewrite invr_gt0.
set N := #|_|%:R; have N0 : 0 < N.
  by rewrite ltr0n; apply/card_gt0P; exists A0; rewrite inE e0.
have n2E : #|~: A0| = n2 by rewrite -e0 -(cardsC A0) addKn.
rewrite (types_mean K^-1 A0 (fun t => t%:R)) (apart_mean (fun t => t%:R) e0) mulr_suml.
rewrite [X in _ <= X](eq_bigr (fun t : 'I_(most A0).+1 => apart t / N * t%:R)); last by move=> t _; rewrite mulrAC.
apply: (@mean_le R (most A0) (fun t => apart t / N) (fisher K^-1 A0)).
- by move=> t tm; rewrite /fisher divr_gt0 ?norm_gt0 // mulr_gt0 ?exprn_gt0 ?ways_gt0.
- move=> t tm /=; have c0 : 0 < (t.+1 * t.+1)%:R * K by rewrite mulr_gt0 // ltr0n.
  have fE : ((t.+1 * t.+1)%:R * K) * fisher K^-1 A0 t.+1 = ((k - t) * (n2 - t))%:R * fisher K^-1 A0 t.
    rewrite /fisher /ways !mulrA; congr (_ / _); rewrite exprS n2E e0.
    have -> : ((t.+1 * t.+1)%:R * K * ('C(k, t.+1) * 'C(n2, t.+1))%:R * (K^-1 * K^-1 ^+ t) : R)
      = ((t.+1 * t.+1) * ('C(k, t.+1) * 'C(n2, t.+1)))%:R * (K * K^-1) * K^-1 ^+ t by rewrite [in RHS]natrM; ring.
    rewrite mulfV ?mulr1 ?gt_eqF //; congr (_ * _); rewrite -[RHS]natrM; congr (_%:R).
    by rewrite mulnACA !mul_bin_left mulnACA.
  rewrite -(ler_pmul2l c0) mulrCA fE mulrA [X in _ <= X]mulrA ler_wpmul2r //.
    by rewrite /fisher divr_ge0 ?mulr_ge0 ?ler0n ?exprn_ge0 ?(ltW (norm_gt0 _ _)) // ltW.
  rewrite mulrAC [apart t * _]mulrC mulrA ler_wpmul2r ?invr_ge0 ?(ltW N0) //.
  by rewrite [_ * K]mulrC -mulrA apart_step.
- rewrite /= -mulr_suml; apply: (mulIf (lt0r_neq0 N0)); rewrite divfK ?gt_eqF // mul1r.
  have := apart_mean (fun=> 1) e0; rewrite (eq_bigr (fun t : 'I_(most A0).+1 => apart t)) => [<-|t _]; last by rewrite mulr1.
  rewrite (eq_bigr (fun=> 1)); last by move=> A /eqP eA; under eq_bigr => B _ do rewrite mulr1; rewrite P_sum1.
  by rewrite sumr_const; congr (_%:R); apply: eq_card => A; rewrite !inE.
- rewrite -[RHS](types_sum1 i0 A0); have := types_mean K^-1 A0 (fun=> 1).
  rewrite (eq_bigr (types K^-1 A0)) => [->|B _]; last by rewrite mulr1.
  by apply: eq_bigr => t _; rewrite mulr1.
Qed.
End Optimal.
