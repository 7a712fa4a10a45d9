(* The framework of the paper's Section 2: specifications, universes, invariants, composition, post-processing.

   The output premetric is the multiplicative one.  Budgets are kept as exponentials, so that no logarithm is needed: a
   budget of ln v at distance k is a factor v^k.  psa_spec is Theorem 1 as a specification. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify.
From Stirred Require Import derangements algorithm one_stratum alignment strata theorem_1 results.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Close.
Variable R : realFieldType.
Implicit Types a b : R.

(* D_Mult(P, Q) <= ln a, for laws on a finite set of outputs *)
Definition close (Z : finType) a (P Q : Z -> R) : Prop := forall z, P z <= a * Q z /\ Q z <= a * P z.
(* the same, by events, for any set of outputs *)
Definition closeE (Z : Type) a (P Q : pred Z -> R) : Prop := forall E, P E <= a * Q E /\ Q E <= a * P E.
Definition ev (Z : finType) (P : Z -> R) (E : pred Z) : R := \sum_(z | E z) P z.

Definition nonneg (Z : Type) (P : Z -> R) : Prop := forall z, 0 <= P z.
Definition law1 (Z : finType) (P : Z -> R) : Prop := nonneg P /\ \sum_z P z = 1.

Lemma close_events (Z : finType) a (P Q : Z -> R) : close a P Q <-> closeE a (ev P) (ev Q).
Proof.
split=> [h E|h z]; last first.
  by have := h (pred1 z); rewrite /ev !(big_pred1 z).
by rewrite /ev !mulr_sumr; split; apply: ler_sum => z _; case: (h z).
Qed.

Lemma close_refl (Z : finType) (P : Z -> R) : close 1 P P.
Proof. by move=> z; rewrite mul1r. Qed.

Lemma close_sym (Z : finType) a (P Q : Z -> R) : close a P Q -> close a Q P.
Proof. by move=> h z; case: (h z). Qed.

Lemma close_le (Z : finType) a b (P Q : Z -> R) : nonneg P -> nonneg Q -> a <= b -> close a P Q -> close b P Q.
Proof.
by move=> p0 q0 ab h z; case: (h z) => h1 h2; split; [apply: le_trans h1 _ | apply: le_trans h2 _]; apply: ler_wpmul2r.
Qed.

(* the triangle inequality *)
Lemma close_trans (Z : finType) a b (P Q S : Z -> R) : 0 <= a -> 0 <= b -> close a P Q -> close b Q S -> close (a * b) P S.
Proof.
move=> a0 b0 h g z; case: (h z) (g z) => h1 h2 [g1 g2]; split.
  by apply: le_trans h1 _; rewrite -mulrA; apply: ler_wpmul2l.
by apply: le_trans g2 _; rewrite [a * b]mulrC -mulrA; apply: ler_wpmul2l.
Qed.

Lemma close_le1 (Z : finType) a (P Q : Z -> R) : law1 P -> law1 Q -> a <= 1 -> close a P Q -> P =1 Q.
Proof.
move=> [p0 p1] [q0 q1] a1 h z; have := close_le p0 q0 a1 h.
by move=> /(_ z)[]; rewrite !mul1r => h1 h2; apply/eqP; rewrite eq_le h1 h2.
Qed.

(* The second law may look at the first output. *)
Lemma close_prod (Z W : finType) a b (P Q : Z -> R) (P' Q' : Z -> W -> R) : 0 <= a -> 0 <= b ->
  nonneg P -> nonneg Q -> (forall z, nonneg (P' z)) -> (forall z, nonneg (Q' z)) ->
  close a P Q -> (forall z, close b (P' z) (Q' z)) ->
  close (a * b) (fun zw : Z * W => P zw.1 * P' zw.1 zw.2) (fun zw => Q zw.1 * Q' zw.1 zw.2).
Proof.
move=> a0 b0 p0 q0 p0' q0' h g [z w] /=; case: (h z) (g z w) => h1 h2 [g1 g2].
by rewrite ![a * b * _]mulrACA; split; apply: ler_pmul => //; [apply: p0' | apply: q0'].
Qed.

Lemma close_post (Z W : finType) a (P Q : Z -> R) (K : Z -> W -> R) : (forall z, nonneg (K z)) ->
  close a P Q -> close a (fun w => \sum_z P z * K z w) (fun w => \sum_z Q z * K z w).
Proof.
move=> k0 h w; rewrite !mulr_sumr; split; apply: ler_sum => z _; case: (h z) => h1 h2;
  by rewrite mulrA; apply: ler_wpmul2r => //; apply: k0.
Qed.

(* A second step that reads the output of a first one: it is enough that the two outputs of the first can be drawn together
   so that the second is close on every pair that occurs. *)
Theorem stable_chain (Y W : finType) a (P P' : Y -> R) (J : Y * Y -> R) (K : Y -> W -> R) : nonneg J ->
  (forall y, \sum_y' J (y, y') = P y) -> (forall y', \sum_y J (y, y') = P' y') ->
  (forall y y', J (y, y') != 0 -> close a (K y) (K y')) ->
  close a (fun w => \sum_y P y * K y w) (fun w => \sum_y P' y * K y w).
Proof.
move=> j0 eP eP' h w.
have -> : \sum_y P y * K y w = \sum_y \sum_y' J (y, y') * K y w.
  by apply: eq_bigr => y _; rewrite -eP mulr_suml.
have -> : \sum_y P' y * K y w = \sum_y \sum_y' J (y, y') * K y' w.
  by rewrite exchange_big; apply: eq_bigr => y _; rewrite -eP' mulr_suml.
rewrite !mulr_sumr; split; apply: ler_sum => y _; rewrite mulr_sumr; apply: ler_sum => y' _;
  (case: (eqVneq (J (y, y')) 0) => [->|ne]; first by rewrite !mul0r mulr0);
  by rewrite mulrCA ler_wpmul2l //; case: (h y y' ne w).
Qed.

(* Laws with different supports are at no finite distance. *)
Lemma close_disjoint (Z : finType) a (P Q : Z -> R) : law1 P -> (forall z, P z != 0 -> Q z = 0) -> ~ close a P Q.
Proof.
move=> [p0 p1] dis h; have : \sum_z P z = 0; last by rewrite p1 => /eqP; rewrite oner_eq0.
apply: big1 => z _; apply/eqP; case: (eqVneq (P z) 0) => // pz; case: (h z) => + _.
by rewrite (dis z pz) mulr0 => le0; move: pz; rewrite eq_le le0 p0.
Qed.
End Close.

Section Spec.
Variables (R : realFieldType) (X : Type) (d : X -> X -> option nat).
(* d = None: infinitely far *)
Implicit Types D : X -> Prop.

Definition mech (Z : finType) (T : X -> Z -> R) : Prop := forall x, law1 (T x).

(* Definition 1 in the universe D with the budget ln v *)
Definition dp_at (Z : finType) D (v : R) (T : X -> Z -> R) : Prop :=
  forall x x' k, D x -> D x' -> d x x' = Some k -> close (v ^+ k) (T x) (T x').

(* The multiverse U, indexed by J; L j = None: an infinite budget. *)
Definition sat (J : Type) (U : J -> X -> Prop) (L : J -> option R) (Z : finType) (T : X -> Z -> R) : Prop :=
  forall j v, L j = Some v -> dp_at (U j) v T.

(* The universes of an invariant: its fibres. *)
Definition fibre (C : Type) (c : X -> C) (v : C) (x : X) : Prop := c x = v.

Definition release (Z : finType) (c : X -> Z) (x : X) (z : Z) : R := (c x == z)%:R.

Lemma release_mech (Z : finType) (c : X -> Z) : mech (release c).
Proof.
move=> x; split=> [z|]; first exact: ler0n.
by rewrite (bigD1 (c x)) //= /release eqxx big1 ?addr0 // => z /negbTE zc; rewrite eq_sym zc.
Qed.

(* Proposition 1: the invariants cost nothing. *)
Theorem invariant_free (J : Type) (U : J -> X -> Prop) (Z : finType) (c : X -> Z) :
  (forall j x x', U j x -> U j x' -> c x = c x') -> sat U (fun=> Some 1) (release c).
Proof.
move=> h j _ [<-] x x' k jx jx' _; rewrite expr1n /release (h j x x') //.
exact: close_refl.
Qed.

(* A function of the invariants costs nothing. *)
Theorem query_free (C : Type) (c : X -> C) (Z : finType) (q : C -> Z) :
  sat (fibre c) (fun=> Some 1) (release (q \o c)).
Proof. by apply: invariant_free => v x x'; rewrite /fibre /= => -> ->. Qed.

(* T publishes the statistic g exactly: it can be read off the output. *)
Definition publishes (Y : Type) (g : X -> Y) (Z : finType) (T : X -> Z -> R) : Prop :=
  exists read : Z -> Y, forall x z, T x z != 0 -> read z = g x.

(* Its converse: a statistic that varies in a universe, at a finite distance, has no finite budget there. *)
Theorem exact_infinite (Y : Type) (g : X -> Y) (Z : finType) (T : X -> Z -> R) D x x' k :
  mech T -> publishes g T -> D x -> D x' -> d x x' = Some k -> g x <> g x' -> forall v, ~ dp_at D v T.
Proof.
move=> mT [read rd] Dx Dx' dk gn v h; apply: (close_disjoint (mT x) _ (h x x' k Dx Dx' dk)) => z Tz.
apply/eqP; case: (eqVneq (T x' z) 0) => // Tz'; case: gn.
by rewrite -(rd x z Tz) (rd x' z Tz').
Qed.

Corollary exact_not_invariant (Y C : Type) (g : X -> Y) (c : X -> C) (Z : finType) (T : X -> Z -> R) x x' k L :
  mech T -> publishes g T -> c x = c x' -> d x x' = Some k -> g x <> g x' -> sat (fibre c) L T -> L (c x) = None.
Proof.
move=> mT pg e dk gn h; case E: (L (c x)) => [v|//]; exfalso.
exact: (exact_infinite mT pg (erefl : fibre c (c x) x) (esym e : fibre c (c x) x') dk gn (h _ _ E)).
Qed.

(* An output that one file of a universe may give and another cannot leaves no finite budget there. *)
Theorem witness_infinite (Z : finType) (T : X -> Z -> R) D x x' k (E : pred Z) :
  D x -> D x' -> d x x' = Some k -> ev (T x) E = 0 -> 0 < ev (T x') E -> forall v, ~ dp_at D v T.
Proof.
move=> Dx Dx' dk none some v /(_ x x' k Dx Dx' dk)/close_events/(_ E)[_].
by rewrite none mulr0 leNgt some.
Qed.

Lemma release_publishes (Z : finType) (c : X -> Z) : publishes c (release c).
Proof. by exists id => x z; rewrite /release; case: (c x =P z) => [->//|_]; rewrite eqxx. Qed.

(* Proposition 2: only the invariants are free. *)
Theorem positive_cost (Z : finType) (T : X -> Z -> R) D v x x' k z :
  mech T -> 0 <= v -> dp_at D v T -> D x -> D x' -> d x x' = Some k -> T x z <> T x' z -> 1 < v /\ (0 < k)%N.
Proof.
move=> mT v0 h Dx Dx' dk ne; have c := h _ _ _ Dx Dx' dk.
have lt1 : 1 < v ^+ k by rewrite ltNge; apply/negP => le1; apply: ne; exact: close_le1 (mT x) (mT x') le1 c z.
case: k lt1 {dk c} => [|k] lt1; first by rewrite expr0 ltxx in lt1.
split=> //; rewrite ltNge; apply/negP => v1.
by have : v ^+ k.+1 <= 1 := exprn_ile1 _ v0 v1; rewrite leNgt lt1.
Qed.

(* Proposition 3 for one universe: a budget of a larger universe is one of a smaller. *)
Lemma dp_at_sub (Z : finType) (T : X -> Z -> R) D D' v : (forall x, D x -> D' x) -> dp_at D' v T -> dp_at D v T.
Proof. by move=> s h x x' k Dx Dx'; apply: h; apply: s. Qed.

Lemma dp_at_le (Z : finType) (T : X -> Z -> R) D v w : mech T -> 0 <= v -> v <= w -> dp_at D v T -> dp_at D w T.
Proof.
move=> mT v0 vw h x x' k Dx Dx' dk; apply: close_le (h _ _ _ Dx Dx' dk); try by case: (mT x); case: (mT x').
by apply: ler_expn2r; rewrite ?nnegrE // (le_trans v0).
Qed.

(* Proposition 5 and Lemma 1: it is enough that each universe lies in one with a budget that is not larger. *)
Theorem refine (J J' : Type) (U : J -> X -> Prop) (U' : J' -> X -> Prop) (L : J -> option R) (L' : J' -> option R)
    (Z : finType) (T : X -> Z -> R) : mech T ->
  (forall j' v', L' j' = Some v' -> exists j v, [/\ L j = Some v, 0 <= v, v <= v' & forall x, U' j' x -> U j x]) ->
  sat U L T -> sat U' L' T.
Proof.
move=> mT h s j' v' E; have [j [v [Ej v0 vv sub]]] := h j' v' E.
by apply: (dp_at_le mT v0 vv); apply: dp_at_sub sub _; apply: s.
Qed.

(* More invariants keep the guarantee. *)
Theorem more_invariants (C C' : Type) (c : X -> C) (c' : X -> C') (L : C -> option R) (Z : finType) (T : X -> Z -> R) :
  sat (fibre c) L T -> sat (fibre (fun x => (c x, c' x))) (fun v => L v.1) T.
Proof. by move=> h [v v'] w /= E; apply: dp_at_sub (h v w E) => x; rewrite /fibre => -[]. Qed.

Lemma coarser_invariants (C C' : Type) (c : X -> C) (f : C -> C') (L : C' -> option R) (Z : finType) (T : X -> Z -> R) :
  sat (fibre (f \o c)) L T -> sat (fibre c) (L \o f) T.
Proof. by move=> h v w /= E; apply: dp_at_sub (h (f v) w E) => x; rewrite /fibre /= => ->. Qed.

(* Injective invariants: no protection, no cost. *)
Lemma injective_free (C : Type) (c : X -> C) (Z : finType) (T : X -> Z -> R) :
  injective c -> sat (fibre c) (fun=> Some 1) T.
Proof.
move=> ci v _ [<-] x x' k; rewrite /fibre => xv xv' _; have -> : x = x' by apply: ci; rewrite xv xv'.
by rewrite expr1n; apply: close_refl.
Qed.

(* Composition; the second mechanism may look at the first output. *)
Definition compose (Z W : finType) (T : X -> Z -> R) (T' : Z -> X -> W -> R) (x : X) (zw : Z * W) : R :=
  T x zw.1 * T' zw.1 x zw.2.
Definition times (l l' : option R) : option R :=
  if l is Some v then (if l' is Some v' then Some (v * v') else None) else None.

Theorem composition (J J' : Type) (U : J -> X -> Prop) (U' : J' -> X -> Prop) (L : J -> option R) (L' : J' -> option R)
    (Z W : finType) (T : X -> Z -> R) (T' : Z -> X -> W -> R) :
  mech T -> (forall z, mech (T' z)) -> (forall j v, L j = Some v -> 0 <= v) -> (forall j v, L' j = Some v -> 0 <= v) ->
  sat U L T -> (forall z, sat U' L' (T' z)) ->
  sat (fun jj x => U jj.1 x /\ U' jj.2 x) (fun jj => times (L jj.1) (L' jj.2)) (compose T T').
Proof.
move=> mT mT' L0 L0' h h' [j j'] w /=; rewrite /times; case E: (L j) => [v|//]; case E': (L' j') => [v'|//] [<-].
move=> x x' k [Ux U'x] [Ux' U'x'] dk; rewrite exprMn /compose.
apply: (close_prod (P' := fun z => T' z x) (Q' := fun z => T' z x')).
- exact: exprn_ge0 (L0 j v E).
- exact: exprn_ge0 (L0' j' v' E').
- by case: (mT x).
- by case: (mT x').
- by move=> z; case: (mT' z x).
- by move=> z; case: (mT' z x').
- exact: (h j v E x x' k).
- by move=> z; apply: (h' z j' v' E' x x' k).
Qed.

(* With invariants: they are joined, and the factors multiply. *)
Corollary composition_invariants (C C' : Type) (c : X -> C) (c' : X -> C') (L : C -> option R) (L' : C' -> option R)
    (Z W : finType) (T : X -> Z -> R) (T' : X -> W -> R) :
  mech T -> mech T' -> (forall j v, L j = Some v -> 0 <= v) -> (forall j v, L' j = Some v -> 0 <= v) ->
  sat (fibre c) L T -> sat (fibre c') L' T' ->
  sat (fibre (fun x => (c x, c' x))) (fun v => times (L v.1) (L' v.2)) (compose T (fun=> T')).
Proof.
move=> mT mT' L0 L0' h h' jj v E.
have := composition mT (fun=> mT') L0 L0' h (fun=> h') E; apply: dp_at_sub => x.
by rewrite /fibre; case: jj {E} => j j' /= [-> ->].
Qed.

Lemma compose_mech (Z W : finType) (T : X -> Z -> R) (T' : Z -> X -> W -> R) :
  mech T -> (forall z, mech (T' z)) -> mech (compose T T').
Proof.
move=> mT mT' x; split=> [[z w]|].
  by rewrite /compose mulr_ge0 //=; [case: (mT x) | case: (mT' z x)].
rewrite -(pair_bigA _ (fun z w => T x z * T' z x w)) /= -[RHS](mT x).2; apply: eq_bigr => z _.
by rewrite -mulr_sumr (mT' z x).2 mulr1.
Qed.

(* Post-processing; it may look at the invariants (TopDown's second step). *)
Definition post (C : Type) (c : X -> C) (Z W : finType) (K : C -> Z -> W -> R) (T : X -> Z -> R) (x : X) (w : W) : R :=
  \sum_z T x z * K (c x) z w.

Theorem post_processing (C : Type) (c : X -> C) (L : C -> option R) (Z W : finType) (K : C -> Z -> W -> R) (T : X -> Z -> R) :
  (forall v z, nonneg (K v z)) -> sat (fibre c) L T -> sat (fibre c) L (post c K T).
Proof.
move=> k0 h j v E x x' k; rewrite /fibre => xj xj' dk; rewrite /post xj xj'.
exact: close_post (h j v E x x' k xj xj' dk).
Qed.

(* Publishing a function of the invariants next to T does not change the budget (TopDown's state totals). *)
Theorem query_beside (C : Type) (c : X -> C) (L : C -> option R) (Z W : finType) (q : C -> W) (T : X -> Z -> R) :
  (forall x, nonneg (T x)) -> sat (fibre c) L T -> sat (fibre c) L (compose T (fun=> release (q \o c))).
Proof.
move=> t0 h j v E x x' k xj xj' dk [z w]; rewrite /compose /release /=.
have c0 : 0 <= (q j == w)%:R :> R := ler0n _ _.
rewrite (xj : c x = j) (xj' : c x' = j) !mulrA.
by case: (h j v E x x' k xj xj' dk z) => h1 h2; split; apply: ler_wpmul2r.
Qed.

(* An invariant that is published but not declared: no finite budget where it varies. *)
Corollary undeclared_invariant (C C' : Type) (c : X -> C) (f : C -> C') (Z : finType) (T : X -> Z -> R) x x' k L :
  mech T -> publishes c T -> f (c x) = f (c x') -> d x x' = Some k -> c x <> c x' ->
  sat (fibre (f \o c)) L T -> L (f (c x)) = None.
Proof. by move=> mT pc e dk ne; apply: (exact_not_invariant mT pc (e : (f \o c) x = (f \o c) x') dk ne). Qed.

(* By events, for outputs that need not be finite in number. *)
Definition satE (J : Type) (U : J -> X -> Prop) (L : J -> option R) (Z : Type) (T : X -> pred Z -> R) : Prop :=
  forall j v, L j = Some v -> forall x x' k, U j x -> U j x' -> d x x' = Some k -> closeE (v ^+ k) (T x) (T x').

Lemma sat_events (J : Type) (U : J -> X -> Prop) (L : J -> option R) (Z : finType) (T : X -> Z -> R) :
  sat U L T <-> satE U L (fun x => ev (T x)).
Proof.
by split=> h j v E x x' k Ux Ux' dk; apply/close_events; apply: (h j v E x x' k).
Qed.

Lemma post_events (J : Type) (U : J -> X -> Prop) (L : J -> option R) (Z W : Type) (f : Z -> W) (T : X -> pred Z -> R) :
  satE U L T -> satE U L (fun x (E : pred W) => T x (fun z => E (f z))).
Proof. by move=> h j v E x x' k Ux Ux' dk Q; apply: (h j v E x x' k Ux Ux' dk). Qed.
End Spec.

(* The PSA: the paper's Theorem 1 as a specification, for files of every size. *)
Section PSA.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Variables (M H S : finType).
Local Notation record := (M * H * S)%type.
Local Notation tables := {ffun M * H * S -> nat}.
Implicit Types N : tables.

Definition files : Type := {n : nat & 'I_n -> record}.
Definition table_of_file (x : files) : tables := table (projT2 x).
Definition dHamS (x x' : files) : option nat :=
  if projT1 x == projT1 x' then Some (dHam (table_of_file x) (table_of_file x')) else None.
(* the universe of the invariants of the table N *)
Definition swapU N (x : files) : Prop := same_invariants N (table_of_file x).
Definition psaF (x : files) : pred tables -> R := Pr p (projT2 x).

(* Remark 1: the paper's b is a function of the invariants. *)
Lemma two_records N m : (1 < #|[set c : H * S | (0 < N (m, c.1, c.2))%N]|)%N =
  (1 < #|[set h | (0 < n_mh N m h)%N]|)%N || (1 < #|[set s | (0 < n_ms N m s)%N]|)%N.
Proof.
have hp h s : (0 < N (m, h, s))%N -> (0 < n_mh N m h)%N.
  by move=> h0; rewrite /n_mh (bigD1 s) //= addn_gt0 h0.
have sp h s : (0 < N (m, h, s))%N -> (0 < n_ms N m s)%N.
  by move=> h0; rewrite /n_ms (bigD1 h) //= addn_gt0 h0.
have exs (h : H) : (0 < n_mh N m h)%N -> exists s : S, (0 < N (m, h, s))%N.
  move=> up; apply/existsP; apply: contraLR up => /existsPn e.
  by rewrite -leqNgt leqn0 /n_mh big1 // => s _; apply/eqP; rewrite -leqn0 leqNgt.
have exh (s : S) : (0 < n_ms N m s)%N -> exists h : H, (0 < N (m, h, s))%N.
  move=> up; apply/existsP; apply: contraLR up => /existsPn e.
  by rewrite -leqNgt leqn0 /n_ms big1 // => h _; apply/eqP; rewrite -leqn0 leqNgt.
apply/idP/orP => [/card_gt1P[[h s] [[h' s'] []]]|[]/card_gt1P[u [u' []]]]; rewrite !inE /=.
- move=> c0 c0'; rewrite xpair_eqE negb_and => /orP[ne|ne]; [left|right]; apply/card_gt1P.
    by exists h, h'; rewrite !inE (hp h s) ?(hp h' s').
  by exists s, s'; rewrite !inE (sp h s) ?(sp h' s').
- move=> /exs[s c0] /exs[s' c0'] ne; apply/card_gt1P; exists (u, s), (u', s'); rewrite !inE /= c0 c0'.
  by rewrite xpair_eqE negb_and ne.
- move=> /exh[h c0] /exh[h' c0'] ne; apply/card_gt1P; exists (h, u), (h', u'); rewrite !inE /= c0 c0'.
  by rewrite xpair_eqE negb_and ne orbT.
Qed.

Lemma paper_b_invariant N N' : same_invariants N N' -> paper_b N = paper_b N'.
Proof.
case=> Emh Ems; rewrite /paper_b; apply: eq_big => [m|m _].
  by rewrite !two_records; congr (_ || _); congr (leq _ _); apply: eq_card => u; rewrite !inE ?Emh ?Ems.
by apply: eq_bigr => h _; rewrite Emh.
Qed.

(* exp of the paper's budget, also where no stratum counts *)
Definition paper_L N : R := if paper_b N == 0%N then 1 else budget p (paper_b N).

Theorem psa_spec : satE dHamS swapU (fun N => Some (paper_L N)) psaF.
Proof.
have sym N N' : same_invariants N N' -> same_invariants N' N by case=> e1 e2; split=> *; rewrite ?e1 ?e2.
have trans N N' N'' : same_invariants N N' -> same_invariants N' N'' -> same_invariants N N''.
  by case=> e1 e2 [f1 f2]; split=> *; rewrite ?e1 ?e2 ?f1 ?f2.
move=> N _ [<-] [n x] [n' x'] k; rewrite /swapU /dHamS /table_of_file /psaF /= => Ux Ux'.
case: eqP => // e; subst n' => -[<-] Q.
have L0 : 0 <= paper_L N.
  by rewrite /paper_L; case: ifP => _; rewrite ?ler01 // (le_trans ler01) // budget_ge1.
have gL : covers p (paper_b N) (paper_L N).
  rewrite /paper_L; case: eqP => [->|_]; last exact: covers_paper.
  move=> i j D i1 j1 D1; rewrite !leqn0 => /eqP -> /eqP -> _ _; rewrite expr1n mul1r.
  exact: lexx.
have bN y : same_invariants N (table y) -> (bmax (table y) <= paper_b N)%N.
  by move=> E; rewrite (paper_b_invariant E) bmax_paper.
split; first by apply: (psa_dp p_gt0 p_lt1 _ (trans _ _ _ (sym _ _ Ux) Ux') (bN _ x Ux) L0 gL).
by rewrite (dHamC p_gt0 p_lt1); apply: (psa_dp p_gt0 p_lt1 _ (trans _ _ _ (sym _ _ Ux') Ux) (bN _ x' Ux') L0 gL).
Qed.
End PSA.
