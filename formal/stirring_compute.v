(* Programs that compute the chances of stirring, and proofs that they do.  evaluate.v runs them, as those of compute.v. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra.
From Stirred Require Import derangements compute stirring_law stirring_moves stirring_types.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Section Numbers.
Variables (F : Type) (zero one : F) (add mul : F -> F -> F) (inv : F -> F) (of_nat : nat -> F).
Variable lam : F.

Fixpoint rising_of (n : nat) : F := if n is k.+1 then mul (rising_of k) (add lam (of_nat k)) else one.
(* the chance of one permutation of n records that has c cycles *)
Definition stir_of (n c : nat) : F := mul (power one mul lam c) (inv (rising_of n)).
Fixpoint falling_of (n m : nat) : F := if m is k.+1 then mul (falling_of n k) (add lam (of_nat (n - m))) else one.
(* the chance that m of n records go to given places, which closes f cycles *)
Definition injection_of (n m f : nat) : F := mul (power one mul lam f) (inv (falling_of n m)).
(* the chance that t records of each of two types change hands, with psi in the place of lam *)
Definition trade_weight (n1 n2 t : nat) : F := mul (of_nat ('C(n1, t) * 'C(n2, t))) (power one mul lam t).
Definition trade_of (n1 n2 t : nat) : F :=
  mul (trade_weight n1 n2 t) (inv (total zero add (trade_weight n1 n2) (minn n1 n2).+1)).
End Numbers.

Section Correct.
Import GRing.Theory Num.Theory.
Local Open Scope ring_scope.
Variables (R : realFieldType) (lam : R) (T : finType).
Hypothesis lam_gt0 : 0 < lam.
Local Notation nat_of := (fun k : nat => k%:R : R).

Lemma rising_correct n : rising_of 1 +%R *%R nat_of lam n = rising lam n.
Proof. by elim: n => [|n IH] /=; rewrite ?risingS ?IH // /rising big_ord0. Qed.

Theorem stir_correct (g : {perm T}) :
  stir lam setT g = stir_of 1 +%R *%R (@GRing.inv _) nat_of lam #|T| #|porbits g|.
Proof. by rewrite /stir subsetT /stir_of power_exp rising_correct cyclesT cardsT. Qed.

Theorem injection_correct (A B : {set T}) h : moved h \subset A -> B \subset A ->
  \sum_(g : {perm T} | [forall b in B, g b == h b]) stir lam A g =
  injection_of 1 +%R *%R (@GRing.inv _) nat_of lam #|A| #|B| #|closed B h|.
Proof.
move=> hA BA; rewrite partial_injection // /injection_of power_exp; congr (_ / _).
by elim: #|B| => [|k IH] /=; rewrite ?big_ord0 // big_ord_recr /= IH.
Qed.

Theorem trade_correct (A : {set T}) t :
  fisher lam A t = trade_of 0 1 +%R *%R (@GRing.inv _) nat_of lam #|A| #|~: A| t.
Proof.
rewrite /fisher /trade_of total_sum /trade_weight power_exp; congr (_ / _).
by apply: eq_bigr => k _; rewrite power_exp.
Qed.
End Correct.
