(* The smallest distance between two different data sets of one universe of published margins.

   If every set of t variables lies in a published margin, the distance is at least 2^t; if some set of t + 1 variables
   lies in none, 2^t is attained. *)
From mathcomp Require Import all_ssreflect all_algebra zify.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

(* X: the cells; f i: the i-th variable.  A product is the case X = {dffun forall i, T i} (below); a set X of
   cells that is not a full product (structural zeros) is covered too. *)
Section Lower.
Variables (X I : finType) (Y : I -> eqType) (f : forall i, X -> Y i).
Implicit Types (d : X -> int) (A B : {set I}) (u v : X).

(* u and v agree on the variables of A *)
Definition agree A u v := [forall i in A, f i v == f i u].
(* the A-margin of d at the values of u *)
Definition marg d A u : int := \sum_(v | agree A u v) d v.
Definition l1 d : int := \sum_v `|d v|.

Lemma agree_refl A u : agree A u u. Proof. by apply/forall_inP. Qed.

(* A coarser margin is a sum of finer ones. *)
Lemma marg_sub d A B : A \subset B -> (forall u, marg d B u = 0) -> forall u, marg d A u = 0.
Proof.
move=> AB dB u; rewrite /marg (partition_big (fun v => [set w | agree B v w]) xpredT) //=.
apply: big1 => C _.
case: (pickP [pred v | agree A u v && ([set w | agree B v w] == C)]) => [v /= /andP[uv /eqP vC]|none]; last first.
  by rewrite big_pred0.
apply: etrans (dB v); apply: eq_bigl => w; apply/andP/idP => [[_ /eqP wC]|vw].
  have : w \in [set w' | agree B v w'] by rewrite vC -wC inE agree_refl.
  by rewrite inE.
split.
  apply/forall_inP => i iA; have /forall_inP/(_ i iA)/eqP <- := uv.
  by have /forall_inP/(_ i (subsetP AB i iA)) := vw.
rewrite -vC; apply/eqP/setP => z; rewrite !inE.
by apply/forall_inP/forall_inP => h i iB; have /forall_inP/(_ i iB)/eqP e := vw;
  [rewrite -e | rewrite e]; apply: h.
Qed.

(* d on the slice f i = f i v, zero elsewhere *)
Definition slice d (i : I) v : X -> int := fun w => if f i w == f i v then d w else 0.

Lemma marg_slice d i v A u : marg (slice d i v) A u = 0 \/ exists w, marg (slice d i v) A u = marg d (i |: A) w.
Proof.
rewrite /marg /slice -big_mkcondr /=.
case: (pickP [pred w | agree A u w && (f i w == f i v)]) => [w /= /andP[uw /eqP wv]|none]; last first.
  by left; rewrite big_pred0.
right; exists w; apply: eq_bigl => z; apply/andP/forall_inP => [[uz zv] j|h].
  rewrite in_setU1 => /orP[/eqP ->|jA]; first by rewrite wv.
  by have /forall_inP/(_ j jA)/eqP -> := uz; have /forall_inP/(_ j jA)/eqP -> := uw.
split; last by rewrite -wv h ?setU11.
apply/forall_inP => j jA; rewrite (eqP (h j _)) ?in_setU1 ?jA ?orbT //.
by have /forall_inP/(_ j jA) := uw.
Qed.

Hypothesis f_inj : forall u v, (forall i, f i u = f i v) -> u = v.

Lemma l1_even d : marg d set0 =1 (fun=> 0) -> forall u, d u != 0 -> 2%:Z <= l1 d.
Proof.
move=> d0 u du; have S0 : \sum_v d v = 0.
  apply: etrans (d0 u); apply: eq_bigl => v; apply/esym/forall_inP => i; rewrite inE //.
have E : l1 d = 2%:Z * \sum_v Num.max (d v) 0.
  rewrite -[RHS]subr0 -[X in _ - X]S0 mulr_sumr -sumrB; apply: eq_bigr => v _.
  lia.
have l0 : 0 < l1 d.
  rewrite /l1 (bigD1 u) //= ltr_paddr ?normr_gt0 //.
  by apply: sumr_ge0 => v _; apply: normr_ge0.
by move: E l0; lia.
Qed.

(* A nonzero integer table whose margins up to t variables vanish has l1 norm at least 2^(t+1). *)
Theorem l1_lower t d : (forall A u, (#|A| <= t)%N -> marg d A u = 0) ->
  forall u, d u != 0 -> (2 ^ t.+1)%:Z <= l1 d.
Proof.
elim: t d => [|t IH] d dM u du.
  by rewrite expn1; apply: (l1_even _ du) => v; apply: dM; rewrite cards0.
case: (pickP [pred v | (v != u) && (d v != 0)]) => [v /= /andP[vu dv]|none]; last first.
  have := dM set0 u; rewrite cards0 => /(_ isT); rewrite /marg (bigD1 u) ?agree_refl //= big1.
    by rewrite addr0 => e; rewrite e eqxx in du.
  by move=> w /andP[_ wu]; have /= := none w; rewrite wu /= => /negbFE/eqP.
have [i iuv] : exists i, f i u != f i v.
  apply/existsP; apply: contraR vu => /existsPn h; apply/eqP; apply: f_inj => i.
  by have := h i; rewrite negbK => /eqP.
have sM w A z : (#|A| <= t)%N -> marg (slice d i w) A z = 0.
  move=> At; case: (marg_slice d i w A z) => // -[y ->]; apply: dM.
  by rewrite cardsU1; case: (i \notin A); rewrite ?add1n ?add0n ?ltnS // (leq_trans At).
have hu : (2 ^ t.+1)%:Z <= l1 (slice d i u) by apply: (IH _ (sM u) u); rewrite /slice eqxx.
have hv : (2 ^ t.+1)%:Z <= l1 (slice d i v) by apply: (IH _ (sM v) v); rewrite /slice eqxx.
have : l1 (slice d i u) + l1 (slice d i v) <= l1 d.
  rewrite /l1 -big_split /=; apply: ler_sum => w _; rewrite /slice.
  case: eqP => [->|_]; first by rewrite (negbTE iuv) normr0 addr0.
  by case: eqP => _; rewrite normr0 add0r ?normr_ge0.
apply: le_trans; rewrite [(2 ^ t.+2)%N]expnS mul2n -addnn PoszD; exact: ler_add.
Qed.
End Lower.

(* A product of finite factors, and the alternating table on two levels of each variable of F. *)
Section Product.
Variables (I : finType) (T : I -> finType).
Local Notation X := {dffun forall i : I, T i}.
Definition coord (i : I) (v : X) : T i := v i.
Local Notation marg := (marg coord).
Local Notation agree := (agree coord).
Implicit Types (A B F : {set I}) (u v w : X).

Lemma coord_inj u v : (forall i, coord i u = coord i v) -> u = v.
Proof. by move=> h; apply/ffunP => i; apply: h. Qed.

Variables (F : {set I}) (a b : X).
Hypothesis ab : forall i, i \in F -> a i != b i.

(* the corner of the cube that has level b on B and level a elsewhere *)
Definition corner B : X := [ffun i => if i \in B then b i else a i].

Lemma corner_inj : {in powerset F &, injective corner}.
Proof.
move=> B C; rewrite !inE => BF CF /ffunP e; apply/setP => i; have := e i; rewrite !ffunE.
case: (boolP (i \in F)) => iF; last first.
  by rewrite (negbTE (contra (subsetP BF i) iF)) (negbTE (contra (subsetP CF i) iF)).
by have := ab iF; do 2?case: ifP => // _; move=> + e1; rewrite e1 eqxx.
Qed.

Definition sgn B : int := (-1) ^+ #|B|.
Definition alt v : int := \sum_(B in powerset F | corner B == v) sgn B.

Lemma alt_corner B : B \subset F -> alt (corner B) = sgn B.
Proof.
move=> BF; rewrite /alt (big_pred1 B) // => C /=; rewrite !inE; apply/andP/eqP => [[CF /eqP]|->].
  by apply: corner_inj; rewrite !inE.
by rewrite eqxx.
Qed.

Lemma alt_off v : v \notin corner @: powerset F -> alt v = 0.
Proof.
move=> nv; rewrite /alt big_pred0 // => B; apply/negP => /andP[BF /eqP e].
by case/negP: nv; apply/imsetP; exists B.
Qed.

Lemma l1_alt : l1 alt = (2 ^ #|F|)%:Z.
Proof.
rewrite /l1 (bigID (mem (corner @: powerset F))) /= [X in _ + X]big1 ?addr0; last first.
  by move=> v /alt_off ->; rewrite normr0.
rewrite big_imset /=; last exact: corner_inj.
rewrite (eq_bigr (fun=> 1%:Z)); last first.
  by move=> B; rewrite inE => BF; rewrite alt_corner // normrX normrN1 expr1n.
by rewrite sumr_const card_powerset; apply: natz.
Qed.

(* toggle the variable i *)
Definition flip i B := if i \in B then B :\ i else i |: B.
Lemma in_flip i B j : (j \in flip i B) = (if j == i then i \notin B else j \in B).
Proof.
by rewrite /flip; case: ifP => iB; rewrite !inE; case: eqP => //= ->.
Qed.
Lemma flipK i : involutive (flip i).
Proof.
move=> B; apply/setP => j; rewrite !in_flip eqxx negbK.
by case: eqP => // ->.
Qed.
Lemma sgn_flip i B : sgn (flip i B) = - sgn B.
Proof.
rewrite /sgn /flip; case: ifP => iB; last by rewrite cardsU1 iB add1n exprS mulN1r.
by rewrite [in RHS](cardsD1 i) iB add1n exprS mulN1r opprK.
Qed.

(* Every margin that does not contain F vanishes. *)
Theorem marg_alt A u : ~~ (F \subset A) -> marg alt A u = 0.
Proof.
case/subsetPn => i iF iA.
have E : marg alt A u = \sum_(B in powerset F | agree A u (corner B)) sgn B.
  rewrite /marg /alt (exchange_big_dep (mem (powerset F))) /=; last by move=> v B _ /andP[].
  rewrite [RHS]big_mkcondr /=; apply: eq_bigr => B BF.
  case: ifP => h; last by rewrite big_pred0 // => v; apply/negP => /and3P[+ _ /eqP e]; rewrite -e h.
  by rewrite (big_pred1 (corner B)) // => v; rewrite /= BF [v == _]eq_sym; case: eqP => [<-|]; rewrite ?h ?andbF.
have E2 : marg alt A u = - marg alt A u.
  rewrite {1}E (reindex_inj (can_inj (flipK i))) /= E -sumrN; apply: eq_big => [B|B _]; last exact: sgn_flip.
  congr (_ && _).
    rewrite !inE; apply/subsetP/subsetP => h j; case: (j =P i) => [->//|/eqP/negbTE ji] jB; apply: h; move: jB;
    by rewrite in_flip ji.
  by apply/forall_inP/forall_inP => h j jA; have := h j jA; rewrite /coord !ffunE in_flip;
    rewrite (_ : (j == i) = false) //; apply/eqP => ji; rewrite -ji jA in iA.
by move: E2; lia.
Qed.
End Product.

(* Universes of published margins. *)
Section Universe.
Variables (I : finType) (T : I -> finType).
Local Notation X := {dffun forall i : I, T i}.
Implicit Types (N : X -> nat) (P : {set {set I}}).

(* the A-margin of a table of counts *)
Definition margin N (A : {set I}) (u : X) : nat := (\sum_(v | agree (@coord I T) A u v) N v)%N.
(* the two tables have the same published margins *)
Definition same_margins P N N' : Prop := forall A, A \in P -> forall u, margin N A u = margin N' A u.
(* half the l1 distance (half_l1) *)
Definition hdist N N' : nat := (\sum_v (N v - N' v))%N.

Definition diff N N' v : int := (N v)%:Z - (N' v)%:Z.

Lemma marg_diff N N' A u : marg (@coord I T) (diff N N') A u = (margin N A u)%:Z - (margin N' A u)%:Z.
Proof. by rewrite /marg /margin /diff sumrB -!(big_morph Posz PoszD (erefl _)). Qed.

Lemma l1_diff N N' : l1 (diff N N') = (\sum_v ((N v - N' v) + (N' v - N v)))%N%:Z.
Proof. by rewrite /l1 (big_morph Posz PoszD (erefl _)); apply: eq_bigr => v _; rewrite /diff; lia. Qed.

(* If some margin is published, the totals agree and hdist is half the l1 distance. *)
Lemma half_l1 P N N' : P != set0 -> same_margins P N N' -> l1 (diff N N') = (hdist N N').*2%:Z.
Proof.
case/set0Pn => A AP S.
have S0 : \sum_v diff N N' v = 0.
  case: (pickP (xpredT : pred X)) => [u _|none]; last by rewrite big_pred0.
  have h := marg_sub (sub0set A) (fun u => etrans (marg_diff N N' A u) _).
  apply: etrans (h _ u); first by apply: eq_bigl => v; apply/esym/forall_inP => i; rewrite inE.
  by move=> w; rewrite (S _ AP) subrr.
rewrite l1_diff big_split /= -addnn !PoszD; congr (_ + _).
apply/eqP; rewrite eq_sym -subr_eq0 -S0; apply/eqP.
rewrite /hdist !(big_morph Posz PoszD (erefl _)) -sumrB; apply: eq_bigr => v _; rewrite /diff; lia.
Qed.

(* Every t-subset of the variables lies in a published margin: two different tables of one universe are at
   distance at least 2^t. *)
Theorem distance_lower P t N N' : (t <= #|I|)%N ->
  (forall A : {set I}, #|A| = t -> exists2 B, B \in P & A \subset B) ->
  same_margins P N N' -> (exists u, N u <> N' u) -> (2 ^ t <= hdist N N')%N.
Proof.
move=> tI cover S [u Nu].
have big (A : {set I}) : (#|A| <= t)%N -> exists2 B, B \in P & A \subset B.
  move=> At; have [C CA CE] : exists2 C : {set I}, A \subset C & #|C| = t.
    have : (t - #|A| <= #|~: A|)%N by have := cardsC A; move: At tI; clear; lia.
    rewrite -bin_gt0 -cards_draws card_gt0 => /set0Pn[D]; rewrite inE => /andP[DA /eqP Dk].
    exists (A :|: D); first exact: subsetUl.
    rewrite cardsU (_ : A :&: D = set0) ?cards0 ?subn0 ?Dk ?subnKC //.
    by apply/eqP; rewrite setI_eq0 disjoint_sym disjoints_subset.
  by have [B BP CB] := cover C CE; exists B => //; apply: subset_trans CB.
have Pn : P != set0.
  by have [|B BP _] := big set0; [rewrite cards0 | apply/set0Pn; exists B].
have : (2 ^ t.+1)%:Z <= l1 (diff N N').
  apply: (l1_lower (@coord_inj I T) (t := t) _ (u := u)); last by rewrite /diff; lia.
  move=> A v /big[B BP AB]; apply: (marg_sub AB) => w.
  by rewrite marg_diff (S _ BP) subrr.
by rewrite (half_l1 Pn S) expnS mul2n; lia.
Qed.

(* F lies in no published margin: from a table with a record in each odd corner of a cube on F there is another
   one of its universe at distance 2^(#|F| - 1). *)
Theorem distance_attained P (F : {set I}) (a b : X) N :
  (forall B, B \in P -> ~~ (F \subset B)) -> (forall i, i \in F -> a i != b i) ->
  (0 < #|F|)%N -> P != set0 ->
  (forall B : {set I}, B \subset F -> odd #|B| -> (0 < N (corner a b B))%N) ->
  exists N', same_margins P N N' /\ hdist N N' = (2 ^ #|F|.-1)%N.
Proof.
move=> nF ab F0 Pn pos; pose N' v := absz ((N v)%:Z + alt F a b v).
have ge0 v : 0 <= (N v)%:Z + alt F a b v.
  case: (boolP (v \in [set corner a b B | B in powerset F])) => [/imsetP[B]|/alt_off ->]; last by lia.
  rewrite inE => BF ->; rewrite alt_corner // /sgn -signr_odd.
  by have := pos B BF; case: (odd _) => /=; [move=> /(_ isT) | move=> _]; lia.
have E v : diff N N' v = - alt F a b v by rewrite /diff /N' gez0_abs // opprD addrA subrr add0r.
have S : same_margins P N N'.
  move=> A AP u; apply/eqP; rewrite -(inj_eq (can_inj absz_nat)) -subr_eq0 -marg_diff.
  rewrite /marg (eq_bigr _ (fun v _ => E v)) sumrN oppr_eq0; apply/eqP.
  by apply: marg_alt => //; apply: nF.
exists N'; split=> //; have := half_l1 Pn S.
have -> : l1 (diff N N') = l1 (alt F a b) by apply: eq_bigr => v _; rewrite E normrN.
by rewrite l1_alt // -{1}(prednK F0) expnS mul2n => -[] /double_inj ->.
Qed.

(* Both: the smallest distance in such a universe is 2^t. *)
Corollary smallest_distance P t (F : {set I}) (a b : X) N :
  (forall A : {set I}, #|A| = t -> exists2 B, B \in P & A \subset B) ->
  #|F| = t.+1 -> (forall B, B \in P -> ~~ (F \subset B)) -> (forall i, i \in F -> a i != b i) ->
  (forall B : {set I}, B \subset F -> odd #|B| -> (0 < N (corner a b B))%N) ->
  (forall N', same_margins P N N' -> (exists u, N u <> N' u) -> (2 ^ t <= hdist N N')%N) /\
  (exists N', same_margins P N N' /\ hdist N N' = (2 ^ t)%N).
Proof.
move=> cover Ft nF ab pos; have tI : (t <= #|I|)%N by rewrite ltnW // -Ft max_card.
split=> [N' S Nn|]; first exact: distance_lower cover S Nn.
have Pn : P != set0.
  have : (0 < #|[set A : {set I} | (A \subset F) && (#|A| == t)]|)%N by rewrite cards_draws Ft bin_gt0.
  rewrite card_gt0 => /set0Pn[A]; rewrite inE => /andP[_ /eqP At].
  by have [B BP _] := cover A At; apply/set0Pn; exists B.
have := distance_attained nF ab _ Pn pos; rewrite Ft; exact.
Qed.
End Universe.
