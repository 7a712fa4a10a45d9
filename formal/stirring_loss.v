(* Stirring of a file: what exchanges of records lose, that this is attained, and that targeting by held variables is free.

   The strata are stirred independently, each with its own lam.  An exchange is made between two records of one stratum. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Stirred Require Import derangements one_stratum exchanges strata theorem_1 stirring_law.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Lists.
Variables (R : realFieldType) (T S : finType).
Implicit Types (s : T -> S) (e : seq (T * T)).

(* The swap values after the exchanges e, made one after the other. *)
Definition exchanged s e : T -> S := foldl (fun s1 ij => s1 \o tperm ij.1 ij.2) s e.

(* A factor for each exchange gives one for all of them, both ways. *)
Lemma exchanges_loss (C : (T -> S) -> R) (v : T * T -> R) (ok : pred (T * T)) s e :
  (forall s1 s2, s1 =1 s2 -> C s1 = C s2) -> (forall ij, 0 <= v ij) ->
  (forall s1 ij, ok ij -> C s1 <= v ij * C (s1 \o tperm ij.1 ij.2)) -> all ok e ->
  C s <= (\prod_(ij <- e) v ij) * C (exchanged s e) /\ C (exchanged s e) <= (\prod_(ij <- e) v ij) * C s.
Proof.
move=> ext v0 one; elim: e s => [|ij e IH] s; first by rewrite big_nil mul1r.
case/andP => okij oke; rewrite big_cons /=; case: (IH (s \o tperm ij.1 ij.2) oke) => h1 h2.
have p0 : 0 <= \prod_(kl <- e) v kl by apply: prodr_ge0.
split; first by apply: le_trans (one s ij okij) _; rewrite -mulrA ler_wpmul2l.
apply: le_trans h2 _; rewrite mulrAC mulrC ler_wpmul2l //.
apply: le_trans (one _ _ okij) _; rewrite (ext _ s) ?[C s * _]mulrC // => k /=.
by rewrite tpermK.
Qed.

(* Every permutation is a product of so many exchanges, along its cycles. *)
Lemma perm_exchanges (M : finType) (m : T -> M) (r : {perm T}) : (forall i, m (r i) = m i) ->
  exists e, [/\ size e = (#|T| - #|porbits r|)%N, all (fun ij => m ij.1 == m ij.2) e & forall s, exchanged s e =1 s \o r].
Proof.
have le (r1 : {perm T}) : (#|porbits r1| <= #|T|)%N by rewrite /porbits; apply: leq_imset_card.
have [k] : exists k, (#|T| - #|porbits r|)%N = k by eexists.
elim: k r => [|k IH] r ek rm; rewrite ek.
  exists [::]; split=> // s i /=; congr (s _); apply/esym/eqP; case: eqP => // /eqP ri.
  have ji : r i \in porbit r i by have := mem_porbit r 1 i; rewrite expg1.
  have := porbits_tperm (_ : i != r i) ji; rewrite eq_sym ri => /(_ isT) e.
  have := le (tperm i (r i) * r)%g; rewrite e => lt.
  by move/eqP: ek; rewrite subn_eq0 leqNgt lt.
case: (pickP (mem (moved r))) => [i /= im|none]; last first.
  have r1 : r = 1%g by apply/permP => i; rewrite perm1; have /= := none i; rewrite inE => /negbFE/eqP.
  move: ek; rewrite r1 (_ : #|porbits (1%g : {perm T})| = #|T|) ?subnn //.
  have := porbits_cycles (_ : moved (1%g : {perm T}) \subset set0); rewrite /cycles imset0 cards0 setC0 cardsT => -> //.
  by apply/subsetP => i; rewrite inE perm1 eqxx.
have ij : i != r i by rewrite eq_sym; move: im; rewrite inE.
have ji : r i \in porbit r i by have := mem_porbit r 1 i; rewrite expg1.
have Er := porbits_tperm ij ji; pose r1 := (tperm i (r i) * r)%g.
have rm1 l : m (r1 l) = m l by rewrite permM rm; case: tpermP => [->|->|]; rewrite ?rm.
have ek1 : (#|T| - #|porbits r1|)%N = k by rewrite Er subnS ek.
have [e [se oke ee]] := IH r1 ek1 rm1; exists (rcons e (i, r i)); split.
- by rewrite size_rcons se ek1.
- by rewrite all_rcons oke /= rm eqxx.
- move=> s l; rewrite /exchanged foldl_rcons -/(exchanged s e) /= ee /= permM.
  by rewrite tpermK.
Qed.
End Lists.

Section Strata.
Variables (R : realFieldType) (M T S : finType) (lam : M -> R) (m : T -> M).
Hypothesis lam_gt0 : forall c, 0 < lam c.
Implicit Types (s : T -> S) (f : {ffun M -> {perm T}}) (Q : pred {ffun T -> S}) (e : seq (T * T)).

(* The strata are stirred independently. *)
Definition stir_law f : R := \prod_c stir (lam c) (stratum m c) (f c).
(* The chance that the published swap values have the property Q: record k takes the value of record f (m k) k. *)
Definition chance s Q : R := \sum_(f | Q (swapped m s f)) stir_law f.

Theorem stir_law_sum1 : \sum_f stir_law f = 1.
Proof.
rewrite /stir_law -(bigA_distr_bigA (fun c g => stir (lam c) (stratum m c) g)) /= big1 // => c _.
exact: stir_sum1.
Qed.

Lemma stir_law_ge0 f : 0 <= stir_law f.
Proof. by apply: prodr_ge0 => c _; apply: stir_ge0. Qed.

Lemma chance_ge0 s Q : 0 <= chance s Q.
Proof. by apply: sumr_ge0 => f _; apply: stir_law_ge0. Qed.

Lemma chance_ext s s' Q : s =1 s' -> chance s Q = chance s' Q.
Proof. by move=> es; apply: eq_bigl => f; congr Q; apply/ffunP => k; rewrite !ffunE es. Qed.

Definition inside f : bool := [forall c, moved (f c) \subset stratum m c].

Lemma outside0 f : ~~ inside f -> stir_law f = 0.
Proof. by move=> /forallPn[c nc]; rewrite /stir_law (bigD1 c) //= /stir (negbTE nc) mul0r. Qed.

Lemma inside_match f k : inside f -> m (f (m k) k) = m k.
Proof.
move=> /forallP/(_ (m k)) sub; case: (eqVneq (f (m k) k) k) => [->//|nk].
have : f (m k) k \in moved (f (m k)) by rewrite inE (inj_eq perm_inj).
by move/(subsetP sub); rewrite inE => /eqP.
Qed.

Section Exchange.
Variables i j : T.
Hypothesis mij : m i = m j.
Local Notation t := (tperm i j).

(* the exchange, put in front of the permutation of its stratum *)
Definition undo f : {ffun M -> {perm T}} := [ffun c => if c == m i then (f c * t)%g else f c].

Lemma undoK : involutive undo.
Proof. by move=> f; apply/ffunP => c; rewrite !ffunE; case: eqP => // _; rewrite -mulgA tperm2 mulg1. Qed.

Let iA : i \in stratum m (m i). Proof. by rewrite inE. Qed.
Let jA : j \in stratum m (m i). Proof. by rewrite inE mij. Qed.

Lemma inside_undo f : inside (undo f) = inside f.
Proof.
by apply: eq_forallb => c; rewrite ffunE; case: eqP => // ->; rewrite moved_exchange.
Qed.

Lemma swapped_undo s f : inside f -> swapped m (s \o t) (undo f) = swapped m s f.
Proof.
move=> sup; apply/ffunP => k; rewrite !ffunE /=; case: eqP => [e|ne]; first by rewrite permM tpermK.
have mk := inside_match k sup; congr (s _); apply: tpermD; apply: contraPneq ne => e0.
  by rewrite -mk -e0.
by rewrite -mk -e0 mij.
Qed.

Lemma chance_exchange s Q : chance (s \o t) Q = \sum_(f | Q (swapped m s f)) stir_law (undo f).
Proof.
rewrite /chance (reindex_inj (inv_inj undoK)) big_mkcond [RHS]big_mkcond; apply: eq_bigr => f _.
case: (boolP (inside f)) => sup; first by rewrite swapped_undo.
by rewrite outside0 ?inside_undo //; case: ifP; case: ifP.
Qed.

Lemma stir_law_split f : stir_law f = stir (lam (m i)) (stratum m (m i)) (f (m i)) *
  \prod_(c | c != m i) stir (lam c) (stratum m c) (f c).
Proof. by rewrite /stir_law (bigD1 (m i)). Qed.

Lemma undo_others f : \prod_(c | c != m i) stir (lam c) (stratum m c) (undo f c) =
  \prod_(c | c != m i) stir (lam c) (stratum m c) (f c).
Proof. by apply: eq_bigr => c /negbTE nc; rewrite ffunE nc. Qed.

(* One exchange loses at most |ln lam| of its stratum, for every event. *)
Lemma exchange_loss s Q : chance s Q <= factor (lam (m i)) * chance (s \o t) Q.
Proof.
rewrite chance_exchange mulr_sumr; apply: ler_sum => f _; rewrite !stir_law_split undo_others mulrA ffunE eqxx.
apply: ler_wpmul2r; first by apply: prodr_ge0 => c _; apply: stir_ge0.
exact: stir_exchange.
Qed.

(* Held values all different: what the swap values are is then published record by record.  Publishing the data as they
   are has a chance that the exchange of two records with different swap values changes by the factor lam exactly. *)
Theorem exchange_attained s : s i != s j ->
  0 < chance s (pred1 (finfun s)) /\ chance s (pred1 (finfun s)) = lam (m i) * chance (s \o t) (pred1 (finfun s)).
Proof.
move=> sij; split.
  rewrite /chance (bigD1 [ffun=> 1%g]) /=; last by apply/eqP/ffunP => k; rewrite !ffunE perm1.
  rewrite ltr_paddr ?sumr_ge0 // => [f _|]; first exact: stir_law_ge0.
  by apply: prodr_gt0 => c _; rewrite ffunE stir_gt0 //; apply/subsetP => k; rewrite inE perm1 eqxx.
rewrite chance_exchange mulr_sumr; apply: eq_bigr => f /eqP/ffunP Qf.
rewrite !stir_law_split undo_others mulrA ffunE eqxx; congr (_ * _).
set g := f (m i); case: (boolP (moved g \subset stratum m (m i))) => gA; last first.
  by rewrite /stir moved_exchange // (negbTE gA) mulr0.
apply: stir_join => //; first by apply: contraNneq sij => ->.
have keep k : s (g k) = s k.
  case: (boolP (k \in moved g)) => [|]; last by rewrite inE negbK => /eqP ->.
  by move/(subsetP gA); rewrite inE => /eqP mk; have := Qf k; rewrite !ffunE mk.
apply/negP => /porbitP[n jn]; case/negP: sij; apply/eqP; rewrite jn.
by elim: n {jn} => [|n IH]; rewrite ?expg0 ?perm1 // expgSr permM keep.
Qed.
End Exchange.

Let factor_ge0 c : 0 <= factor (lam c).
Proof. by apply: le_trans ler01 _; apply: factor_ge1. Qed.

(* Theorem 1: t exchanges, each with the lam of its stratum; every event, both ways. *)
Theorem stirring_loss s e Q : all (fun ij => m ij.1 == m ij.2) e ->
  chance s Q <= (\prod_(ij <- e) factor (lam (m ij.1))) * chance (exchanged s e) Q /\
  chance (exchanged s e) Q <= (\prod_(ij <- e) factor (lam (m ij.1))) * chance s Q.
Proof.
apply: (@exchanges_loss R T S (fun s1 => chance s1 Q) (fun ij => factor (lam (m ij.1)))) => [s1 s2 es|//|s1 ij /eqP mij].
  exact: chance_ext.
exact: exchange_loss.
Qed.

(* One bound for all strata, and the number of exchanges that the permutation r needs. *)
Corollary stirring_loss_perm s (r : {perm T}) (L : R) Q : (forall i, m (r i) = m i) ->
  (forall c, factor (lam c) <= L) -> chance s Q <= L ^+ (#|T| - #|porbits r|) * chance (s \o r) Q.
Proof.
move=> rm Lc; have [e [<- oke ee]] := perm_exchanges S rm.
have [h _] := stirring_loss s Q oke; apply: le_trans h _; rewrite (chance_ext _ (ee s)).
apply: ler_wpmul2r; first exact: chance_ge0.
elim: {oke ee} e => [|ij e IH]; first by rewrite big_nil.
by rewrite big_cons exprS; apply: ler_pmul; [exact: factor_ge0 | apply: prodr_ge0 | exact: Lc | exact: IH].
Qed.

(* First a random permutation u of the records inside their strata, with the law q, then stirring.  That q depends on held
   and match variables only means that it is the same for s and for the swap values after the exchanges. *)
Definition targeted (q : {perm T} -> R) s Q : R := \sum_u q u * chance (s \o u) Q.

Theorem targeting_free (q : {perm T} -> R) s e Q : (forall u, 0 <= q u) ->
  (forall u, q u != 0 -> forall k, m (u k) = m k) -> all (fun ij => m ij.1 == m ij.2) e ->
  targeted q s Q <= (\prod_(ij <- e) factor (lam (m ij.1))) * targeted q (exchanged s e) Q /\
  targeted q (exchanged s e) Q <= (\prod_(ij <- e) factor (lam (m ij.1))) * targeted q s Q.
Proof.
move=> q0 qm; apply: (@exchanges_loss R T S (fun s1 => targeted q s1 Q) (fun ij => factor (lam (m ij.1)))) => //.
  by move=> s1 s2 es; apply: eq_bigr => u _; congr (_ * _); apply: chance_ext => k /=; rewrite es.
move=> s1 [i j] /= /eqP mij; rewrite /targeted mulr_sumr; apply: ler_sum => u _.
case: (eqVneq (q u) 0) => [->|qu]; first by rewrite !mul0r mulr0.
rewrite mulrCA ler_wpmul2l //; have um k : m ((u^-1)%g k) = m k by rewrite -(qm u qu) permKV.
have mu : m ((u^-1)%g i) = m ((u^-1)%g j) by rewrite !um.
apply: le_trans (exchange_loss mu (s1 \o u) Q) _; rewrite um.
rewrite (@chance_ext (_ \o _) ((s1 \o tperm i j) \o u)) // => k /=; congr (s1 _).
by rewrite -tpermJ conjgE invgK !permM permKV.
Qed.
End Strata.
