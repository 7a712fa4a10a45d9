(* Where stirring sends records: two records share a cycle with chance 1/(1 + lam), so that an exchange is hidden as by
   randomised response; and the chance that some records go to given places, for one record, for two, and in general. *)
From mathcomp Require Import all_ssreflect all_fingroup all_algebra zify ring.
From Stirred Require Import derangements one_stratum exchanges stirring_law.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.
Import GRing.Theory Num.Theory Order.TTheory.
Local Open Scope ring_scope.

Section Pair.
Variables (R : realFieldType) (lam : R).
Hypothesis lam_gt0 : 0 < lam.
Variables (T : finType) (A : {set T}) (i j : T).
Hypotheses (iA : i \in A) (jA : j \in A) (ij : i != j).
Implicit Type g : {perm T}.
Local Notation t := (tperm i j).

Lemma together_exchange g : (j \in porbit (g * t)%g i) = (j \notin porbit g i).
Proof.
have := porbits_exchange (g * t)%g ij; rewrite -mulgA tperm2 mulg1.
have := porbits_exchange g ij; case: (j \in porbit g i); case: (j \in porbit (g * t)%g i) => // ->;
  by move/eqP; rewrite ltn_eqF // leqnSn.
Qed.

Let one_lam : 1 + lam != 0. Proof. by rewrite gt_eqF // addr_gt0 ?ltr01. Qed.

(* Two records share a cycle with chance 1/(1 + lam), whatever the size of the stratum. *)
Theorem share_cycle : \sum_(g | j \in porbit g i) stir lam A g = (1 + lam)^-1 /\
  \sum_(g | j \notin porbit g i) stir lam A g = lam / (1 + lam).
Proof.
set W := \sum_(g | _) _; set V := \sum_(g | _) _.
have VW : V = lam * W.
  rewrite /V (reindex_inj (mulIg t)) mulr_sumr.
  apply: eq_big => [g|g]; first by rewrite together_exchange negbK.
  by rewrite together_exchange negbK => ji; rewrite stir_split.
have : W + V = 1 by rewrite -(stir_sum1 lam_gt0 A) (bigID (fun g => j \in porbit g i)).
rewrite VW -{1}[W]mul1r -mulrDl => e; have -> : W = (1 + lam)^-1 by apply: (mulfI one_lam); rewrite e mulfV.
by [].
Qed.

(* Given the answer, which is true with chance lam/(1 + lam), the permutation has the same law for both files. *)
Theorem randomised_response : exists K : bool -> {perm T} -> R,
  [/\ forall b g, 0 <= K b g, forall b, \sum_g K b g = 1,
      forall g, stir lam A g = lam / (1 + lam) * K true g + (1 + lam)^-1 * K false g
    & forall g, stir lam A (g * t)%g = (1 + lam)^-1 * K true g + lam / (1 + lam) * K false g].
Proof.
have l0 : lam != 0 by rewrite gt_eqF. have p0 : 0 <= 1 + lam by rewrite addr_ge0 ?ler01 // ltW.
exists (fun b g => if b then (if j \notin porbit g i then (1 + lam) / lam * stir lam A g else 0)
  else (if j \in porbit g i then (1 + lam) * stir lam A g else 0)); have [e1 e2] := share_cycle; split.
