(* Run the programs of compute.v over the rational numbers; `make proof` compares the results with Stirred's.

   The programs are proved correct over every ordered field (compute.v).  Here the operations are those of Q from Coq's
   standard library, each result reduced to lowest terms.  A fraction is printed as numerator and denominator. *)
From Coq Require Import ZArith QArith MSetPositive FMapPositive.
From mathcomp Require Import all_ssreflect.
From Stirred Require Import derangements phi compute stirring_compute.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Local Open Scope nat_scope.
Set Printing Width 1000000. Set Printing Depth 1000000.

Definition plus (x y : Q) := Qred (Qplus x y).
Definition times (x y : Q) := Qred (Qmult x y).
Definition minus (x y : Q) := Qred (Qminus x y).
Definition inverse (x : Q) := Qred (Qinv x).
Definition whole (k : nat) : Q := inject_Z (Z.of_nat k).
Definition zero : Q := whole 0.
Definition one : Q := whole 1.
Definition larger (x y : Q) : Q := if Qle_bool x y then y else x.

Definition odds := odds_of one times minus inverse.
Definition law := law_of one times minus inverse whole.
Definition chance := chance_of zero one plus times minus inverse whole.
Definition phi := phi_of zero one plus times minus inverse whole.
Definition pow := power one times.

