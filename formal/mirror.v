(* Hold and swap may be exchanged: Theorem C for two swap types, and its attainment by groups of types.

   If g turns the file (h, s) into a table, the inverse of g turns the file (s, h) into the table with rows and columns
   exchanged, and moves as many records.  So the chances are the same. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify.
From Stirred Require Import derangements algorithm one_stratum alignment strata theorem_1 by_size attained four_types exchanges two_types phi.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Mirror.
Variables (R : realFieldType) (p : R) (n : nat) (H S : finType).
Implicit Types (h : 'I_n -> H) (s : 'I_n -> S).

(* the table with hold and swap exchanged *)
Definition turned (A B : finType) (N : {ffun unit * A * B -> nat}) : {ffun unit * B * A -> nat} :=
  [ffun c => N (c.1.1, c.2, c.1.2)].

Lemma turned_file h s (g : 'S_n) : table (file h (s \o g^-1%g)) = turned (table (file s (h \o g))).
Proof.
apply/ffunP => -[[[] a] b]; rewrite !ffunE -[LHS](card_preim g); apply: eq_card => i.
by rewrite !inE /file /= !xpair_eqE permK /= andbC.
Qed.

Theorem mirror h s Q : Pr p (file h s) Q = Pr p (file s h) (fun N => Q (turned N)).
Proof.
rewrite !Pr_file (reindex_inj invg_inj) /=; apply: eq_big => [g|g _]; first by rewrite turned_file.
by rewrite /psa movedV.
Qed.

Lemma turned_dHam (A B : finType) (N N' : {ffun unit * A * B -> nat}) : dHam (turned N) (turned N') = dHam N N'.
Proof.
rewrite /dHam (reindex (fun c : unit * A * B => (c.1.1, c.2, c.1.2))) /=; last first.
  by exists (fun c : unit * B * A => (c.1.1, c.2, c.1.2)) => -[[a b] c].
by apply: eq_bigr => -[[a b] c] _; rewrite !ffunE.
Qed.

Lemma turned_invariants (A B : finType) (N N' : {ffun unit * A * B -> nat}) :
  same_invariants N N' -> same_invariants (turned N) (turned N').
Proof.
case=> e1 e2; split=> [m a|m b].
  by have := e2 m a; rewrite /n_ms /n_mh => e; under eq_bigr do rewrite ffunE /=; under [RHS]eq_bigr do rewrite ffunE /=.
by have := e1 m b; rewrite /n_ms /n_mh => e; under eq_bigr do rewrite ffunE /=; under [RHS]eq_bigr do rewrite ffunE /=.
Qed.
End Mirror.

(* Theorem C with two swap types. *)
Theorem theoremC_swap (R : realFieldType) (p : R) n (H : finType) (h : 'I_n -> H) (s : 'I_n -> bool) (L : R)
    (x' : 'I_n -> unit * H * bool) Q :
  0 < p -> p < 1 -> 1 <= L -> bounds_quotients p #|row1 s| #|~: row1 s| L ->
  same_invariants (table (file h s)) (table x') -> alike p L (file h s) x' Q.
Proof.
move=> p0 p1 L1 bound E; pose h' i := (x' i).1.2; pose s' i := (x' i).2.
have Ex : x' =1 file h' s' by move=> i; rewrite /file /h' /s'; case: (x' i) => [[[] u] v].
have T (u : 'I_n -> H) (v : 'I_n -> bool) : turned (table (file u v)) = table (file v u).
  have := turned_file v u 1; rewrite invg1 => e.
  rewrite (_ : table (file u v) = table (file u (v \o (1 : 'S_n)%g))) -?e; apply: table_ext => i; by rewrite /file /= perm1.
have E' : same_invariants (table (file s h)) (table (file s' h')).
  by rewrite -!T; apply: turned_invariants; rewrite -(table_ext Ex).
have := theoremC_formula (fun N => Q (turned N)) p0 p1 L1 bound E'.
by rewrite /alike -!mirror -!T turned_dHam -(table_ext Ex) -(Pr_ext p Q Ex).
Qed.

(* Theorem C is attained at t where the swap types can be split into groups: Z is a union of swap types with as many
   records as the first row, and t records of the first row are outside Z.  Then one set of values leads to the output. *)
Section Groups.
Variables (R : realFieldType) (p : R).
Hypotheses (p_gt0 : 0 < p) (p_lt1 : p < 1).
Variables (n : nat) (S : finType) (h : 'I_n -> bool) (s : 'I_n -> S) (Z : {set 'I_n}).
Local Notation A := (row1 h).
Hypothesis union_of_types : forall i j, s i = s j -> (i \in Z) = (j \in Z).
Hypothesis as_many : #|Z| = #|A|.

Lemma only_Z Y : out_table Y s = out_table Z s -> Y = Z.
Proof.
move=> e; apply/setP => j.
have cell (X : {set 'I_n}) b : (0 < out_table X s (tt, b, s j))%N = [exists i, ((i \in X) == b) && (s i == s j)].
  rewrite ffunE card_gt0; apply/set0Pn/existsP => -[i]; rewrite ?inE => hi; exists i; by rewrite ?inE.
have allZ b : (0 < out_table Z s (tt, b, s j))%N = ((j \in Z) == b).
  rewrite cell; apply/existsP/idP => [[i /andP[/eqP <- /eqP/union_of_types ->]]|jb]; first by rewrite eqxx.
  by exists j; rewrite jb eqxx.
have own : (0 < out_table Y s (tt, j \in Y, s j))%N by rewrite cell; apply/existsP; exists j; rewrite !eqxx.
by move: own; rewrite e allZ => /eqP ->.
Qed.

Theorem theoremC_attained_groups (L : R) (a b : 'I_n) : 1 <= L ->
  a \in A -> a \in Z -> b \notin A -> b \notin Z ->
  (forall Q, Pr p (file h s) Q <= L ^+ 2 * Pr p (file h (s \o tperm a b)) Q /\
             Pr p (file h (s \o tperm a b)) Q <= L ^+ 2 * Pr p (file h s) Q) ->
  let t := #|A :\: Z| in Phi p h t.+1 <= L ^+ 2 * Phi p h t /\ Phi p h t <= L ^+ 2 * Phi p h t.+1.
Proof.
move=> L1 aA aZ bA bZ v t.
have EW : #|tperm a b @^-1: Z| = #|A| by rewrite card_preim.
have c0 : 0 < constant p n by rewrite -[n]card_ord -cardsT constant_gt0.
have one Y : (pred1 (out_table Z s) (out_table Y s)) = (Y == Z).
  by apply/eqP/eqP => [/only_Z|->].
have E1 : Pr p (file h s) (pred1 (out_table Z s)) = constant p n * Phi p h t.
  by rewrite PrE (big_pred1 Z) ?PhiE.
have E2 : Pr p (file h (s \o tperm a b)) (pred1 (out_table Z s)) = constant p n * Phi p h t.+1.
  by rewrite PrE_exchange (big_pred1 Z) // PhiE // one_more.
have [] := v (pred1 (out_table Z s)); rewrite E1 E2 ![L ^+ _ * (_ * _)]mulrCA !ler_pmul2l //.
Qed.
End Groups.
