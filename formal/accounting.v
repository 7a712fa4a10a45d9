(* TopDown's sensitivity and accounting: Lemmas 1 to 3 of topdown/proof.md, above the divergence of the noise.

   What is taken from the literature stands as a hypothesis of the last section: independent discrete Gaussian noise has
   Renyi divergence D_alpha / alpha at most the sum of rho_q^2 v^2 / 2 over all answers, v the shift of an answer
   (Canonne, Kamath and Steinke 2020), and no function of the output increases it. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Squares.
Variable R : realFieldType.
Variables (I : finType) (D : {set I}) (a : I -> R).

(* The square of a sum of d numbers is at most d times the sum of their squares. *)
Lemma square_sum : (\sum_(i in D) a i) ^+ 2 <= #|D|%:R * \sum_(i in D) a i ^+ 2.
Proof.
have h : 0 <= \sum_(i in D) \sum_(j in D) (a i - a j) ^+ 2.
  by apply: sumr_ge0 => i _; apply: sumr_ge0 => j _; apply: sqr_ge0.
have e i : \sum_(j in D) (a i - a j) ^+ 2 =
    #|D|%:R * a i ^+ 2 - 2%:R * a i * (\sum_(j in D) a j) + \sum_(j in D) a j ^+ 2.
  rewrite (_ : #|D|%:R * a i ^+ 2 = \sum_(j in D) a i ^+ 2); last by rewrite sumr_const mulr_natl.
  rewrite mulr_sumr -sumrB -big_split /=.
  by apply: eq_bigr => j _; ring.
have E : \sum_(i in D) \sum_(j in D) (a i - a j) ^+ 2 =
    2%:R * (#|D|%:R * (\sum_(i in D) a i ^+ 2) - (\sum_(i in D) a i) ^+ 2).
  have e1 : \sum_(i in D) #|D|%:R * a i ^+ 2 = #|D|%:R * \sum_(i in D) a i ^+ 2 by rewrite mulr_sumr.
  have e2 (s : R) : \sum_(i in D) 2%:R * a i * s = 2%:R * (\sum_(i in D) a i) * s by rewrite mulr_sumr mulr_suml.
  have e3 (s : R) : \sum_(i in D) s = #|D|%:R * s by rewrite sumr_const mulr_natl.
  rewrite (eq_bigr _ (fun i _ => e i)) big_split /= sumrB e1 e2 e3.
  move: (\sum_(i in D) a i) (\sum_(i in D) a i ^+ 2) (#|D|%:R : R) => s t d.
  by ring.
by move: h; rewrite E pmulr_rge0 ?ltr0n // subr_ge0.
Qed.
End Squares.

Section Tree.
Variable R : realFieldType.
(* geounits, leaves, cells of the histogram, queries, answers *)
Variables (U Leaf Cell Query Answer : finType).
Variable path : Leaf -> {set U}.                       (* the geounits from the root to a leaf *)
Variable answer : Query -> Cell -> option Answer.      (* a query counts each cell in at most one answer *)
Variable n : nat.
Local Notation person := (Leaf * Cell)%type.
Implicit Types (x y : 'I_n -> person) (z : person).

Definition counted z u q k : R := ((u \in path z.1) && (answer q z.2 == Some k))%:R.
Definition count_of x u q k : R := \sum_i counted (x i) u q k.
(* the persons who differ *)
Definition differing x y : {set 'I_n} := [set i | x i != y i].

(* Lemma 1: a person adds at most one to the answers of a query in a geounit on the path. *)
Lemma counted_once z u q : \sum_k counted z u q k <= (u \in path z.1)%:R.
Proof.
rewrite /counted; case: (u \in _) => /=; last by rewrite big1.
case: (answer q z.2) => [k0|]; last by rewrite big1 // ler01.
by rewrite (bigD1 k0) //= eqxx big1 ?addr0 // => k; rewrite eq_sym => /negbTE nk; case: eqP => // -[] /eqP; rewrite nk.
Qed.

Lemma one_person z z' u q :
  \sum_k (counted z u q k - counted z' u q k) ^+ 2 <= (u \in path z.1)%:R + (u \in path z'.1)%:R.
Proof.
apply: le_trans (ler_add (counted_once z u q) (counted_once z' u q)); rewrite -big_split /=; apply: ler_sum => k _.
rewrite /counted; do 2!case: (_ && _); rewrite ?subrr ?subr0 ?sub0r ?sqrrN ?expr1n ?expr0n ?addr0 ?add0r ?lexx ?ler01 //.
by rewrite addr_ge0 ?ler01.
Qed.

Section Spending.
Variable rho2 : U -> Query -> R.                       (* what is spent on a query in a geounit *)
Hypothesis rho2_ge0 : forall u q, 0 <= rho2 u q.

(* the divergence of all measurements together, by the bound for Gaussian noise *)
Definition loss x y : R := \sum_u \sum_q rho2 u q / 2%:R * \sum_k (count_of x u q k - count_of y u q k) ^+ 2.
Definition spent l : R := \sum_(u in path l) \sum_q rho2 u q.

(* Lemmas 2 and 3: every path spends at most r, so d persons cost at most d^2 r. *)
Theorem tree_loss x y (r : R) : (forall l, spent l <= r) -> loss x y <= #|differing x y|%:R ^+ 2 * r.
Proof.
move=> paths; pose D := differing x y.
have shift u q k : count_of x u q k - count_of y u q k = \sum_(i in D) (counted (x i) u q k - counted (y i) u q k).
  rewrite /count_of -sumrB (bigID (mem D)) /= [X in _ + X]big1 ?addr0 // => i.
  by rewrite inE negbK => /eqP ->; rewrite subrr.
have half_ge0 u q : 0 <= rho2 u q / 2%:R by rewrite divr_ge0 ?ler0n.
have step u q : (rho2 u q / 2%:R * (\sum_k (count_of x u q k - count_of y u q k) ^+ 2) <=
    \sum_(i in D) #|D|%:R * (rho2 u q / 2%:R * ((u \in path (x i).1)%:R + (u \in path (y i).1)%:R)))%R.
  pose mid : R := rho2 u q / 2%:R * (#|D|%:R * \sum_(i in D) \sum_k (counted (x i) u q k - counted (y i) u q k) ^+ 2).
  apply: (@le_trans _ _ mid).
    rewrite ler_wpmul2l // exchange_big mulr_sumr; apply: ler_sum => k _; rewrite shift; exact: square_sum.
  rewrite /mid mulrCA -mulr_sumr ler_wpmul2l ?ler0n // mulr_sumr; apply: ler_sum => i _.
  by rewrite ler_wpmul2l // one_person.
apply: (@le_trans _ _ (\sum_u \sum_q \sum_(i in D) #|D|%:R * (rho2 u q / 2%:R * ((u \in path (x i).1)%:R + (u \in path (y i).1)%:R)))%R).
  by apply: ler_sum => u _; apply: ler_sum => q _; apply: step.
have on_path l : \sum_u \sum_q rho2 u q / 2%:R * (u \in path l)%:R = spent l / 2%:R.
  rewrite /spent mulr_suml [RHS]big_mkcond /=; apply: eq_bigr => u _; case: (u \in path l).
    by rewrite mulr_suml; apply: eq_bigr => q _; rewrite mulr1.
  by rewrite big1 // => q _; rewrite mulr0.
rewrite (eq_bigr (fun u => \sum_(i in D) \sum_q #|D|%:R * (rho2 u q / 2%:R * ((u \in path (x i).1)%:R + (u \in path (y i).1)%:R)))); last first.
  by move=> u _; rewrite exchange_big.
rewrite exchange_big /= (_ : #|D|%:R ^+ 2 * r = \sum_(i in D) #|D|%:R * r); last first.
  by rewrite sumr_const -[RHS]mulr_natl mulrA expr2.
apply: ler_sum => i _.
rewrite (eq_bigr (fun u => #|D|%:R * ((\sum_q rho2 u q / 2%:R * (u \in path (x i).1)%:R) + (\sum_q rho2 u q / 2%:R * (u \in path (y i).1)%:R)))); last first.
  by move=> u _; rewrite -big_split mulr_sumr; apply: eq_bigr => q _; rewrite mulrDr.
rewrite -mulr_sumr big_split /= !on_path ler_wpmul2l ?ler0n //.
have -> : r = r / 2%:R + r / 2%:R by field.
by apply: ler_add; rewrite ler_wpmul2r ?invr_ge0 ?ler0n.
Qed.
End Spending.

(* What the invariants determine costs nothing: a query with the same answers in both files may be left out of the sum. *)
Section Free.
Variables (rho2 : U -> Query -> R) (free : U -> Query -> bool).
Hypothesis rho2_ge0 : forall u q, 0 <= rho2 u q.

Definition unless_free u q : R := if free u q then 0 else rho2 u q.

Theorem tree_loss_free x y (r : R) : (forall u q k, free u q -> count_of x u q k = count_of y u q k) ->
  (forall l, spent unless_free l <= r) -> loss rho2 x y <= #|differing x y|%:R ^+ 2 * r.
Proof.
move=> same paths; suff -> : loss rho2 x y = loss unless_free x y.
  by apply: tree_loss => // u q; rewrite /unless_free; case: ifP.
apply: eq_bigr => u _; apply: eq_bigr => q _; rewrite /unless_free; case: ifP => // f.
by rewrite [X in _ * X]big1 ?mulr0 ?mul0r // => k _; rewrite same // subrr expr0n.
Qed.
End Free.

(* TopDown within its multiverse.  below P Q v: the normalised Renyi divergence of P and Q is at most v (the zCDP scale,
   v is rho^2).  measured x: the law of all noisy answers.  The rest of the run is a function of these and of the invariants. *)
Section Within.
Variable rho2 : U -> Query -> R.
Hypothesis rho2_ge0 : forall u q, 0 <= rho2 u q.
Variables (Law : Type) (below : Law -> Law -> R -> Prop) (measured : ('I_n -> person) -> Law).
Variables (Rest : Type) (after : Rest -> Law -> Law).
Hypothesis noise : forall x y, below (measured x) (measured y) (loss rho2 x y).
Hypothesis weaker : forall P Q v w, v <= w -> below P Q v -> below P Q w.
Hypothesis processed : forall f P Q v, below P Q v -> below (after f P) (after f Q) v.
Variables (Inv : Type) (invariants : ('I_n -> person) -> Inv) (rest : Inv -> Rest).

Theorem topdown_accounting x y (r : R) : (forall l, spent rho2 l <= r) -> invariants x = invariants y ->
  below (after (rest (invariants x)) (measured x)) (after (rest (invariants y)) (measured y)) (#|differing x y|%:R ^+ 2 * r).
Proof. by move=> paths <-; apply: processed; apply: weaker (tree_loss rho2_ge0 x y paths) (noise x y). Qed.

(* The same where the invariants determine all answers of some queries in some geounits: what is spent on these is free. *)
Variable free : U -> Query -> bool.
Hypothesis determined : forall x y u q k, invariants x = invariants y -> free u q -> count_of x u q k = count_of y u q k.

Theorem topdown_free x y (r : R) : (forall l, spent (unless_free rho2 free) l <= r) -> invariants x = invariants y ->
  below (after (rest (invariants x)) (measured x)) (after (rest (invariants y)) (measured y)) (#|differing x y|%:R ^+ 2 * r).
Proof.
move=> paths e; have same u q k := @determined x y u q k e; rewrite -e.
by apply: processed; apply: weaker (tree_loss_free rho2_ge0 same paths) (noise x y).
Qed.
End Within.
End Tree.
