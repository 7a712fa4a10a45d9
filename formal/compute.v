(* Programs that compute what the theorems speak of, and proofs that they do.

   The programs work on lists of small numbers and on any type with the operations of a field.  Over an ordered field
   they are proved equal to the definitions of the theorems (the *_correct theorems); evaluate.v runs the same programs
   over the rational numbers of Coq's standard library, and the results are compared with Stirred's fractions. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Stirred Require Import derangements algorithm one_stratum alignment strata theorem_1 by_size attained four_types two_types phi.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(* Permutations as lists: nth 0 g i is the record whose swap value record i receives. *)
Section Lists.
Implicit Types (h s g : seq nat) (z : seq (nat * nat)).

Definition perms n : seq (seq nat) := permutations (iota 0 n).
Definition moves g : nat := count (fun i => nth 0 g i != i) (iota 0 (size g)).
(* the records after the swap, as pairs (hold value, swap value) *)
Definition out h s g : seq (nat * nat) := zip h [seq nth 0 s j | j <- g].
(* how many permutations that move k records turn the file (h, s) into a file with the records z *)
Definition ways h s z k : nat :=
  count (fun g => (moves g == k) && perm_eq (out h s g) z) (perms (size s)).

(* The same, faster: sort the records once, then compare lists. *)
Definition before (c c' : nat * nat) : bool := (c.1 < c'.1) || (c.1 == c'.1) && (c.2 <= c'.2).
Definition sorted_file z : seq (nat * nat) := sort before z.
Definition outcomes h s : seq (seq (nat * nat) * nat) := [seq (sorted_file (out h s g), moves g) | g <- perms (size s)].
Definition ways_by_sorting (o : seq (seq (nat * nat) * nat)) z n : seq nat :=
  let z' := sorted_file z in
  let moved_by := [seq zk.2 | zk <- o & zk.1 == z'] in
  [seq count_mem k moved_by | k <- iota 0 n.+1].

Lemma sorted_fileP z z' : (sorted_file z == sorted_file z') = perm_eq z z'.
Proof.
have tot : total before by move=> [a b] [c d]; rewrite /before /=; case: ltngtP => //= _; apply: leq_total.
have tr : transitive before.
  move=> [a b] [c d] [e f]; rewrite /before /= => /orP[l|/andP[/eqP -> l]] /orP[l'|/andP[/eqP <- l']].
  - by rewrite (ltn_trans l l').
  - by rewrite l.
  - by rewrite l'.
  - by rewrite eqxx (leq_trans l l') orbT.
have anti : antisymmetric before.
  move=> [a b] [c d]; rewrite /before /= => /andP[]; case: ltngtP => //= -> l l'.
  by congr (_, _); apply/eqP; rewrite eqn_leq l l'.
by apply/eqP/idP => [/(perm_sortP tot tr anti)|e] //; apply/(perm_sortP tot tr anti).
Qed.

Theorem ways_sorted h s z n : ways_by_sorting (outcomes h s) z n = [seq ways h s z k | k <- iota 0 n.+1].
Proof.
apply: eq_map => k; rewrite /outcomes /ways count_map count_filter count_map; apply: eq_count => g /=.
by rewrite sorted_fileP.
Qed.
End Lists.

(* Numbers. *)
(* Delta, by its recurrence *)
Fixpoint delta (y t : nat) : nat := if t is t1.+1 then delta y.+1 t1 + delta y t1 else der y.

Theorem delta_correct y t : delta y t = Delta y t.
Proof.
elim: t y => [|t IH] y /=; last by rewrite !IH DeltaS.
by rewrite /Delta big_ord_recl big_ord0 bin0 mul1n addn0 addn0.
Qed.

Section Numbers.
Variables (F : Type) (zero one : F) (add mul sub : F -> F -> F) (inv : F -> F) (of_nat : nat -> F).
Variable p : F.

Fixpoint power (x : F) (k : nat) : F := if k is k1.+1 then mul x (power x k1) else one.
Fixpoint total (f : nat -> F) (k : nat) : F := if k is k1.+1 then add (total f k1) (f k1) else zero.

Definition odds_of : F := mul p (inv (sub one p)).
Definition weight_of (k : nat) : F := mul (power odds_of k) (inv (of_nat (der k))).
Definition lone_of (n : nat) : F := mul (mul (of_nat n) p) (power (sub one p) n.-1).
Definition constant_of (n : nat) : F := mul (power (sub one p) n) (inv (sub one (lone_of n))).
(* the chance of one permutation that moves k of n records *)
Definition law_of (n k : nat) : F := mul (constant_of n) (weight_of k).
(* the chance of an output, from the number v_k of permutations that move k records and give it *)
Definition chance_of (n : nat) (v : seq nat) : F := total (fun k => mul (of_nat (nth 0 v k)) (law_of n k)) n.+1.
(* Phi_t of Theorem C *)
Definition phi_of (n1 n2 t : nat) : F :=
  total (fun y1 => mul (of_nat ('C(n1 - t, y1) * delta y1 t))
    (total (fun y2 => mul (of_nat ('C(n2 - t, y2) * delta y2 t)) (weight_of (t.*2 + y1 + y2))) (n2 - t).+1)) (n1 - t).+1.
End Numbers.

Section Correct.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.
Variables (R : realFieldType) (p : R).

Lemma power_exp (x : R) k : power 1 *%R x k = x ^+ k.
Proof. by elim: k => [|k IH] /=; rewrite ?expr0 // exprS IH. Qed.

Lemma total_sum (f : nat -> R) k : total 0 +%R f k = \sum_(i < k) f i.
Proof. by elim: k => [|k IH] /=; rewrite ?big_ord0 // big_ord_recr /= IH. Qed.

Theorem weight_correct k : weight_of 1 *%R (fun x y => x - y) (@GRing.inv _) (fun k => k%:R) p k = weight p k.
Proof. by rewrite /weight_of /weight power_exp. Qed.

Theorem constant_correct n : constant_of 1 *%R (fun x y => x - y) (@GRing.inv _) (fun k => k%:R) p n = constant p n.
Proof. by rewrite /constant_of /lone_of /constant /lone !power_exp. Qed.

Theorem phi_correct n1 n2 t :
  phi_of 0 1 +%R *%R (fun x y => x - y) (@GRing.inv _) (fun k => k%:R) p n1 n2 t = Phi_formula p n1 n2 t.
Proof.
rewrite /phi_of total_sum; apply: eq_bigr => y1 _; rewrite total_sum delta_correct; congr (_ * _).
by apply: eq_bigr => y2 _; rewrite weight_correct delta_correct.
Qed.

(* Permutations of 'I_n as lists. *)
Definition listed n (Y : Type) (f : 'I_n -> Y) : seq Y := [seq f i | i <- enum 'I_n].
Lemma nth_listed n (Y : Type) (y0 : Y) (f : 'I_n -> Y) (i : 'I_n) : nth y0 (listed f) i = f i.
Proof. by rewrite /listed (nth_map i) ?size_enum_ord // nth_ord_enum. Qed.
Definition perm_list n (g : 'S_n) : seq nat := listed (fun i => val (g i)).

Lemma perm_list_inj n : injective (@perm_list n).
Proof.
move=> g g' e; apply/permP => i; apply: val_inj.
by have := congr1 (fun l => nth 0%N l i) e; rewrite /perm_list !nth_listed.
Qed.

Lemma perms_enum n : perm_eq (perms n) [seq perm_list g | g <- enum {perm 'I_n}].
Proof.
apply: uniq_perm; first exact: permutations_uniq.
  by rewrite map_inj_uniq ?enum_uniq //; apply: perm_list_inj.
move=> t; rewrite mem_permutations; apply/idP/mapP => [pt|[g _ ->]]; last first.
  rewrite -val_enum_ord /perm_list /listed (map_comp val); apply: perm_map.
  apply: uniq_perm => [||i]; last 1 first.
    rewrite mem_enum; apply/mapP; exists ((g^-1)%g i); rewrite ?mem_enum ?permKV //.
    by rewrite map_inj_uniq ?enum_uniq //; apply: perm_inj.
  exact: enum_uniq.
have st : size t = n by rewrite (perm_size pt) size_iota.
have ut : uniq t by rewrite (perm_uniq pt) iota_uniq.
have lt (i : 'I_n) : (nth 0%N t i < n)%N.
  by have : nth 0%N t i \in t by [rewrite mem_nth ?st]; rewrite (perm_mem pt) mem_iota.
have fi : injective (fun i => Ordinal (lt i)).
  move=> i j /(congr1 val) /= /eqP; rewrite nth_uniq ?st // => /eqP e; exact: val_inj.
exists (perm fi); first by rewrite mem_enum.
rewrite /perm_list /listed (eq_map (f2 := (nth 0%N t) \o val)); last by move=> i; rewrite permE.
by rewrite map_comp val_enum_ord -{1}(mkseq_nth 0%N t) st.
Qed.

Lemma count_perms n (P : pred (seq nat)) : count P (perms n) = #|[pred g : 'S_n | P (perm_list g)]|.
Proof.
have /seq.permP -> := perms_enum n; rewrite count_map -sum1_count big_enum_cond /= -sum1_card.
by apply: eq_bigl => g; rewrite inE.
Qed.

Lemma count_ord n (P : pred 'I_n) : count P (enum 'I_n) = #|P|.
Proof. by rewrite -sum1_count big_enum_cond /= -sum1_card; apply: eq_bigl. Qed.

Lemma moves_moved n (g : 'S_n) : moves (perm_list g) = #|moved g|.
Proof.
rewrite /moves size_map size_enum_ord -val_enum_ord count_map count_ord.
apply: eq_card => i; rewrite [RHS]inE unfold_in /=; by rewrite (nth_listed 0%N (fun i => val (g i))).
Qed.

Variables (n a b : nat) (h : 'I_n -> 'I_a) (s t : 'I_n -> 'I_b).
Local Notation nums f := (listed (fun i => val (f i))).

Lemma out_list (g : 'S_n) : out (nums h) (nums s) (perm_list g) = listed (fun i => (val (h i), val (s (g i)))).
Proof.
rewrite /out /perm_list [in X in zip _ X]/listed -map_comp {1}/listed zip_map; apply: eq_map => i /=.
by congr (_, _); apply: (nth_listed 0%N (fun i => val (s i))).
Qed.

Lemma same_records (u v : 'I_n -> 'I_b) :
  perm_eq (listed (fun i => (val (h i), val (u i)))) (listed (fun i => (val (h i), val (v i)))) =
  (table (file h u) == table (file h v)).
Proof.
have cnt (w : 'I_n -> 'I_b) (c : 'I_a * 'I_b) :
    count_mem (val c.1, val c.2) (listed (fun i => (val (h i), val (w i)))) = table (file h w) (tt, c.1, c.2).
  by rewrite /listed count_map count_ord ffunE; apply: eq_card => i; rewrite [RHS]inE unfold_in /= /file !xpair_eqE.
apply/idP/eqP => [/seq.permP e|e].
  by apply/ffunP => -[[[] x] y]; rewrite -(cnt u (x, y)) -(cnt v (x, y)) e.
have inL (w : 'I_n -> 'I_b) xy : xy \in listed (fun i => (val (h i), val (w i))) -> exists c : 'I_a * 'I_b, xy = (val c.1, val c.2).
  by case/mapP => i _ ->; exists (h i, w i).
apply/allP => xy; rewrite mem_cat /= => /orP[] /inL [c ->]; by rewrite !cnt e.
Qed.

(* The chance of an output, computed by listing all permutations, is the chance in the theorems. *)
Theorem chance_correct :
  Pr p (file h s) (pred1 (table (file h t))) =
  chance_of 0 1 +%R *%R (fun x y => x - y) (@GRing.inv _) (fun k => k%:R) p n
    [seq ways (nums h) (nums s) (zip (nums h) (nums t)) k | k <- iota 0 n.+1].
Proof.
rewrite /chance_of total_sum Pr_file.
rewrite (partition_big (fun g : 'S_n => inord #|moved g| : 'I_n.+1) xpredT) //; apply: eq_bigr => k _.
rewrite /law_of weight_correct constant_correct (nth_map 0%N) ?size_iota // nth_iota // add0n.
rewrite /ways size_map size_enum_ord count_perms.
have mk (g : 'S_n) : (inord #|moved g| == k) = (#|moved g| == k).
  by rewrite -val_eqE /= inordK // ltnS -[X in (_ <= X)%N]card_ord max_card.
rewrite (eq_bigr (fun=> constant p n * weight p k)); last first.
  by move=> g /andP[_]; rewrite mk /psa subsetT cardsT card_ord => /eqP ->.
rewrite big_const iter_addr addr0 mulr_natl; congr (_ *+ _); apply: eq_card => g.
rewrite !inE unfold_in /= mk moves_moved out_list andbC; congr (_ && _).
by rewrite -same_records [in LHS]/listed zip_map.
Qed.
End Correct.
