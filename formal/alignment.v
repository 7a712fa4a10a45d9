(* The paper's Lemma 5: two files of one universe, put in an order in which they differ by a permutation.

   The files have equal hold margins and equal swap margins.  There is an order b of the second file in which it has
   the hold values of the first, and a permutation r of the swap values that turns the first into the second and moves
   exactly as many records as the distance of the files. *)
From mathcomp Require Import all_ssreflect all_fingroup zify.
From Stirred Require Import derangements.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Lemma fibre_perm n (Y : eqType) (f f' : 'I_n -> Y) :
  (forall y, #|[set i | f i == y]| = #|[set i | f' i == y]|) ->
  exists b : 'S_n, forall i, f i = f' (b i).
Proof.
move=> F.
have C (u : 'I_n -> Y) y : count_mem y [tuple u i | i < n] = #|[set i | u i == y]|.
  rewrite /= count_map -sum1_count big_enum_cond /= -sum1dep_card.
  by apply: eq_bigl => i.
have : perm_eq [tuple f i | i < n] [tuple f' i | i < n].
  by apply/allP => y _; rewrite /= !C F.
case/tuple_permP => b E; exists b => i.
have : tnth [tuple f i | i < n] i = tnth [tuple tnth [tuple f' i | i < n] (b i) | i < n] i.
  by congr tnth; apply: val_inj.
by rewrite !tnth_mktuple.
Qed.

Lemma subset_of_size (T : finType) (A : {set T}) k :
  k <= #|A| -> exists2 B : {set T}, B \subset A & #|B| = k.
Proof.
rewrite -bin_gt0 -cards_draws card_gt0 => /set0Pn[B]; rewrite inE => /andP[BA /eqP Bk].
by exists B.
Qed.

Section Lemma5.
Variables (n : nat) (H S : finType).
Variables (h h' : 'I_n -> H) (s s' : 'I_n -> S).
Local Notation T := 'I_n.
Let N (c : H * S) := #|[set i | (h i, s i) == c]|.
Let N' (c : H * S) := #|[set i | (h' i, s' i) == c]|.

Hypothesis hold_margin : forall a, #|[set i | h i == a]| = #|[set i | h' i == a]|.
Hypothesis swap_margin : forall b, #|[set i | s i == b]| = #|[set i | s' i == b]|.

(* As many records of each type as both files have. *)
Lemma common_part (u v : T -> H * S) :
  exists K : {set T}, forall c,
    #|[set i in K | u i == c]| = minn #|[set i | u i == c]| #|[set i | v i == c]|.
Proof.
have /fin_all_exists[B HB] c : exists B : {set T}, B \subset [set i | u i == c] /\
    #|B| = minn #|[set i | u i == c]| #|[set i | v i == c]|.
  by have [B BA BE] := subset_of_size (geq_minl #|[set i | u i == c]| #|[set i | v i == c]|); exists B.
exists [set i | i \in B (u i)] => c; case: (HB c) => Bc <-; apply: eq_card => i; rewrite !inE.
case: (u i =P c) => [->|uc]; rewrite ?andbT ?andbF //.
by apply/esym/negP => /(subsetP Bc); rewrite inE => /eqP.
Qed.

(* Half the l1 distance of the tables, when both have n records (see dist_l1). *)
Definition dist := \sum_c (N c - N' c).

Lemma sum_fibres (Y : finType) (A : {set T}) (f : T -> Y) : \sum_y #|[set i in A | f i == y]| = #|A|.
Proof.
rewrite -sum1_card (partition_big f xpredT) //=; apply: eq_bigr => y _.
by rewrite -sum1dep_card.
Qed.

Lemma rest_fibre (Y : eqType) (A : {set T}) (f : T -> Y) y :
  #|[set i in ~: A | f i == y]| = #|[set i | f i == y]| - #|[set i in A | f i == y]|.
Proof.
rewrite -(cardsID A [set i | f i == y]) (_ : _ :&: A = [set i in A | f i == y]); last first.
  by apply/setP => i; rewrite !inE andbC.
by rewrite addKn; apply: eq_card => i; rewrite !inE.
Qed.

Lemma hold_fibre (A : {set T}) (u : T -> H) (v : T -> S) a :
  #|[set i in A | u i == a]| = \sum_b #|[set i in A | (u i, v i) == (a, b)]|.
Proof.
rewrite -(sum_fibres _ v); apply: eq_bigr => b _; apply: eq_card => i.
by rewrite !inE xpair_eqE andbA.
Qed.

Lemma swap_fibre (A : {set T}) (u : T -> H) (v : T -> S) b :
  #|[set i in A | v i == b]| = \sum_a #|[set i in A | (u i, v i) == (a, b)]|.
Proof.
rewrite -(sum_fibres _ u); apply: eq_bigr => a _; apply: eq_card => i.
by rewrite !inE xpair_eqE -andbA [(v i == b) && _]andbC.
Qed.

Theorem lemma5 : exists (b r : 'S_n),
  [/\ forall i, h' (b i) = h i, forall i, s' (b i) = s (r i), #|moved r| = dist
    & forall i, i \in moved r -> (s (r i) != s i) && (N' (h i, s i) < N (h i, s i))].
Proof.
pose x i := (h i, s i); pose x' i := (h' i, s' i).
have [K HK] := common_part x x'; have [K' HK'] := common_part x' x.
have KK c : #|[set i in K | x i == c]| = #|[set i in K' | x' i == c]|.
  by rewrite HK HK' minnC.
have Hrest a : #|[set i in ~: K | h i == a]| = #|[set i in ~: K' | h' i == a]|.
  rewrite !rest_fibre hold_margin (hold_fibre _ _ s) (hold_fibre _ _ s').
  by congr (_ - _); apply: eq_bigr => b _; apply: KK.
have Srest b : #|[set i in ~: K | s i == b]| = #|[set i in ~: K' | s' i == b]|.
  rewrite !rest_fibre swap_margin (swap_fibre _ h) (swap_fibre _ h').
  by congr (_ - _); apply: eq_bigr => a _; apply: KK.
have [|b Hb] := @fibre_perm n _ (fun i => if i \in K then inl (x i) else inr (h i))
    (fun i => if i \in K' then inl (x' i) else inr (h' i)).
  case=> [c|a].
    rewrite (eq_card (B := mem [set i in K | x i == c])); last first.
      by move=> i; rewrite !inE; case: ifP.
    by rewrite KK; apply: eq_card => i; rewrite !inE; case: ifP.
  rewrite (eq_card (B := mem [set i in ~: K | h i == a])); last first.
    by move=> i; rewrite !inE; case: ifP.
  by rewrite Hrest; apply: eq_card => i; rewrite !inE; case: ifP.
have bK i : (b i \in K') = (i \in K) by have /= := Hb i; case: (b i \in K'); case: (i \in K).
have bx i : i \in K -> x' (b i) = x i by have /= := Hb i; rewrite bK => + iK; rewrite iK /x /x' => -[<- <-].
have bh i : h' (b i) = h i.
  by case: (boolP (i \in K)) => iK; [case: (bx i iK)|have /= := Hb i; rewrite bK (negbTE iK) => -[]].
have [|r Hr] := @fibre_perm n _ (fun i => if i \in K then inl i else inr (s' (b i)))
    (fun i => if i \in K then inl i else inr (s i)).
  case=> [j|c].
    by apply: eq_card => i; rewrite !inE; case: ifP.
  rewrite [RHS](eq_card (B := mem [set i in ~: K | s i == c])); last first.
    by move=> i; rewrite !inE; case: ifP.
  rewrite Srest -(card_imset _ (@perm_inj _ b)); apply: eq_card => i.
  apply/imsetP/idP => [[j]|]; rewrite !inE.
    by case: ifP => // jK e ->; rewrite bK jK.
  case/andP => iK e; exists ((b^-1)%g i); rewrite ?permKV // inE.
  by rewrite -bK permKV (negbTE iK).
have rK i : (r i \in K) = (i \in K) by have /= := Hr i; case: (r i \in K); case: (i \in K).
have rfix i : i \in K -> r i = i by have /= := Hr i; rewrite rK => + iK; rewrite iK => -[].
have rs i : s' (b i) = s (r i).
  case: (boolP (i \in K)) => iK; last by have /= := Hr i; rewrite rK (negbTE iK) => -[].
  by rewrite rfix //; case: (bx i iK).
have l1 i : i \notin K -> #|[set j in K | x j == x i]| < #|[set j | x j == x i]|.
  move=> iK; apply: proper_card; apply/properP.
  split; first by apply/subsetP => j; rewrite !inE => /andP[].
  by exists i; rewrite !inE ?eqxx // (negbTE iK).
have ns i : i \notin K -> s (r i) != s i.
  move=> iK; apply/eqP => ri; have e : x' (b i) = x i by rewrite /x /x' bh rs ri.
  have l2 : #|[set j in K' | x' j == x i]| < #|[set j | x' j == x i]|.
    apply: proper_card; apply/properP; split; first by apply/subsetP => j; rewrite !inE => /andP[].
    by exists (b i); rewrite !inE ?e ?eqxx // bK (negbTE iK).
  by move: (l1 i iK) l2; rewrite HK HK'; lia.
have E : moved r = ~: K.
  apply/setP => i; rewrite !inE; case: (boolP (i \in K)) => iK; first by rewrite rfix ?eqxx.
  by apply/eqP => ri; move: (ns i iK); rewrite ri eqxx.
exists b, r; split=> //; rewrite E; last first.
  move=> i; rewrite inE => iK; rewrite ns //=; move: (l1 i iK); rewrite HK.
  by rewrite -[#|[set j | x j == x i]|]/(N (x i)) -[#|[set j | x' j == x i]|]/(N' (x i)) -/(x i); lia.
rewrite -(sum_fibres _ x) /dist; apply: eq_bigr => c _.
by rewrite rest_fibre HK -[#|[set i | x i == c]|]/(N c) -[#|[set i | x' i == c]|]/(N' c); lia.
Qed.

(* dist is half the l1 distance. *)
Lemma dist_l1 : \sum_c ((N c - N' c) + (N' c - N c)) = dist.*2.
Proof.
have e (u : T -> H * S) : \sum_c #|[set i | u i == c]| = n.
  rewrite -[RHS]card_ord -cardsT -(sum_fibres _ u); apply: eq_bigr => c _.
  by apply: eq_card => i; rewrite !inE.
have h1 : \sum_c N c + \sum_c (N' c - N c) = \sum_c N' c + \sum_c (N c - N' c).
  by rewrite -!big_split /=; apply: eq_bigr => c _; lia.
rewrite big_split /= -/dist -addnn; congr (_ + _).
by move: h1; rewrite /N /N' (e (fun i => (h i, s i))) (e (fun i => (h' i, s' i))) => /addnI.
Qed.

End Lemma5.
