(* Several strata: a factor for one exchange in one stratum is a factor for the whole file.

   The records of a stratum A are numbered, so that its permutations are those of 'I_k, k = #|A|, and the theorems about
   files of one stratum apply to it.  Every other stratum only adds its own cells to the published table. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify.
From Stirred Require Import derangements algorithm one_stratum alignment strata theorem_1 by_size attained four_types exchanges two_types phi mirror.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

(* The permutations of a set A are the permutations of its numbers. *)
Section Numbered.
Variables (R : realFieldType) (p : R) (n : nat) (A : {set 'I_n}) (a0 : 'I_n).
Hypothesis a0A : a0 \in A.
Local Notation k := #|A|.
Local Notation rank := (enum_rank_in a0A).
Local Notation val_of := (@enum_val _ (mem A)).
Implicit Types (g : 'S_n) (q : 'S_k).

Definition lift_fun q (i : 'I_n) : 'I_n := if i \in A then val_of (q (rank i)) else i.
Lemma lift_fun_inj q : injective (lift_fun q).
Proof.
move=> i j; rewrite /lift_fun; case: ifP => iA; case: ifP => jA // e.
- move: e => /enum_val_inj/perm_inj e; by rewrite -(enum_rankK_in a0A iA) e enum_rankK_in.
- by have := enum_valP (q (rank i)); rewrite e jA.
- by have := enum_valP (q (rank j)); rewrite -e iA.
Qed.
(* q, done to the records of A *)
Definition lift_perm q : 'S_n := perm (@lift_fun_inj q).

Lemma liftE q (i : 'I_k) : lift_perm q (val_of i) = val_of (q i).
Proof. by rewrite permE /lift_fun enum_valP enum_valK_in. Qed.

Lemma moved_lift q : moved (lift_perm q) = val_of @: moved q.
Proof.
apply/setP => i; rewrite inE; case: (boolP (i \in A)) => iA.
  rewrite -(enum_rankK_in a0A iA) liftE (inj_eq enum_val_inj) mem_imset; last exact: enum_val_inj.
  by rewrite inE.
rewrite permE /lift_fun (negbTE iA) eqxx; apply/esym/negP => /imsetP[j _ e].
by move: iA; rewrite e enum_valP.
Qed.

Lemma lift_on q : moved (lift_perm q) \subset A.
Proof. by rewrite moved_lift; apply/subsetP => _ /imsetP[j _ ->]; apply: enum_valP. Qed.

Lemma lift_inj : injective lift_perm.
Proof. by move=> q q' e; apply/permP => i; apply: enum_val_inj; rewrite -!liftE e. Qed.

Lemma lift_onto g : moved g \subset A -> exists q, g = lift_perm q.
Proof.
rewrite moved_subE => gA.
have gv (i : 'I_k) : g (val_of i) \in A by rewrite perm_closed // enum_valP.
have fi : injective (fun i : 'I_k => rank (g (val_of i))).
  by move=> i j e; apply: enum_val_inj; apply: (@perm_inj _ g); rewrite -(enum_rankK_in a0A (gv i)) e enum_rankK_in.
exists (perm fi); apply/permP => i; rewrite permE /lift_fun; case: ifP => iA; last by rewrite (out_perm gA) ?iA.
by rewrite permE enum_rankK_in // enum_rankK_in // ?perm_closed.
Qed.

Lemma psa_lift q : psa p A (lift_perm q) = psa p setT q.
Proof.
by rewrite /psa lift_on subsetT cardsT card_ord moved_lift card_imset //; apply: enum_val_inj.
Qed.

(* A sum over the permutations with the law of the stratum A is one over those of its numbers. *)
Lemma sum_lift (P : pred 'S_n) (F : 'S_n -> R) :
  \sum_(g | P g) psa p A g * F g = \sum_(q | P (lift_perm q)) psa p setT q * F (lift_perm q).
Proof.
rewrite (bigID (fun g => moved g \subset A)) /= [X in _ + X]big1 ?addr0; last first.
  by move=> g /andP[_ ng]; rewrite /psa (negbTE ng) mul0r.
transitivity (\sum_(g in [set lift_perm q | q in [pred q | P (lift_perm q)]]) psa p A g * F g).
  apply: eq_bigl => g; apply/andP/imsetP => [[Pg /lift_onto[q e]]|[q]]; first by exists q; rewrite ?inE -?e.
  by rewrite inE => Pq ->; rewrite lift_on.
rewrite big_imset /=; last by move=> q q' _ _; apply: lift_inj.
by apply: eq_big => [q|q _]; rewrite ?inE ?psa_lift.
Qed.
End Numbered.

Section Change.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Variables (M H S : finType) (n : nat).
Local Notation record := (M * H * S)%type.
Local Notation tables := {ffun M * H * S -> nat}.
Implicit Types (x y : 'I_n -> record) (c : M) (f : {ffun M -> 'S_n}).

Definition records x c : {set 'I_n} := stratum (fun i => (x i).1.1) c.
(* the file of the stratum c: its records in the order of their numbers *)
Definition sub_hold x c (i : 'I_#|records x c|) : H := (x (enum_val i)).1.2.
Definition sub_swap x c (y : 'I_n -> record) (i : 'I_#|records x c|) : S := (y (enum_val i)).2.
(* the published table after the permutations f *)
Definition published x f : tables := table (fun i => ((x i).1, swapped (fun i => (x i).1.1) (fun i => (x i).2) f i)).
(* the cells of the stratum c from N, all others from N0 *)
Definition joined c (N : {ffun unit * H * S -> nat}) (N0 : tables) : tables :=
  [ffun d => if d.1.1 == c then N (tt, d.1.2, d.2) else N0 d].
Definition put c (g : 'S_n) f : {ffun M -> 'S_n} := [ffun c' => if c' == c then g else f c'].
(* the chance of the permutations of all strata but c *)
Definition others x c f : R := \prod_(c' | c' != c) psa p (records x c') (f c').

Lemma others_ge0 x c f : 0 <= others x c f.
Proof. by apply: prodr_ge0 => c' _; apply: psa_ge0. Qed.

Lemma law_put x c g f : law p (fun i => (x i).1.1) (put c g f) = psa p (records x c) g * others x c f.
Proof.
rewrite /law (bigD1 c) //= ffunE eqxx; congr (_ * _).
by apply: eq_bigr => c' nc; rewrite ffunE (negbTE nc).
Qed.

Lemma published_put x c a0 (a0A : a0 \in records x c) (q : 'S_#|records x c|) f :
  published x (put c (lift_perm a0A q) f) = joined c (table (file (@sub_hold x c) (@sub_swap x c x \o q))) (published x f).
Proof.
apply/ffunP => -[[m h] s]; rewrite !ffunE /=; case: eqP => [->|mc]; last first.
  apply: eq_card => i; rewrite !inE !ffunE; case: (x i) => [[m' h'] s'] /=.
  by rewrite !xpair_eqE /=; case: (m' =P m) => //= ->; rewrite (introF eqP mc).
rewrite -[RHS](card_imset _ (@enum_val_inj _ (mem (records x c)))); apply: eq_card => i.
rewrite inE; apply/eqP/imsetP => [[e1 e2]|[j]].
  have iA : i \in records x c by rewrite inE e1.
  exists (enum_rank_in a0A i); last by rewrite enum_rankK_in.
  rewrite inE /file /= /sub_hold /sub_swap enum_rankK_in // e1 /=; apply/eqP; congr (_, _, _).
  by move: e2; rewrite !ffunE e1 /= eqxx -{1}(enum_rankK_in a0A iA) liftE.
rewrite inE /file /= /sub_hold /sub_swap => /eqP[<- <-] ->.
have := enum_valP j; rewrite inE => /eqP e; rewrite !ffunE e eqxx liftE.
by congr (_, _); rewrite [LHS]surjective_pairing e.
Qed.

(* The chance of an event, one stratum at a time. *)
Lemma Pr_split x c a0 (a0A : a0 \in records x c) Q :
  Pr p x Q = \sum_(f : {ffun M -> 'S_n} | f c == 1%g) others x c f *
    Pr p (file (@sub_hold x c) (@sub_swap x c x)) (fun N => Q (joined c N (published x f))).
Proof.
rewrite /Pr {1}/prob -/(published x _) (partition_big (put c 1%g) (fun f => f c == 1%g)) /=; last by move=> f _; rewrite ffunE eqxx.
apply: eq_bigr => f /eqP fc.
have pf g : put c 1%g (put c g f) = f.
  by apply/ffunP => c'; rewrite !ffunE; case: eqP => // ->; rewrite fc.
rewrite (reindex_onto (fun g => put c g f) (fun f1 => f1 c)) /=; last first.
  move=> f1 /andP[_ /eqP <-]; apply/ffunP => c'; rewrite !ffunE; by case: eqP => [->|].
rewrite (eq_bigl (fun g => Q (published x (put c g f)))); last first.
  by move=> g; rewrite pf eqxx ffunE !eqxx !andbT.
rewrite (eq_bigr (fun g => psa p (records x c) g * others x c f)); last by move=> g _; rewrite law_put.
rewrite (sum_lift p a0A) -mulr_suml mulrC; congr (_ * _).
rewrite -/(Pr p (file (@sub_hold x c) (@sub_swap x c x)) (fun N => Q (joined c N (published x f)))) Pr_file.
by apply: eq_bigl => q; rewrite published_put.
Qed.

(* Two files that differ in one stratum only. *)
Theorem one_stratum_changed x y c (K : R) Q : 0 <= K ->
  (forall i, (y i).1 = (x i).1) -> (forall i, (x i).1.1 != c -> (y i).2 = (x i).2) ->
  (forall E, Pr p (file (@sub_hold x c) (@sub_swap x c x)) E <= K * Pr p (file (@sub_hold x c) (@sub_swap x c y)) E) ->
  (records x c == set0 -> 1 <= K) ->
  Pr p x Q <= K * Pr p y Q.
Proof.
move=> K0 yx1 yx2 bound empty.
have [e0|/set0Pn[a0 a0A]] := eqVneq (records x c) set0.
  have e : y =1 x.
    move=> i; rewrite [y i]surjective_pairing [x i]surjective_pairing yx1 yx2 //.
    by have /setP/(_ i) := e0; rewrite !inE => ->.
  rewrite (Pr_ext p Q e) ler_pemull ?empty ?e0 //.
  by apply: sumr_ge0 => f _; apply: law_ge0.
have ER c' : records y c' = records x c' by apply/setP => i; rewrite !inE yx1.
have a0A' : a0 \in records y c by rewrite ER.
rewrite (Pr_split a0A) (Pr_split a0A') mulr_sumr; apply: ler_sum => f fc.
have -> : others y c f = others x c f by apply: eq_bigr => c' _; rewrite ER.
case: (boolP [forall c', (c' != c) ==> (moved (f c') \subset records x c')]) => [/forallP sup|]; last first.
  case/forallPn => c'; rewrite negb_imply => /andP[nc ns].
  by rewrite {1 2}/others (bigD1 c') //= /psa (negbTE ns) !mul0r mulr0.
rewrite [X in _ <= X]mulrCA ler_wpmul2l ?others_ge0 //; apply: le_trans (bound _) _.
rewrite ler_wpmul2l //.
have -> : Pr p (file (@sub_hold y c) (@sub_swap y c y)) (fun N => Q (joined c N (published y f))) =
    Pr p (file (@sub_hold x c) (@sub_swap x c y)) (fun N => Q (joined c N (published y f))).
  have eH : forall B (e : B = records x c), 
      Pr p (file (fun i : 'I_#|B| => (y (enum_val i)).1.2) (fun i : 'I_#|B| => (y (enum_val i)).2)) (fun N => Q (joined c N (published y f))) =
      Pr p (file (@sub_hold x c) (@sub_swap x c y)) (fun N => Q (joined c N (published y f))).
    by move=> B e; subst B; apply: Pr_ext => i; rewrite /file /sub_hold /sub_swap yx1.
  exact: (eH _ (ER c)).
rewrite le_eqVlt; apply/orP; left; apply/eqP; rewrite !Pr_file; apply: eq_bigl => q; congr (Q _).
apply/ffunP => -[[m h] s]; rewrite !ffunE /=; case: eqP => // /eqP mc; apply: eq_card => i.
rewrite !inE !ffunE yx1; case E: ((x i).1 == (m, h)); last first.
  by rewrite -[LHS]/(((x i).1 == (m, h)) && _) -[RHS]/(((x i).1 == (m, h)) && _) E.
have em : (x i).1.1 = m by rewrite (eqP E).
rewrite em yx2 //; have [->|mv] := eqVneq (f m i) i; first by rewrite em.
have /subsetP/(_ (f m i)) := implyP (sup m) mc; rewrite !inE (inj_eq perm_inj) mv => /(_ isT)/eqP ->.
exact: mc.
Qed.

(* The files x and y agree in match and hold values; from x to y, one stratum after the other. *)
Definition sub_distance x y c : nat :=
  dHam (table (file (@sub_hold x c) (@sub_swap x c x))) (table (file (@sub_hold x c) (@sub_swap x c y))).

Lemma sub_table x y c h s : (forall i, (y i).1 = (x i).1) ->
  table (file (@sub_hold x c) (@sub_swap x c y)) (tt, h, s) = table y (c, h, s).
Proof.
move=> yx; rewrite !ffunE -(card_imset _ (@enum_val_inj _ (mem (records x c)))); apply: eq_card => i.
rewrite inE; apply/imsetP/eqP => [[j]|e].
  rewrite inE /file /sub_hold /sub_swap => /eqP[<- <-] ->; have := enum_valP j; rewrite inE => /eqP e.
  by rewrite [LHS]surjective_pairing yx; congr (_, _); rewrite [LHS]surjective_pairing e.
have iA : i \in records x c by rewrite inE -yx e.
exists (enum_rank_in iA i); last by rewrite enum_rankK_in.
by rewrite inE /file /sub_hold /sub_swap enum_rankK_in // -yx e.
Qed.

Lemma sum_sub_distance x y : (forall i, (y i).1 = (x i).1) -> (\sum_c sub_distance x y c)%N = dHam (table x) (table y).
Proof.
move=> yx; rewrite /sub_distance /dHam.
rewrite [RHS](partition_big (fun d : record => d.1.1) xpredT) //=; apply: eq_bigr => c _.
rewrite [RHS](reindex_onto (fun e : unit * H * S => (c, e.1.2, e.2)) (fun d : record => (tt, d.1.2, d.2))) /=; last first.
  by move=> [[m h] s] /= /eqP ->.
by apply: eq_big => [[[[] h] s]|[[[] h] s] _]; rewrite ?eqxx // !sub_table.
Qed.

(* x, with the swap values of y in the strata of C *)
Definition mixed x y (C : {set M}) i : record := ((x i).1, if (x i).1.1 \in C then (y i).2 else (x i).2).

Lemma aligned_strata x y (L : R) Q : 1 <= L -> (forall i, (y i).1 = (x i).1) ->
  (forall c E, Pr p (file (@sub_hold x c) (@sub_swap x c x)) E <=
     L ^+ sub_distance x y c * Pr p (file (@sub_hold x c) (@sub_swap x c y)) E) ->
  Pr p x Q <= L ^+ dHam (table x) (table y) * Pr p y Q.
Proof.
move=> L1 yx bound; have L0 := le_trans ler01 L1.
suff step (l : seq M) : uniq l -> Pr p x Q <= L ^+ (\sum_(c <- l) sub_distance x y c)%N * Pr p (mixed x y [set c in l]) Q.
  have := step (enum M) (enum_uniq _); rewrite big_enum /= (sum_sub_distance yx).
  rewrite (@Pr_ext _ p _ _ _ _ (mixed x y _) y) // => i; rewrite /mixed inE mem_enum /= -yx.
  exact/esym/surjective_pairing.
elim: l => [|c l IH] /= => [_|/andP[cl ul]].
  rewrite big_nil expr0 mul1r (@Pr_ext _ p _ _ _ _ (mixed x y _) x) // => i.
  by rewrite /mixed !inE -surjective_pairing.
apply: le_trans (IH ul) _; rewrite big_cons addnC exprD -mulrA ler_wpmul2l ?exprn_ge0 //.
apply: (@one_stratum_changed (mixed x y [set c in l]) (mixed x y [set c0 in c :: l]) c).
- exact: exprn_ge0.
- by [].
- by move=> i ic; rewrite /mixed !inE (negbTE ic).
- move=> E; set z := mixed x y [set c in l]; set z' := mixed x y _.
  have ic (i : 'I_#|records x c|) : (x (enum_val i)).1.1 = c by apply/eqP; have := enum_valP i; rewrite inE.
  have e1 : Pr p (file (@sub_hold x c) (@sub_swap x c x)) E = Pr p (file (@sub_hold z c) (@sub_swap z c z)) E.
    by apply: Pr_ext => i; rewrite /file /sub_hold /sub_swap /z /mixed /= ic inE (negbTE cl).
  have e2 : Pr p (file (@sub_hold x c) (@sub_swap x c y)) E = Pr p (file (@sub_hold z c) (@sub_swap z c z')) E.
    by apply: Pr_ext => i; rewrite /file /sub_hold /sub_swap /z /z' /mixed /= ic !inE eqxx.
  by move: (bound c E); rewrite e1 e2.
- by move=> _; apply: exprn_ege1.
Qed.

(* Strata are independent and distances add: a factor that is valid in every stratum by itself is valid for the file. *)
Theorem strata_bound x x' (L : R) Q : 1 <= L -> same_invariants (table x) (table x') ->
  (forall c (s s' : 'I_#|records x c| -> S) E,
     same_invariants (table (file (@sub_hold x c) s)) (table (file (@sub_hold x c) s')) ->
     Pr p (file (@sub_hold x c) s) E <=
       L ^+ dHam (table (file (@sub_hold x c) s)) (table (file (@sub_hold x c) s')) * Pr p (file (@sub_hold x c) s') E) ->
  Pr p x Q <= L ^+ dHam (table x) (table x') * Pr p x' Q.
Proof.
move=> L1 [Emh Ems] bound.
have [|[m s]|al [r [ralh ralms rD rmv]]] := @lemma5 n _ _ (fun i => (x i).1) (fun i => (x' i).1)
  (fun i => ((x i).1.1, (x i).2)) (fun i => ((x' i).1.1, (x' i).2)).
- by move=> a; rewrite !n_mhE Emh.
- by rewrite !n_msE Ems.
rewrite -(Pr_reorder p x' al Q) -(table_reorder x' al); pose y i := x' (al i).
have yx i : (y i).1 = (x i).1 := ralh i.
apply: (@aligned_strata x y L Q L1 yx) => c E; apply: bound; split=> [[] h|[] s].
  by rewrite /n_mh; under eq_bigr do rewrite sub_table //; under [RHS]eq_bigr do rewrite sub_table //;
    have := Emh c h; rewrite /n_mh -(table_reorder x' al).
by rewrite /n_ms; under eq_bigr do rewrite sub_table //; under [RHS]eq_bigr do rewrite sub_table //;
  have := Ems c s; rewrite /n_ms -(table_reorder x' al).
Qed.
End Change.

(* Names of hold values play no part. *)
Section Renamed.
Variables (R : realFieldType) (p : R) (n : nat) (H S : finType) (u : 'I_n -> bool) (phi : bool -> H).
Hypothesis phi_inj : injective phi.
Implicit Types s : 'I_n -> S.

Definition renamed (N : {ffun unit * bool * S -> nat}) : {ffun unit * H * S -> nat} :=
  [ffun c => (\sum_(b | phi b == c.1.2) N (tt, b, c.2))%N].

Lemma renamed_file s : renamed (table (file u s)) = table (file (phi \o u) s).
Proof.
apply/ffunP => -[[[] h] v]; rewrite !ffunE /=.
case: (pickP (fun b => phi b == h)) => [b /eqP <-|none].
  rewrite (big_pred1 b); last by move=> b'; rewrite /= (inj_eq phi_inj).
  by rewrite ffunE; apply: eq_card => i; rewrite !inE /file !xpair_eqE /= (inj_eq phi_inj).
rewrite big_pred0 //; apply/esym/eqP; rewrite cards_eq0; apply/eqP/setP => i; rewrite !inE /file !xpair_eqE /=.
by rewrite none.
Qed.

Lemma renamed_cell s b v : table (file (phi \o u) s) (tt, phi b, v) = table (file u s) (tt, b, v).
Proof. by rewrite !ffunE; apply: eq_card => i; rewrite !inE /file !xpair_eqE /= (inj_eq phi_inj). Qed.

Lemma Pr_renamed s E : Pr p (file (phi \o u) s) E = Pr p (file u s) (fun N => E (renamed N)).
Proof. by rewrite !Pr_file; apply: eq_bigl => g; rewrite renamed_file. Qed.

Lemma renamed_invariants s s' :
  same_invariants (table (file (phi \o u) s)) (table (file (phi \o u) s')) ->
  same_invariants (table (file u s)) (table (file u s')).
Proof.
move=> [_ e]; split=> [[] b|[] v]; first by rewrite -!(n_mhE _ (tt, b)).
by have := e tt v; rewrite -!n_msE.
Qed.

Lemma renamed_dHam s s' :
  dHam (table (file (phi \o u) s)) (table (file (phi \o u) s')) = dHam (table (file u s)) (table (file u s')).
Proof.
rewrite /dHam (bigID (fun d : unit * H * S => d.1.2 \in codom phi)) /= [X in (_ + X)%N]big1 ?addn0; last first.
  move=> [[[] h] v] /= nh; rewrite !ffunE (_ : [set i | file (phi \o u) s i == _] = set0) ?cards0 //.
  apply/setP => i; rewrite !inE /file !xpair_eqE /=; apply/negP => /andP[/eqP e _].
  by move: nh; rewrite -e codom_f.
rewrite (reindex (fun d : unit * bool * S => (d.1.1, phi d.1.2, d.2))) /=; last first.
  exists (fun d : unit * H * S => (d.1.1, if d.1.2 == phi true then true else false, d.2)) => [[[[] b] v] _|[[[] h] v]] /=.
    by rewrite (inj_eq phi_inj); case: b.
  by rewrite inE /= => /codomP[b ->]; rewrite (inj_eq phi_inj); case: b.
by apply: eq_big => [[[[] b] v]|[[[] b] v] _]; rewrite ?codom_f // !renamed_cell.
Qed.
End Renamed.

(* Theorem C for files with strata, each with at most two hold values h0 c and h1 c; n1 and n2 are invariants. *)
Theorem theoremC_strata (R : realFieldType) (p : R) (M H S : finType) n (x x' : 'I_n -> M * H * S) (L : R)
    (h0 h1 : M -> H) Q :
  0 < p -> p < 1 -> 1 <= L ->
  (forall i, ((x i).1.2 == h0 (x i).1.1) || ((x i).1.2 == h1 (x i).1.1)) -> (forall c, h0 c != h1 c) ->
  (forall c, bounds_quotients p (n_mh (table x) c (h0 c)) (n_mh (table x) c (h1 c)) L) ->
  same_invariants (table x) (table x') ->
  Pr p x Q <= L ^+ dHam (table x) (table x') * Pr p x' Q.
Proof.
move=> p0 p1 L1 two h01 bound E; apply: (strata_bound p0 p1 Q L1 E) => c s s' E1 same.
pose u i := @sub_hold M H S n x c i == h0 c; pose phi (b : bool) := if b then h0 c else h1 c.
have pin : injective phi by move=> [] [] // e; have := h01 c; rewrite /phi in e; rewrite e eqxx.
have ic (i : 'I_#|records x c|) : (x (enum_val i)).1.1 = c by apply/eqP; have := enum_valP i; rewrite inE.
have eu : @sub_hold M H S n x c =1 phi \o u.
  move=> i; rewrite /phi /u /= /sub_hold; case: eqP => [//|/eqP ne].
  by have := two (enum_val i); rewrite ic (negbTE ne) => /eqP.
have tE (v : 'I_#|records x c| -> S) : table (file (@sub_hold M H S n x c) v) = table (file (phi \o u) v).
  by apply: table_ext => i; rewrite /file eu.
have pE (v : 'I_#|records x c| -> S) : Pr p (file (@sub_hold M H S n x c) v) E1 = Pr p (file u v) (fun N => E1 (renamed phi N)).
  by rewrite -Pr_renamed //; apply: Pr_ext => i; rewrite /file eu.
rewrite !pE; rewrite !tE in same *; rewrite renamed_dHam //.
have cardu b : #|[set i | u i == b]| = n_mh (table x) c (phi b).
  rewrite -(n_mhE x (c, phi b)) -(card_imset _ (@enum_val_inj _ (mem (records x c)))); apply: eq_card => i; rewrite inE.
  apply/imsetP/eqP => [[j]|e].
    rewrite inE => /eqP <- ->; rewrite [LHS]surjective_pairing ic; congr (_, _); exact: (eu j).
  have iA : i \in records x c by rewrite inE e.
  exists (enum_rank_in iA i); rewrite ?enum_rankK_in // inE /u /sub_hold enum_rankK_in // e /phi /=.
  by case: (b) => /=; rewrite ?eqxx //; rewrite [h1 c == _]eq_sym (negbTE (h01 c)).
have r1 : #|row1 u| = n_mh (table x) c (h0 c) by rewrite -(cardu true); apply: eq_card => i; rewrite !inE eqb_id.
have r2 : #|~: row1 u| = n_mh (table x) c (h1 c) by rewrite -(cardu false); apply: eq_card => i; rewrite !inE eqbF_neg.
have := @theoremC_formula R p _ S u s L (file u s') (fun N => E1 (renamed phi N)) p0 p1 L1.
rewrite r1 r2 => /(_ (bound c) (renamed_invariants same)) [le _]; exact: le.
Qed.
