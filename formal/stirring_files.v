(* Stirring of files with strata, by their tables: the order of the records plays no part, the invariants are kept, and the
   loss in exchanges and in units of the Hamming distance. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify.
From Stirred Require Import derangements one_stratum alignment exchanges strata theorem_1 stirring_law stirring_loss.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Conjugate.
Variable T : finType.
Implicit Types (g b : {perm T}) (A : {set T}).

Lemma porbit_conj g b i : porbit (b * g * b^-1)%g i = (b^-1)%g @: porbit g (b i).
Proof.
have E k : ((b * g * b^-1) ^+ k)%g = (b * g ^+ k * b^-1)%g.
  by have := conjXg g b^-1%g k; rewrite !conjgE !invgK !mulgA => <-.
apply/setP => j; apply/porbitP/imsetP => [[k ->]|[l /porbitP[k ->] ->]].
  by exists ((g ^+ k)%g (b i)); rewrite ?mem_porbit // E !permM.
by exists k; rewrite E !permM.
Qed.

Lemma cycles_conj A g b : cycles (b @^-1: A) (b * g * b^-1)%g = cycles A g.
Proof.
have inj : injective (fun O : {set T} => (b^-1)%g @: O) by apply: imset_inj; apply: perm_inj.
rewrite /cycles -[RHS](card_imset _ inj); congr #|pred_of_set _|; apply/setP => O; apply/imsetP/imsetP => [[i iA ->]|].
  by exists (porbit g (b i)); [apply: imset_f; rewrite inE in iA | apply: porbit_conj].
case=> _ /imsetP[i iA ->] ->; exists ((b^-1)%g i); first by rewrite inE permKV.
by rewrite porbit_conj permKV.
Qed.

Lemma stir_conj (R : realFieldType) (lam : R) A g b : stir lam (b @^-1: A) (b * g * b^-1)%g = stir lam A g.
Proof. by rewrite /stir moved_conj preim_sub cycles_conj card_preim. Qed.
End Conjugate.

Lemma sum_pred (l : seq nat) : (\sum_(k <- l) k.-1 <= (sumn l).-1)%N.
Proof. by elim: l => [|k l IH]; rewrite ?big_nil // big_cons /=; move: IH; lia. Qed.

Section Files.
Variables (R : realFieldType) (M H S : finType) (lam : M -> R).
Hypothesis lam_gt0 : forall c, 0 < lam c.
Local Notation record := (M * H * S)%type.
Local Notation tables := {ffun M * H * S -> nat}.
Implicit Types (n : nat) (Q : pred tables).

(* The chance that stirring, given the file x, publishes a table with the property Q. *)
Definition PrS n (x : 'I_n -> record) Q : R :=
  chance lam (fun i => (x i).1.1) (fun i => (x i).2) (fun z => Q (table (fun i => ((x i).1, z i)))).

Lemma PrS_ext n (x y : 'I_n -> record) Q : x =1 y -> PrS x Q = PrS y Q.
Proof.
move=> e; rewrite /PrS /chance big_mkcond [RHS]big_mkcond; apply: eq_bigr => f _.
have -> : table (fun i => ((x i).1, swapped (fun i => (x i).1.1) (fun i => (x i).2) f i)) =
  table (fun i => ((y i).1, swapped (fun i => (y i).1.1) (fun i => (y i).2) f i)).
  by apply: table_ext => i; rewrite !ffunE !e.
case: ifP => // _; apply: eq_bigr => c _; congr stir.
by apply/setP => i; rewrite !inE e.
Qed.

(* The order of the records plays no part. *)
Theorem PrS_reorder n (x : 'I_n -> record) (b : 'S_n) Q : PrS (fun i => x (b i)) Q = PrS x Q.
Proof.
pose conj (f : {ffun M -> 'S_n}) : {ffun M -> 'S_n} := [ffun c => (b * f c * b^-1)%g].
have conj_bij : bijective conj.
  exists (fun f : {ffun M -> 'S_n} => [ffun c => (b^-1 * f c * b)%g]) => f; apply/ffunP => c; rewrite !ffunE.
    by rewrite !mulgA mulVg mul1g mulgKV.
  by rewrite !mulgA mulgV mul1g mulgK.
rewrite /PrS /chance (reindex conj) /=; last exact: onW_bij.
apply: eq_big => [f|f _].
  congr Q; rewrite -[RHS](table_reorder _ b); apply: table_ext => i.
  by rewrite !ffunE !permM permKV.
apply: eq_bigr => c _; rewrite ffunE -[RHS](stir_conj _ _ _ b); congr stir.
by apply/setP => i; rewrite !inE.
Qed.

(* What stirring publishes has the invariants of the data. *)
Theorem stirring_keeps n (x : 'I_n -> record) (f : {ffun M -> 'S_n}) :
  stir_law lam (fun i => (x i).1.1) f != 0 ->
  same_invariants (table (fun i => ((x i).1, swapped (fun i => (x i).1.1) (fun i => (x i).2) f i))) (table x).
Proof.
move=> lf; pose m i := (x i).1.1; pose sg i := f (m i) i.
have sup : inside m f by apply: contraR lf => ns; rewrite outside0.
have msg i : m (sg i) = m i := inside_match i sup.
have sg_inj : injective sg.
  by move=> i j e; have := msg i; rewrite e msg => mij; move: e; rewrite /sg mij; apply: perm_inj.
split=> [a h|a s]; first by rewrite -(n_mhE _ (a, h)) -(n_mhE x (a, h)).
rewrite -!n_msE -[RHS](card_preim (perm sg_inj)); apply: eq_card => i.
by rewrite !inE ffunE permE -[(x (sg i)).1.1]/(m (sg i)) msg.
Qed.

(* x', in some order, is x after the exchanges e. *)
Theorem stirring_dp n (x x' : 'I_n -> record) (b : 'S_n) (e : seq ('I_n * 'I_n)) (L : R) Q :
  (forall i, x' (b i) = ((x i).1, exchanged (fun k => (x k).2) e i)) ->
  all (fun ij => (x ij.1).1.1 == (x ij.2).1.1) e -> (forall c, factor (lam c) <= L) ->
  PrS x Q <= L ^+ size e * PrS x' Q /\ PrS x' Q <= L ^+ size e * PrS x Q.
Proof.
move=> xE oke Lc; rewrite -(PrS_reorder x' b Q).
have f0 c : 0 <= factor (lam c) by apply: le_trans ler01 _; apply: factor_ge1.
have pL : \prod_(ij <- e) factor (lam (x ij.1).1.1) <= L ^+ size e.
  elim: {xE oke} e => [|ij e IH]; first by rewrite big_nil.
  by rewrite big_cons exprS; apply: ler_pmul; [exact: f0 | apply: prodr_ge0 | exact: Lc | exact: IH].
have -> : PrS (fun i => x' (b i)) Q = chance lam (fun i => (x i).1.1) (exchanged (fun k => (x k).2) e)
  (fun z => Q (table (fun i => ((x i).1, z i)))) by rewrite (PrS_ext Q xE).
have [h1 h2] := @stirring_loss R M _ S lam (fun i => (x i).1.1) lam_gt0 (fun k => (x k).2) e
  (fun z => Q (table (fun i => ((x i).1, z i)))) oke.
by split; [apply: le_trans h1 _ | apply: le_trans h2 _]; rewrite ler_wpmul2r // chance_ge0.
Qed.

(* Two different files of a universe at the Hamming distance d are at most d - 1 exchanges apart. *)
Theorem stirring_hamming n (x x' : 'I_n -> record) (L : R) Q : same_invariants (table x) (table x') ->
  (forall c, factor (lam c) <= L) -> 1 <= L -> PrS x Q <= L ^+ (dHam (table x) (table x')).-1 * PrS x' Q.
Proof.
move=> [Emh Ems] Lc L1.
have [|[m s]|al [r [ralh ralms rD _]]] := @lemma5 n _ _ (fun i => (x i).1) (fun i => (x' i).1)
  (fun i => ((x i).1.1, (x i).2)) (fun i => ((x' i).1.1, (x' i).2)).
- by move=> a; rewrite !n_mhE Emh.
- by rewrite !n_msE Ems.
rewrite dist_dHam in rD.
have rm i : (x (r i)).1.1 = (x i).1.1 by case: (ralms i) => <- _; rewrite ralh.
rewrite -rD -(PrS_reorder x' al Q).
have -> : PrS (fun i => x' (al i)) Q = PrS (fun i => ((x i).1, (x (r i)).2)) Q.
  by apply: PrS_ext => i; case: (ralms i) => _ <-; rewrite -ralh; apply: surjective_pairing.
apply: le_trans (@stirring_loss_perm R M _ S lam (fun i => (x i).1.1) lam_gt0 (fun k => (x k).2) r L _ rm Lc) _.
apply: ler_wpmul2r; first exact: chance_ge0.
apply: ler_weexpn2l => //; rewrite -sum_lengths.
by rewrite (_ : (#|'I_n| - #|porbits r|)%N = \sum_(k <- lengths r) k.-1)%N ?sum_pred // card_porbits_lengths.
Qed.
End Files.