- by case=> g; case: ifP => // _; rewrite mulr_ge0 ?stir_ge0 // divr_ge0 // ltW.
- by case; rewrite -big_mkcond -mulr_sumr ?e1 ?e2; [rewrite mulrA divfK // mulfV | rewrite mulfV].
- by move=> g; case: (j \in porbit g i) => /=; field; rewrite ?l0 one_lam.
- move=> g; case: (boolP (j \in porbit g i)) => ji /=.
    by rewrite (stir_split lam iA jA ij ji); field.
  by rewrite (stir_join lam iA jA ij ji); field; rewrite l0 one_lam.
Qed.
End Pair.

Section Contract.
Variable T : finType.
Implicit Types (g h u : {perm T}) (A B D : {set T}).

(* no two records of D share a cycle of h *)
Definition separated D h : Prop := forall x y, x \in D -> y \in D -> y \in porbit h x -> x = y.
(* the cycles of h that stay inside B *)
Definition closed B h : {set {set T}} := [set O in porbits h | O \subset B].

Lemma walk D h u x : separated D h -> moved u \subset D -> x \in D -> u x \in porbit (u * h)%g x.
Proof.
move=> sep uD xD; set c := u x.
have cD : c \in D.
  case: (eqVneq c x) => [->//|cx]; apply: (subsetP uD); rewrite inE.
  by apply: contra cx => /eqP/perm_inj ->.
have ex : exists k, (0 < k)%N && ((h ^+ k)%g c == c).
  by exists #|porbit h c|; rewrite lt0n card_porbit_neq0 permX iter_porbit eqxx.
case: (ex_minnP ex) => k /andP[k0 /eqP hk] kmin.
have step l : (l < k)%N -> ((u * h) ^+ l.+1)%g x = (h ^+ l.+1)%g c.
  elim: l => [|l IH] lk; first by rewrite !expg1 permM.
  rewrite expgSr permM IH ?(ltnW lk) // permM [in RHS]expgSr permM; congr (h _).
  have nc : (h ^+ l.+1)%g c != c.
    by apply/negP => /eqP e; have := kmin l.+1; rewrite e eqxx => /(_ isT); rewrite leqNgt lk.
  have nD : (h ^+ l.+1)%g c \notin D.
    by apply/negP => hD; move/eqP: nc; apply; apply/esym; apply: sep => //; apply: mem_porbit.
  by apply/eqP; apply: contraR nD => nu; apply: (subsetP uD); rewrite inE.
by case: k k0 hk step {kmin} => // k _ hk /(_ k (ltnSn k)); rewrite hk => <-; apply: mem_porbit.
Qed.

Lemma cancel_sums a b c d e f : (a + b + (c + d) = e + d + (f + c + b) -> a = f + e)%N.
Proof. by lia. Qed.

(* Paths are contracted: cycles of u h are those of u, and of h. *)
Lemma contract D h u : separated D h -> moved u \subset D ->
  (#|porbits (u * h)%g| + #|T| = #|porbits u| + #|porbits h|)%N.
Proof.
move=> sep; have [k] := ubnP #|moved u|; elim: k u => // k IH u /ltnSE uk uD.
case: (set_0Vmem (moved u)) => [u0|[x xm]].
  have p1 : #|porbits (1%g : {perm T})| = #|T|.
    have := porbits_cycles (_ : moved (1%g : {perm T}) \subset set0); rewrite /cycles imset0 cards0 setC0 cardsT => -> //.
    by apply/subsetP => i; rewrite inE perm1 eqxx.
  have -> : u = 1%g by apply/permP => i; rewrite perm1; apply/eqP; have := in_set0 i; rewrite -u0 inE => /negbFE.
  by rewrite mul1g p1 addnC.
set y := u x; have xy : x != y by rewrite eq_sym; move: xm; rewrite inE.
have ym : y \in moved u by rewrite inE (inj_eq perm_inj) eq_sym.
pose u' := (tperm x y * u)%g.
have sub : moved u' \subset moved u.
  apply/subsetP => l; apply: contraLR => lm; rewrite inE negbK permM tpermD.
  - by move: lm; rewrite inE negbK.
  - by apply: contraNneq lm => <-.
  - by apply: contraNneq lm => <-.
have lt : (#|moved u'| < #|moved u|)%N.
  apply: proper_card; rewrite properE sub; apply/subsetPn; exists y => //.
  by rewrite inE permM tpermR negbK.
have yo : y \in porbit u x by have := mem_porbit u 1 x; rewrite expg1.
have E1 := porbits_tperm xy yo.
have E2 := porbits_tperm xy (walk sep uD (subsetP uD _ xm)).
have := IH u' (leq_trans lt uk) (subset_trans sub uD); rewrite -mulgA E2 E1 !addSn.
by case.
Qed.

Lemma porbit_inside A h i k : moved h \subset A -> i \in A -> k \in porbit h i -> k \in A.
Proof.
move=> hA iA ki; case: (eqVneq k i) => [->//|nk]; apply: (subsetP hA).
by apply: (@moved_of_porbit _ _ _ i); rewrite 1?porbit_sym // eq_sym.
Qed.

Lemma cycles_separated A B h : moved h \subset A -> B \subset A -> separated (A :\: B) h ->
  cycles A h = (#|closed B h| + #|A :\: B|)%N.
Proof.
move=> hA BA sep.
have -> : cycles A h = #|closed B h :|: [set porbit h d | d in A :\: B]|.
  congr #|pred_of_set _|; apply/setP => O; rewrite !inE; apply/imsetP/orP => [[i iA ->]|].
    case: (boolP (porbit h i \subset B)) => [sub|/subsetPn[d di dB]]; first by left; rewrite imset_f.
    right; apply/imsetP; exists d; last by apply/eqP; rewrite eq_sym eq_porbit_mem.
    by rewrite inE dB (porbit_inside hA iA).
  case=> [/andP[/imsetP[i _ ->] sub]|/imsetP[d]]; last by rewrite inE => /andP[_ dA] ->; exists d.
  by exists i => //; apply: (subsetP BA); apply: (subsetP sub); apply: porbit_id.
rewrite cardsU disjoint_setI0 ?cards0 ?subn0; last first.
  rewrite -setI_eq0; apply/eqP/setP => O; rewrite !inE; apply/negP => /andP[/andP[_ sub] /imsetP[d]].
  by rewrite inE => /andP[/negP dB _] e; apply: dB; apply: (subsetP sub); rewrite e porbit_id.
congr addn; apply: card_in_imset => d d' dD dD' e; apply: sep => //.
by rewrite e porbit_id.
Qed.

Lemma closed_agree B h h' : (forall b, b \in B -> h' b = h b) -> closed B h \subset closed B h'.
Proof.
move=> ag; apply/subsetP => O; rewrite !inE => /andP[/imsetP[i _ ->] sub]; rewrite sub andbT.
have it k : ((h' ^+ k)%g i) = ((h ^+ k)%g i).
  elim: k => [|k IH]; first by rewrite !expg0.
  by rewrite !expgSr !permM IH ag // (subsetP sub) // mem_porbit.
have -> : porbit h i = porbit h' i.
  by apply/setP => k; apply/porbitP/porbitP => -[l ->]; exists l; rewrite it.
exact: imset_f.
Qed.

(* One may close every path on itself. *)
Lemma close_paths A B h : moved h \subset A -> B \subset A -> exists h',
  [/\ moved h' \subset A, forall b, b \in B -> h' b = h b & separated (A :\: B) h'].
Proof.
move=> hA BA; pose ok (w : {perm T}) := moved w \subset A :\: B.
have ok1 : ok 1%g by apply/subsetP => i; rewrite inE perm1 eqxx.
case: (arg_maxnP (fun w : {perm T} => #|porbits (w * h)%g|) ok1) => w okw max.
have wA : moved w \subset A by apply: subset_trans okw (subsetDl _ _).
exists (w * h)%g; split.
- apply/subsetP => k; rewrite inE permM; apply: contraR => kA.
  have wk : w k = k by apply/eqP; apply: contraR kA => nw; apply: (subsetP wA); rewrite inE.
  by rewrite wk; apply: contraR kA => nh; apply: (subsetP hA); rewrite inE.
- move=> b bB; rewrite permM; congr (h _); apply/eqP.
  apply/negPn/negP => nw; have : b \in moved w by rewrite inE.
  by move/(subsetP okw); rewrite inE bB.
- move=> x y xD yD yx; apply/eqP/negPn/negP => xy.
  have okt : ok (tperm x y * w)%g.
    apply/subsetP => k; rewrite inE permM; apply: contraR => kD.
    rewrite tpermD; [|by apply: contraNneq kD => <-|by apply: contraNneq kD => <-].
    by apply: contraR kD => nw; apply: (subsetP okw); rewrite inE.
  by have := max _ okt; rewrite -mulgA porbits_tperm // /geq /= ltnn.
Qed.
End Contract.

Section Places.
Variables (R : realFieldType) (lam : R).
Hypothesis lam_gt0 : 0 < lam.
Variable T : finType.
Implicit Types (g h u : {perm T}) (A B : {set T}) (x y z w : T).

Lemma rising_split n k : (k <= n)%N ->
  rising lam n = rising lam (n - k) * \prod_(l < k) (lam + (n - l.+1)%:R).
Proof.
elim: k => [|k IH] kn; first by rewrite big_ord0 mulr1 subn0.
rewrite IH ?(ltnW kn) // big_ord_recr /= mulrA [RHS]mulrAC; congr (_ * _).
by rewrite -risingS subnSK.
Qed.

(* The chance that the records of B go where h sends them. *)
Theorem partial_injection A B h : moved h \subset A -> B \subset A ->
  \sum_(g : {perm T} | [forall b in B, g b == h b]) stir lam A g =
  lam ^+ #|closed B h| / \prod_(k < #|B|) (lam + (#|A| - k.+1)%:R).
Proof.
move=> hA0 BA; have [h' [hA ag sep]] := close_paths hA0 BA.
have -> : closed B h = closed B h'.
  by apply/eqP; rewrite eqEsubset !closed_agree // => b bB; rewrite ag.
rewrite (eq_bigl (fun g : {perm T} => [forall b in B, g b == h' b])); last first.
  by move=> g; apply: eq_forallb_in => b bB; rewrite ag.
rewrite (reindex_inj (mulIg h')) /= (eq_bigl (fun u : {perm T} => [forall b in B, u b == b])); last first.
  by move=> u; apply: eq_forallb_in => b _; rewrite permM (inj_eq perm_inj).
have r0 n : rising lam n != 0 by rewrite gt_eqF // rising_gt0.
have dA : #|A :\: B| = (#|A| - #|B|)%N by rewrite cardsDS.
have P0 : \prod_(k < #|B|) (lam + (#|A| - k.+1)%:R) != 0.
  by rewrite gt_eqF // prodr_gt0 // => k _; rewrite ltr_paddr ?ler0n.
transitivity (\sum_(u | moved u \subset A :\: B) lam ^+ #|closed B h'| * lam ^+ cycles (A :\: B) u / rising lam #|A|).
  rewrite big_mkcond [RHS]big_mkcond; apply: eq_bigr => u _.
  have E : (moved u \subset A :\: B) = [forall b in B, u b == b] && (moved u \subset A).
    apply/idP/andP => [sub|[/forall_inP fix_ sub]]; last first.
      apply/subsetP => k km; rewrite inE (subsetP sub) // andbT; apply/negP => /fix_.
      by move: km; rewrite inE => /negP.
    split; last exact: subset_trans sub (subsetDl _ _).
    apply/forall_inP => b bB; apply/negPn/negP => nb; have : b \in moved u by rewrite inE.
    by move/(subsetP sub); rewrite inE bB.
  rewrite E; case: (boolP [forall b in B, u b == b]) => //= fb; rewrite fb /= in E; rewrite /stir.
  have -> : (moved (u * h')%g \subset A) = (moved u \subset A) by rewrite -[h']invgK moved_on // movedV.
  case: ifP => uA //; rewrite uA in E.
  have huA : moved (u * h')%g \subset A by rewrite -[h']invgK moved_on // movedV.
  rewrite -exprD; congr (_ ^+ _ / _).
  have := contract sep E; rewrite (porbits_cycles huA) (porbits_cycles E) (porbits_cycles hA) (cycles_separated hA BA sep).
  by rewrite -(cardsC (A :\: B)); apply: cancel_sums.
rewrite -mulr_suml -mulr_sumr sum_weights // dA (rising_split (subset_leq_card BA)).
by rewrite -mulrA invfM mulrA -mulrA [X in _ * X]mulrA mulfV ?mul1r.
Qed.

(* ---- one record and two ---- *)

Lemma closedE B h : closed B h = [set porbit h i | i in [set i in B | porbit h i \subset B]].
Proof.
apply/setP => O; rewrite !inE; apply/andP/imsetP => [[/imsetP[i _ ->] sub]|[i]].
  by exists i; rewrite // inE sub andbT (subsetP sub) // porbit_id.
by rewrite inE => /andP[_ sub] ->; split; rewrite // imset_f.
Qed.

Lemma porbit_sub B h i : i \in B -> (forall k, k \in B -> h k \in B) -> porbit h i \subset B.
Proof.
move=> iB hB; apply/subsetP => _ /porbitP[n ->].
by elim: n => [|n IH]; rewrite ?expg0 ?perm1 // expgSr permM hB.
Qed.

Lemma mem_step h i : h i \in porbit h i. Proof. by have := mem_porbit h 1 i; rewrite expg1. Qed.
Lemma mem_step2 h i : h (h i) \in porbit h i.
Proof. by have := mem_porbit h 2 i; rewrite expgS permM expg1. Qed.

Lemma leaves B h i : h i \notin B -> (porbit h i \subset B) = false.
Proof. by move=> nB; apply/negP => /subsetP/(_ _ (mem_step h i)); rewrite (negbTE nB). Qed.
Lemma leaves2 B h i : h (h i) \notin B -> (porbit h i \subset B) = false.
Proof. by move=> nB; apply/negP => /subsetP/(_ _ (mem_step2 h i)); rewrite (negbTE nB). Qed.

Lemma one_told A x h : moved h \subset A -> x \in A ->
  \sum_(g : {perm T} | g x == h x) stir lam A g = lam ^+ (h x == x) / (lam + #|A|.-1%:R).
Proof.
move=> hA xA; have BA : [set x] \subset A by rewrite sub1set.
rewrite (eq_bigl (fun g : {perm T} => [forall b in [set x], g b == h b])); last first.
  move=> g; apply/idP/forall_inP => [e b|/(_ x (set11 x))//]; by rewrite inE => /eqP ->.
rewrite partial_injection // cards1 big_ord1 subn1; congr (_ ^+ _ / _).
rewrite closedE; case: (eqVneq (h x) x) => hx.
  rewrite (_ : [set i in _ | _] = [set x]) ?imset_set1 ?cards1 //.
  by apply/setP => i; rewrite !inE; case: eqP => // ->; rewrite porbit_fixed // subxx.
rewrite (_ : [set i in _ | _] = set0) ?imset0 ?cards0 //.
by apply/setP => i; rewrite !inE; case: eqP => // ->; rewrite leaves // inE.
Qed.

Let id_A A : moved (1%g : {perm T}) \subset A. Proof. by apply/subsetP => i; rewrite inE perm1 eqxx. Qed.

(* A record stays with chance lam / (lam + n - 1). *)
Theorem stay A x : x \in A -> \sum_(g : {perm T} | g x == x) stir lam A g = lam / (lam + #|A|.-1%:R).
Proof. by move=> xA; have := one_told (id_A A) xA; rewrite perm1 eqxx expr1. Qed.

(* It goes to any given other place with chance 1 / (lam + n - 1). *)
Theorem go A x y : x \in A -> y \in A -> x != y ->
  \sum_(g : {perm T} | g x == y) stir lam A g = (lam + #|A|.-1%:R)^-1.
Proof.
move=> xA yA xy; have := one_told (moved_tperm xA yA) xA.
by rewrite tpermL eq_sym (negbTE xy) expr0 mul1r.
Qed.

Lemma two_told A x y h : moved h \subset A -> x \in A -> y \in A -> x != y ->
  \sum_(g : {perm T} | (g x == h x) && (g y == h y)) stir lam A g =
  lam ^+ #|closed [set x; y] h| / ((lam + #|A|.-1%:R) * (lam + #|A|.-2%:R)).
Proof.
move=> hA xA yA xy; have BA : [set x; y] \subset A by rewrite subUset !sub1set xA.
rewrite (eq_bigl (fun g : {perm T} => [forall b in [set x; y], g b == h b])); last first.
  move=> g; apply/andP/forall_inP => [[e1 e2] b|fb]; first by rewrite !inE => /orP[]/eqP ->.
  by rewrite !fb // !inE eqxx ?orbT.
by rewrite partial_injection // cards2 xy big_ord_recl big_ord1 /= subn1 subn2.
Qed.

Lemma closed_pair x y h (bx by_ : bool) : (porbit h x \subset [set x; y]) = bx -> (porbit h y \subset [set x; y]) = by_ ->
  closed [set x; y] h = (if bx then [set porbit h x] else set0) :|: (if by_ then [set porbit h y] else set0).
Proof.
move=> ex ey; rewrite closedE; apply/setP => O; rewrite !inE; apply/imsetP/orP => [[i]|].
  by rewrite !inE => /andP[/orP[]/eqP -> sub] ->; [left | right]; move: sub; rewrite ?ex ?ey => ->; rewrite inE.
by case; [case: bx ex => ex | case: by_ ey => ey]; rewrite inE // => /eqP ->;
  [exists x | exists y]; rewrite // !inE eqxx ?orbT ?ex ?ey.
Qed.

Section Two.
Variables (A : {set T}) (x y z w : T).
Hypotheses (xA : x \in A) (yA : y \in A) (zA : z \in A) (wA : w \in A) (diff : uniq [:: x; y; z; w]).
Local Notation both := ((lam + #|A|.-1%:R) * (lam + #|A|.-2%:R)).
Let ne : [/\ x != y, x != z, x != w, y != z & [/\ y != w & z != w]].
Proof. by move: diff; rewrite /= !inE !negb_or -!andbA => /and5P[? ? ? ? /and3P[]]. Qed.
Let ne' (a b : T) : a != b -> b != a. Proof. by rewrite eq_sym. Qed.

(* Both stay. *)
Theorem pair_stay : \sum_(g : {perm T} | (g x == x) && (g y == y)) stir lam A g = lam ^+ 2 / both.
Proof.
case: ne => xy _ _ _ _; have := two_told (id_A A) xA yA xy; rewrite !perm1 => ->.
have p1 k : porbit (1%g : {perm T}) k = [set k] by apply: porbit_fixed; rewrite perm1.
by rewrite (@closed_pair _ _ _ true true) ?p1 ?sub1set ?inE ?eqxx ?orbT // cards2 (inj_eq set1_inj) xy.
Qed.

(* They trade places. *)
Theorem pair_trade : \sum_(g : {perm T} | (g x == y) && (g y == x)) stir lam A g = lam / both.
Proof.
case: ne => xy _ _ _ _; have := two_told (moved_tperm xA yA) xA yA xy; rewrite tpermL tpermR => ->.
have st k : k \in [set x; y] -> tperm x y k \in [set x; y].
  by rewrite !inE => /orP[]/eqP ->; rewrite ?tpermL ?tpermR eqxx ?orbT.
rewrite (@closed_pair _ _ _ true true) ?porbit_sub ?inE ?eqxx ?orbT //.
rewrite (_ : porbit (tperm x y) y = porbit (tperm x y) x) ?setUid ?cards1 //.
by apply/eqP; rewrite eq_porbit_mem; have := mem_step (tperm x y) x; rewrite tpermL.
Qed.

(* One stays, the other goes. *)
Theorem pair_one : \sum_(g : {perm T} | (g x == x) && (g y == z)) stir lam A g = lam / both.
Proof.
case: ne => xy xz _ yz _; have hx : tperm y z x = x by rewrite tpermD // eq_sym.
have := two_told (moved_tperm yA zA) xA yA xy; rewrite tpermL hx => ->.
have ex : (porbit (tperm y z) x \subset [set x; y]) = true by rewrite porbit_fixed // sub1set !inE eqxx.
have ey : (porbit (tperm y z) y \subset [set x; y]) = false.
  by rewrite leaves // tpermL !inE negb_or eq_sym xz eq_sym yz.
by rewrite (closed_pair ex ey) setU0 cards1.
Qed.

(* One goes to the place of the other, which goes on. *)
Theorem pair_chain : \sum_(g : {perm T} | (g x == y) && (g y == z)) stir lam A g = both^-1.
Proof.
case: ne => xy xz _ yz _; pose h := (tperm y z * tperm x y)%g.
have hx : h x = y by rewrite permM (_ : tperm y z x = x) ?tpermL // tpermD // eq_sym.
have hy : h y = z by rewrite permM tpermL tpermD.
have hA : moved h \subset A by rewrite moved_exchange // moved_tperm.
have := two_told hA xA yA xy; rewrite hx hy => ->.
have zB : z \notin [set x; y] by rewrite !inE negb_or eq_sym xz eq_sym yz.
have ex : (porbit h x \subset [set x; y]) = false by rewrite leaves2 // hx hy.
have ey : (porbit h y \subset [set x; y]) = false by rewrite leaves // hy.
by rewrite (closed_pair ex ey) setU0 cards0 expr0 mul1r.
Qed.

(* They go to two other places. *)
Theorem pair_apart : \sum_(g : {perm T} | (g x == z) && (g y == w)) stir lam A g = both^-1.
Proof.
case: ne => xy xz xw yz [yw zw]; pose h := (tperm x z * tperm y w)%g.
have hx : h x = z by rewrite permM tpermL tpermD // eq_sym.
have hy : h y = w by rewrite permM (_ : tperm x z y = y) ?tpermL // tpermD // eq_sym.
have hA : moved h \subset A by rewrite moved_exchange // moved_tperm.
have := two_told hA xA yA xy; rewrite hx hy => ->.
have zB : z \notin [set x; y] by rewrite !inE negb_or eq_sym xz eq_sym yz.
have wB : w \notin [set x; y] by rewrite !inE negb_or eq_sym xw eq_sym yw.
have ex : (porbit h x \subset [set x; y]) = false by rewrite leaves // hx.
have ey : (porbit h y \subset [set x; y]) = false by rewrite leaves // hy.
by rewrite (closed_pair ex ey) setU0 cards0 expr0 mul1r.
Qed.
End Two.

(* The mean number of records that stay is n lam / (lam + n - 1). *)
Theorem mean_stay A : \sum_g stir lam A g * #|[set x in A | g x == x]|%:R = #|A|%:R * (lam / (lam + #|A|.-1%:R)).
Proof.
rewrite (eq_bigr (fun g : {perm T} => \sum_(x in A) if g x == x then stir lam A g else 0)); last first.
  move=> g _; rewrite -big_mkcondr -sum1_card natr_sum mulr_sumr; apply: eq_big => [x|x _]; first by rewrite inE.
  by rewrite mulr1.
rewrite exchange_big /= (eq_bigr (fun=> lam / (lam + #|A|.-1%:R))); last by move=> x xA; rewrite -big_mkcond stay.
by rewrite sumr_const mulr_natl.
Qed.
End Places.
