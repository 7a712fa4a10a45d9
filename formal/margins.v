(* Tables with exact margins: how far the free cells can move (Lemma 1 of exact_margins/proof.md).

   delta is the difference of two tables of one universe, l1 its l1 norm, so l1 / 2 is their distance. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Margins.
Variables (R : realFieldType) (I J : finType) (delta : I -> J -> R).
Local Notation l1 := (\sum_i \sum_j `|delta i j|).

(* a bound on every cell is one on the squares of any cells *)
Lemma squares_of_free (m : R) (free : I -> J -> bool) : (forall i j, `|delta i j| <= m) ->
  \sum_i \sum_(j | free i j) delta i j ^+ 2 <= m * l1.
Proof.
move=> most; rewrite mulr_sumr; apply: ler_sum => i _; rewrite mulr_sumr big_mkcond /=; apply: ler_sum => j _.
have m0 : 0 <= m := le_trans (normr_ge0 _) (most i j).
case: ifP => _; last by rewrite mulr_ge0.
by rewrite -(real_normK (num_real (delta i j))) expr2 ler_wpmul2r.
Qed.

Hypothesis rows : forall i, \sum_j delta i j = 0.

Lemma rest_of_row i j : \sum_(j' | j' != j) delta i j' = - delta i j.
Proof. by apply/eqP; rewrite -addr_eq0 addrC; have := rows i; rewrite (bigD1 j) //= => ->. Qed.

Lemma cell_in_row i j : 2%:R * `|delta i j| <= \sum_j' `|delta i j'|.
Proof.
rewrite (bigD1 j) //= mulr_natl mulr2n ler_add2l -normrN -rest_of_row.
exact: ler_norm_sum.
Qed.

(* Row sums only: the squares of the free cells add up to at most twice the square of the distance. *)
Theorem shift_rows (free : I -> J -> bool) :
  \sum_i \sum_(j | free i j) delta i j ^+ 2 <= 2%:R * (l1 / 2%:R) ^+ 2.
Proof.
apply: le_trans (squares_of_free (m := l1 / 2%:R) free _) _; last by rewrite le_eqVlt; apply/orP; left; apply/eqP; field.
move=> i j; rewrite ler_pdivl_mulr ?ltr0n // mulrC; apply: le_trans (cell_in_row i j) _.
by rewrite [X in _ <= X](bigD1 i) //= ler_addl; apply: sumr_ge0 => i' _; apply: sumr_ge0.
Qed.

Hypothesis columns : forall j, \sum_i delta i j = 0.

Lemma cell_in_table i j : 4%:R * `|delta i j| <= l1.
Proof.
have other : `|delta i j| <= \sum_(i' | i' != i) `|delta i' j|.
  have -> : delta i j = - \sum_(i' | i' != i) delta i' j.
    by apply/eqP; rewrite -addr_eq0; have := columns j; rewrite (bigD1 i) //= => ->.
  by rewrite normrN; apply: ler_norm_sum.
rewrite (bigD1 i) //= (_ : 4%:R * `|delta i j| = 2%:R * `|delta i j| + 2%:R * `|delta i j|); last by ring.
apply: ler_add (cell_in_row i j) _.
apply: (@le_trans _ _ (\sum_(i' | i' != i) 2%:R * `|delta i' j|)); last by apply: ler_sum => i' _; apply: cell_in_row.
by rewrite -mulr_sumr ler_wpmul2l ?ler0n.
Qed.

(* Row and column sums: at most the square of the distance. *)
Theorem shift_both (free : I -> J -> bool) :
  \sum_i \sum_(j | free i j) delta i j ^+ 2 <= (l1 / 2%:R) ^+ 2.
Proof.
apply: le_trans (squares_of_free (m := l1 / 4%:R) free _) _; last by rewrite le_eqVlt; apply/orP; left; apply/eqP; field.
by move=> i j; rewrite ler_pdivl_mulr ?ltr0n // mulrC cell_in_table.
Qed.
End Margins.