Definition rates : seq Q := [:: (1 # 20)%Q; (1 # 4)%Q; (1 # 2)%Q; (2 # 3)%Q; (19 # 20)%Q].
Definition few : seq Q := [:: (1 # 20)%Q; (1 # 2)%Q; (19 # 20)%Q].

(* printing: all numbers in binary *)
Definition num (k : nat) : N := N.of_nat k.
Definition frac (x : Q) : seq N := [:: Z.abs_N (Qnum x); Npos (Qden x)].
Definition flat (xs : seq Q) : seq N := flatten [seq frac x | x <- xs].

(* d(0), d(1), ... *)
Definition derangement_numbers : seq N := [seq num (der k) | k <- iota 0 10].

(* for each rate and n = 2 ... 8: the chance of one permutation that moves k = 0, 2, ..., n of n records *)
Definition laws : seq (seq N) :=
  [seq flat [seq law p n k | k <- 0 :: iota 2 n.-1] | p <- rates, n <- iota 2 7].

(* exp of the paper's budget, for each rate and b = 2 ... 9 *)
Definition paper_budget (p : Q) (b : nat) : Q := larger (odds p) (times (whole b.+1) (inverse (odds p))).
Definition paper_budgets : seq (seq N) := [seq flat [seq paper_budget p b | b <- iota 2 8] | p <- rates].

(* the sixth power of exp of Theorem B's budget: b = 3 is that of theoremB_exact3, the others of theoremB_exact *)
Definition by_size_sixth (p : Q) (b : nat) : Q :=
  let o := odds p in
  let two := whole 2 in
  if b == 3%N then
    larger (pow o 6) (larger (pow (times two (inverse (pow o 3))) 2) (pow (times two (inverse o)) 3))
  else larger (pow o 6) (pow (times (times (whole (der b)) (inverse (whole (der (b - 2))))) (inverse (pow o 2))) 3).
Definition by_size_budgets : seq (seq N) := [seq flat [seq by_size_sixth p b | b <- iota 2 7] | p <- rates].

(* R_t = Phi_(t+1) / Phi_t for two types, n1 and n2 from 1 to 4 *)
Definition reductions : seq (seq (seq N)) :=
  [seq [seq flat [seq times (phi p n1 n2 t.+1) (inverse (phi p n1 n2 t)) | t <- iota 0 (minn n1 n2)]
    | n1 <- iota 1 4, n2 <- iota 1 4] | p <- rates].

(* Universes: margins n = m_1 + m_2 + ..., and the values 0, 0, 1, ... that they stand for. *)
Fixpoint parts (fuel n most : nat) : seq (seq nat) :=
  if fuel is f.+1 then
    if n is 0 then [:: [::]]
    else flatten [seq [seq k :: r | r <- parts f (n - k) k] | k <- rev (iota 1 (minn n most))]
  else [::].
Definition margins n := parts n.+1 n n.
Definition values (m : seq nat) : seq nat := flatten [seq nseq (nth 0%N m i) i | i <- iota 0 (size m)].

Definition tables (h s : seq nat) : seq (seq (nat * nat)) := undup [seq zk.1 | zk <- outcomes h s].
(* for every table, how many permutations that move 0, 1, ..., n records lead to each table *)
Definition counts (xs : seq (seq (nat * nat))) : seq (seq (seq nat)) :=
  [seq let o := outcomes (unzip1 x) (unzip2 x) in
       [seq ways_by_sorting o z (size x) | z <- xs] | x <- xs].

(* the records of a table as the digits of a number *)
Definition digits (z : seq (nat * nat)) : N :=
  foldl (fun v c => (v * 100 + num (c.1.+1 * 10 + c.2.+1))%num) 0%num z.
(* The same counts, faster, through a map of the standard library; fast_counts checks the two on all small universes. *)
Definition quick_counts (xs : seq (seq (nat * nat))) : seq (seq (seq nat)) :=
  let keys := [seq N.succ_pos (digits z) | z <- xs] in
  [seq let n := size x in
       let none := nseq n.+1 0 in
       let count_of m key := if PositiveMap.find key m is Some v then v else none in
       let m := foldl (fun m zk =>
         let key := N.succ_pos (digits zk.1) in
         let v := count_of m key in
         PositiveMap.add key (set_nth 0 v zk.2 (nth 0 v zk.2).+1) m) (PositiveMap.empty (seq nat))
         (outcomes (unzip1 x) (unzip2 x)) in
       [seq count_of m key | key <- keys] | x <- xs].
Lemma fast_counts : all (fun n => all (fun hm => all (fun sm =>
    let xs := tables (values hm) (values sm) in quick_counts xs == counts xs) (margins n)) (margins n)) (iota 2 3).
Proof. by vm_compute. Qed.

Definition apart (x y : seq (nat * nat)) : nat :=
  sumn [seq (count_mem c x - count_mem c y)%N | c <- undup x].

(* Different counts are numbered: the list of all, and the number of each by its code. *)
Definition code (v : seq nat) : positive := N.succ_pos (foldl (fun a k => (a * 128 + num k)%num) 0%num v).
Definition numbered (vs : seq (seq nat)) : seq (seq nat) * PositiveMap.t N :=
  let done := foldl (fun acc v =>
    let key := code v in
    if PositiveMap.mem key acc.2 then acc
    else ((v :: acc.1.1, (acc.1.2 + 1)%num), PositiveMap.add key acc.1.2 acc.2))
    (([::], 0%num), PositiveMap.empty N) vs in
  (rev done.1.1, done.2).

(* All triples (distance of two tables, counts to an output from the one, counts from the other), each once.  A triple
   is one number, and the numbers are kept in a set of the standard library. *)
Fixpoint pairs (many : N) (rows : seq (seq (nat * nat) * (seq N * seq N))) (acc : PositiveSet.t) : PositiveSet.t :=
  if rows is xr :: rest then
    pairs many rest (foldl (fun a yr =>
      let d := (num (apart xr.1 yr.1) * many * many)%num in
      foldl (fun a1 ij =>
        let key := N.succ_pos (d + (ij.1 + ij.2))%num in
        if PositiveSet.mem key a1 then a1 else PositiveSet.add key a1) a (zip xr.2.1 yr.2.2)) acc rest)
  else acc.
Definition triples (xs : seq (seq (nat * nat))) (cs : seq (seq (seq nat))) (many : N) (number : PositiveMap.t N) :
    seq (N * (positive * positive)) :=
  let number_of v := if PositiveMap.find (code v) number is Some i then i else 0%num in
  let numbers := [seq [seq number_of v | v <- row] | row <- cs] in
  let rows := zip xs [seq ([seq (i * many)%num | i <- row], row) | row <- numbers] in
  [seq let k := Pos.pred_N t in
       let dj := N.div_eucl k many in
       let di := N.div_eucl dj.1 many in
       (di.1, (N.succ_pos di.2, N.succ_pos dj.2)) | t <- PositiveSet.elements (pairs many rows PositiveSet.empty)].

(* the largest quotient of two chances of one output, for pairs at each distance 2 ... n *)
Definition bring (qs : seq Q) : seq Z := (* to one denominator; quotients stay the same *)
  let all_of := foldl (fun d q => Z.lcm d (Zpos (Qden q))) 1%Z qs in
  [seq (Qnum q * (all_of / Zpos (Qden q)))%Z | q <- qs].
(* the chances of one permutation that moves 0, 1, ..., n records, times a common factor; then that of an output *)
Definition weights (p : Q) (n : nat) : seq Z := bring [seq law p n k | k <- iota 0 n.+1].
Definition weighed (w : seq Z) (v : seq nat) : Z :=
  foldl (fun a kw => (a + Z.of_nat kw.1 * kw.2)%Z) 0%Z (zip v w).
Definition by_number (zs : seq Z) : PositiveMap.t Z :=
  (foldl (fun acc z => (PositiveMap.add acc.2 z acc.1, Pos.succ acc.2)) (PositiveMap.empty Z, 1%positive) zs).1.
Definition worst (found : seq (positive * positive)) (chances : PositiveMap.t Z) : Q :=
  let chance_at i := if PositiveMap.find i chances is Some z then z else 1%Z in
  let best := foldl (fun best t =>
    let a := chance_at t.1 in
    let b := chance_at t.2 in
    let high := Z.max a b in
    let low := Z.min a b in
    if (best.1 * low <? high * best.2)%Z then (high, low) else best) (1%Z, 1%Z) found in
  Qred (best.1 # Z.to_pos best.2).

Definition universe (n : nat) (hm sm : seq nat) : seq (seq N) :=
  let xs := tables (values hm) (values sm) in
  let cs := quick_counts xs in
  let kinds := numbered (flatten cs) in
  let found := triples xs cs (num (size kinds.1)) kinds.2 in
  let at_distance := [seq let d1 := num d in [seq t.2 | t <- found & N.eqb t.1 d1] | d <- iota 2 n.-1] in
  [:: [seq num k | k <- hm]; [seq num k | k <- sm]; [:: num (size xs)]] ++
    [seq let w := weights p n in
         let chances := by_number [seq weighed w v | v <- kinds.1] in
         flat [seq worst far chances | far <- at_distance] | p <- few].
Definition universes : seq (seq (seq N)) :=
  flatten [seq [seq universe n hm sm | hm <- margins n, sm <- margins n] | n <- iota 2 4].

(* all chances of all outputs for all universes of up to four records, at rate 1/4: three numbers for each table and
   output, first the output *)
Definition chances (n : nat) (hm sm : seq nat) : seq (seq N) :=
  let xs := tables (values hm) (values sm) in
  [:: [seq num k | k <- hm]; [seq num k | k <- sm]] ++
    [seq digits xc.1 :: flatten [seq digits zv.1 :: frac (chance (1 # 4)%Q n zv.2) | zv <- zip xs xc.2]
      | xc <- zip xs (counts xs)].
Definition all_chances : seq (seq (seq N)) :=
  flatten [seq [seq chances n hm sm | hm <- margins n, sm <- margins n] | n <- iota 2 3].

(* b of files with strata: (match, hold, swap) *)
Definition largest_stratum (x : seq (nat * nat * nat)) : nat :=
  foldr maxn 0%N [seq
    let y := [seq c <- x | c.1.1 == m] in
    if (1 < size (undup [seq c.1.2 | c <- y])) && (1 < size (undup [seq c.2 | c <- y])) then size y else 0%N
    | m <- undup [seq c.1.1 | c <- x]].
Definition stratified : seq (seq (nat * nat * nat)) :=
  [:: [::]; [:: (0, 0, 0)]; [:: (0, 0, 0); (0, 1, 1)]; [:: (0, 0, 0); (0, 1, 0); (0, 2, 0); (1, 0, 0); (1, 1, 1)];
      [:: (0, 0, 0); (0, 0, 1); (0, 0, 2); (1, 0, 0); (1, 1, 1); (2, 0, 1); (2, 1, 0); (2, 0, 1)];
      [:: (0, 0, 0); (0, 0, 0); (0, 0, 0); (0, 0, 0)]]%N.
Definition strata_sizes : seq (seq N) :=
  [seq num (largest_stratum x) :: flatten [seq [:: num c.1.1; num c.1.2; num c.2] | c <- x] | x <- stratified].

(* Stirring, for each lam: the chance of one permutation of n = 2 ... 6 records with c = 1, ..., n cycles *)
Definition lams : seq Q := [:: (1 # 3)%Q; (1 # 1)%Q; (7 # 1)%Q; (40 # 1)%Q].
Definition stirring_laws : seq (seq N) :=
  [seq flat [seq stir_of one plus times inverse whole l n c | c <- iota 1 n] | l <- lams, n <- iota 2 5].
(* that one record goes to a given place, and two, which closes f = 0, 1, ... cycles *)
Definition stirring_injections : seq (seq N) :=
  [seq flat (flatten [seq [seq injection_of one plus times inverse whole l n m f | f <- iota 0 m.+1] | m <- iota 1 2])
    | l <- lams, n <- iota 2 5].
(* that t = 0, 1, ... records of each of two types change hands, psi = 1 / lam, n1 and n2 from 1 to 4 *)
Definition stirring_trades : seq (seq (seq N)) :=
  [seq [seq flat [seq trade_of zero one plus times inverse whole (inverse l) n1 n2 t | t <- iota 0 (minn n1 n2).+1]
    | n1 <- iota 1 4, n2 <- iota 1 4] | l <- lams].

Open Scope N_scope.
Redirect "derangement_numbers" Eval vm_compute in derangement_numbers.
Redirect "laws" Eval vm_compute in laws.
Redirect "paper_budgets" Eval vm_compute in paper_budgets.
Redirect "by_size_budgets" Eval vm_compute in by_size_budgets.
Redirect "reductions" Eval vm_compute in reductions.
Redirect "all_chances" Eval vm_compute in all_chances.
Redirect "universes" Eval vm_compute in universes.
Redirect "strata_sizes" Eval vm_compute in strata_sizes.
Redirect "stirring_laws" Eval vm_compute in stirring_laws.
Redirect "stirring_injections" Eval vm_compute in stirring_injections.
Redirect "stirring_trades" Eval vm_compute in stirring_trades.
