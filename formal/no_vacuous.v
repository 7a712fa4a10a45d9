(* Theorem J: no swap that leaves the table as it was (law 3), for one stratum.

   A draw is kept if nobody was selected or the table has changed; else it is drawn again.  P0 is the chance that nobody is
   selected.  The theorem turns any factor of Algorithm 1 into one of this law. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify ring.
From Stirred Require Import derangements algorithm one_stratum alignment strata theorem_1 by_size attained four_types.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section NoVacuous.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Variables (H S : finType) (n : nat).
Implicit Types (h : 'I_n -> H) (s : 'I_n -> S) (g : 'S_n).
Local Notation o := (odds p).
Local Notation tables := {ffun unit * H * S -> nat}.
Local Notation draw := (psa p [set: 'I_n]).
Local Notation P0 := (draw 1%g).

Definition kept h s g : bool := (g == 1%g) || (table (file h (s \o g)) != table (file h s)).
Definition kept_chance h s : R := \sum_(g | kept h s g) draw g.
(* the chance of the table z under law 3 *)
Definition PrJ h s (z : tables) : R :=
  (\sum_(g | kept h s g && (table (file h (s \o g)) == z)) draw g) / kept_chance h s.

Lemma draw_ge0 g : 0 <= draw g. Proof. exact: psa_ge0. Qed.
Lemma P0_gt0 : 0 < P0. Proof. by apply: psa_gt0 => //; apply/subsetP => i. Qed.

Lemma P0E : P0 = constant p n.
Proof.
rewrite /psa (introT subsetP) // (_ : moved 1 = set0); last by apply/setP => k; rewrite !inE perm1 eqxx.
by rewrite cards0 /weight der0 expr0 divr1 mulr1 cardsT card_ord.
Qed.

Lemma P0_ge : (1 - p) ^+ n <= P0.
Proof.
have l1 : lone p n < 1 by have := lone_lt1 p_gt0 p_lt1 [set: 'I_n]; rewrite cardsT card_ord.
have q0 : 0 <= (1 - p) ^+ n by rewrite exprn_ge0 // subr_ge0 ltW.
rewrite P0E /constant ler_pdivl_mulr ?subr_gt0 // ler_pimulr // ler_subl_addl ler_addr.
by rewrite /lone !mulr_ge0 ?ler0n ?(ltW p_gt0) // exprn_ge0 // subr_ge0 ltW.
Qed.

Lemma file_1 h s : table (file h (s \o (1 : 'S_n)%g)) = table (file h s).
Proof. by apply: table_ext => i; rewrite /file /= perm1. Qed.

Lemma kept_own h s : \sum_(g | kept h s g && (table (file h (s \o g)) == table (file h s))) draw g = P0.
Proof.
rewrite (big_pred1 1%g) // => g; rewrite /kept; have [->|g1] := eqVneq g 1%g; first by rewrite file_1 /= !eqxx.
by rewrite /= (negbTE g1) andNb.
Qed.

Lemma kept_other h s z : z != table (file h s) ->
  \sum_(g | kept h s g && (table (file h (s \o g)) == z)) draw g = Pr p (file h s) (pred1 z).
Proof.
move=> zn; rewrite Pr_file; apply: eq_bigl => g /=; case: (table _ =P z) => [e|]; last by rewrite andbF.
by rewrite andbT /kept e zn orbT.
Qed.

(* what is thrown away: draws that move somebody and change nothing *)
Lemma kept_chanceE h s : kept_chance h s = 1 + P0 - Pr p (file h s) (pred1 (table (file h s))).
Proof.
have own : Pr p (file h s) (pred1 (table (file h s))) = P0 + \sum_(g | ~~ kept h s g) draw g.
  rewrite Pr_file (bigD1 1%g) /=; last by rewrite file_1 eqxx.
  congr (_ + _); apply: eq_bigl => g; rewrite /kept negb_or negbK andbC.
  by case: (g == 1%g); rewrite ?andbF.
rewrite own -(psa_sum1 p_gt0 p_lt1 [set: 'I_n]) (bigID (kept h s)) /= -/(kept_chance h s); ring.
Qed.

Lemma kept_chance_le1 h s : kept_chance h s <= 1.
Proof.
rewrite -(psa_sum1 p_gt0 p_lt1 [set: 'I_n]) (bigID (kept h s)) /= ler_addl.
by apply: sumr_ge0 => g _; apply: draw_ge0.
Qed.

(* Where two records differ in both values, their exchange is kept. *)
Lemma kept_chance_ge h s i j : h i != h j -> s i != s j -> P0 * (1 + o ^+ 2) <= kept_chance h s.
Proof.
move=> hij sij; have ij : i != j by apply: contra hij => /eqP ->.
have t1 : tperm i j != 1%g.
  by apply/eqP => /permP/(_ i); rewrite tpermL perm1 => e; rewrite e eqxx in ij.
have changed : kept h s (tperm i j).
  apply/orP; right; apply/negP => /eqP/ffunP/(_ (tt, h i, s i)); rewrite !ffunE.
  apply/eqP; rewrite neq_ltn; apply/orP; left; apply: proper_card; apply/properP; split; last first.
    by exists i; rewrite !inE /file /= ?eqxx // !xpair_eqE tpermL !eqxx /= eq_sym (negbTE sij).
  apply/subsetP => k; rewrite !inE /file /= !xpair_eqE => /andP[/andP[_ /eqP hk] /eqP sk]; rewrite hk !eqxx /=.
  case: (eqVneq k i) => [ki|ki]; first by rewrite ki eqxx.
  case: (eqVneq k j) => [kj|kj]; first by move: hk; rewrite kj => e; rewrite e eqxx in hij.
  by rewrite -sk tpermD // eq_sym.
rewrite /kept_chance (bigD1 1%g) /=; last by rewrite /kept eqxx.
rewrite mulrDr mulr1 ler_add2l (bigD1 (tperm i j)) /=; last by rewrite changed.
apply: (@le_trans _ _ (draw (tperm i j))); last by rewrite ler_addl; apply: sumr_ge0 => g _; apply: draw_ge0.
rewrite le_eqVlt; apply/orP; left; apply/eqP; rewrite /psa !(introT subsetP) //.
rewrite moved_tperm // cards2 ij (_ : moved 1 = set0); last by apply/setP => k; rewrite !inE perm1 eqxx.
by rewrite cards0 /weight der0 expr0 divr1 mulr1 (_ : der 2 = 1%N) ?divr1.
Qed.

Lemma own_ge h s : P0 <= Pr p (file h s) (pred1 (table (file h s))).
Proof.
rewrite Pr_file (bigD1 1%g) /=; last by rewrite file_1 eqxx.
by rewrite ler_addl; apply: sumr_ge0 => g _; apply: draw_ge0.
Qed.

(* Theorem J: B pays for what is thrown away; B^2 = 1 / ((1 - p)^(2 n) (1 + o^2)) is enough. *)
Theorem theoremJ h s h' s' (L B : R) (z : tables) i j i' j' :
  h i != h j -> s i != s j -> h' i' != h' j' -> s' i' != s' j' ->
  0 <= L -> 1 <= B -> 1 <= B ^+ 2 * (((1 - p) ^+ n) ^+ 2 * (1 + o ^+ 2)) ->
  let D := dHam (table (file h s)) (table (file h' s')) in (1 < D)%N ->
  (forall Q, Pr p (file h s) Q <= L ^+ D * Pr p (file h' s') Q) ->
  table (file h s) != table (file h' s') ->
  PrJ h s z <= (L * B) ^+ D * PrJ h' s' z.
Proof.
move=> hij sij hij' sij' L0 B1 pays_rate D D2 near ne.
have pays : 1 <= B ^+ 2 * (P0 ^+ 2 * (1 + o ^+ 2)).
  apply: le_trans pays_rate _; apply: ler_wpmul2l; first exact: sqr_ge0.
  apply: ler_wpmul2r; first by rewrite addr_ge0 ?ler01 ?sqr_ge0.
  by apply: ler_expn2r P0_ge; rewrite nnegrE ?exprn_ge0 ?subr_ge0 ?ltW ?P0_gt0.
set Z := kept_chance h s; set Z' := kept_chance h' s'.
have c0 := P0_gt0; have u1 : 1 <= 1 + o ^+ 2 by rewrite ler_addl sqr_ge0.
have cu0 : 0 < P0 * (1 + o ^+ 2) by rewrite mulr_gt0 // (lt_le_trans ltr01).
have Zge : P0 * (1 + o ^+ 2) <= Z := kept_chance_ge hij sij.
have Z'ge : P0 * (1 + o ^+ 2) <= Z' := kept_chance_ge hij' sij'.
have Z0 : 0 < Z := lt_le_trans cu0 Zge; have Z'0 : 0 < Z' := lt_le_trans cu0 Z'ge.
have Z'1 : Z' <= 1 := kept_chance_le1 h' s'.
have c1 : P0 <= 1.
  rewrite -(psa_sum1 p_gt0 p_lt1 [set: 'I_n]) (bigD1 1%g) //= ler_addl; apply: sumr_ge0 => g _; exact: draw_ge0.
have E0 : 0 <= L ^+ D := exprn_ge0 _ L0.
(* what is needed: numerators a and b of the two files *)
have enough a b : 0 <= b -> a * Z' <= L ^+ D * (B ^+ 2 * b) * Z -> a / Z <= (L * B) ^+ D * (b / Z').
  move=> b0 le; rewrite ler_pdivr_mulr // mulrA mulrAC ler_pdivl_mulr //; apply: le_trans le _.
  rewrite ler_wpmul2r ?(ltW Z0) // exprMn -[X in _ <= X]mulrA ler_wpmul2l // ler_wpmul2r //.
  exact: ler_weexpn2l.
have BZ : 1 <= B ^+ 2 * P0 * Z.
  apply: le_trans pays _; rewrite expr2 -[P0 * P0 * _]mulrA mulrA; apply: ler_wpmul2l => //.
  by rewrite mulr_ge0 ?sqr_ge0 // ltW.
have BZ1 : 1 <= B ^+ 2 * Z.
  apply: le_trans BZ _; rewrite ler_wpmul2r ?(ltW Z0) // ler_pimulr ?sqr_ge0 //.
rewrite /PrJ -/Z -/Z'; case: (eqVneq z (table (file h s))) => [->|zn].
  (* the table of the first file itself *)
  rewrite kept_own kept_other //; set q := Pr p (file h' s') _.
  have q0 : 0 <= q by rewrite /q Pr_file; apply: sumr_ge0 => g _; apply: draw_ge0.
  apply: enough => //; apply: (@le_trans _ _ (L ^+ D * q)).
    apply: le_trans (near (pred1 (table (file h s)))); apply: le_trans (own_ge h s).
    by rewrite ler_pimulr // ltW.
  rewrite -mulrA ler_wpmul2l // mulrAC; apply: ler_pemull => //.
case: (eqVneq z (table (file h' s'))) => [->|zn'].
  (* the table of the second file *)
  rewrite kept_own kept_other; last by rewrite eq_sym.
  apply: enough; first exact: ltW.
  apply: (@le_trans _ _ (L ^+ D)).
    apply: (@le_trans _ _ (L ^+ D * (1 + P0 - Z') * Z')).
      rewrite ler_wpmul2r ?(ltW Z'0) //; apply: le_trans (near _) _; rewrite ler_wpmul2l //.
      by rewrite /Z' kept_chanceE opprB addrCA subrr addr0.
    rewrite -mulrA -[X in _ <= X]mulr1 ler_wpmul2l // -subr_ge0.
    have -> : 1 - (1 + P0 - Z') * Z' = (1 - Z') + Z' * (Z' - P0) by ring.
    rewrite addr_ge0 ?subr_ge0 // mulr_ge0 ?(ltW Z'0) // subr_ge0; apply: le_trans Z'ge.
    by apply: ler_pemulr => //; apply: ltW.
  by rewrite -[X in X <= _]mulr1 -mulrA ler_wpmul2l.
rewrite !kept_other //; set q := Pr p (file h' s') _.
have q0 : 0 <= q by rewrite /q Pr_file; apply: sumr_ge0 => g _; apply: draw_ge0.
apply: enough => //; apply: (@le_trans _ _ (L ^+ D * q)).
  apply: le_trans (near (pred1 z)); rewrite ler_pimulr // Pr_file; apply: sumr_ge0 => g _; exact: draw_ge0.
rewrite -mulrA ler_wpmul2l // mulrAC; apply: ler_pemull => //.
Qed.
End NoVacuous.
