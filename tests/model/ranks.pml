/* The ranks of one host, from joining to the end of the epoch after the first: they join, meet in a
   barrier, fail or not, call for a rebuild and agree who goes on (src/membership/control/succession.h), and meet
   in a barrier of the next epoch. Any CRASHES of them, or fewer, end at any point.

   RANKS, CRASHES: how many. Checked: nobody waits for ever; all that return from the rebuild have the
   same members, themselves among them, and nobody that had not come; one who came too late takes no
   part in the next epoch; what ended a group first is what all are told.

   BUG: 1: the decision is a store instead of a compare-and-swap. 2: so is the failure. 3: late ranks
   are let in. 4: the dead are waited for. The checker must find each of them.

   To be small enough to be walked through whole, what makes no difference to others is one step with
   what follows it: a look at what can never change again may be taken as late, or as early, as one
   likes. Nothing else is left out. */

#ifndef RANKS
#define RANKS 3
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef BUG
#define BUG 0
#endif
/* The failure of a group: the first to be reported is it. */
#if BUG == 2
#define REPORT failure = i + 1
#else
#define REPORT if :: failure == 0 -> failure = i + 1 :: else fi
#endif

#define EVERYBODY ((1 << RANKS) - 1)
#define HAS(set, i) (((set) >> (i)) & 1)

/* One bit a rank, each written by its own rank, as in the segment; death by the kernel. */
byte dead, joined, met, come, met_next;
bool impatient;      /* somebody goes on without those who have not come */
byte failure;        /* of the first group: who reported it, plus one */
byte successor;      /* the next group's members, in one word; 0: undecided */
/* Not the ranks', but the checker's: what the first was told, and given; how many may still end. */
byte told, agreed, left;

/* All of `set` are in `done` or have ended. Once that holds it holds for ever. */
#define SETTLED(set, done) ((((done) | dead) & (set)) == (set))

/* Whether a look at member k says the same for ever. */
#define STABLE(k) (HAS(dead, k) || (HAS(come, k) && (left == 0 || k == i)))

/* Or else, at this point, the rank ends without a word. */
#define OR_END :: atomic { left > 0 -> left--; dead = dead | (1 << i); goto gone }

proctype rank(byte i) {
  byte mine = 0;
  byte k = 0;

  if
  :: joined = joined | (1 << i)
  OR_END
  fi;
  /* abort() instead of the barrier, or the barrier of the first epoch. It ends when all are there, or
     by a failure (an abort, somebody's deadline), a death or the departure of one that it needs.
     Before that is believed, it is asked once more whether all have come. */
  if
  :: atomic { SETTLED(EVERYBODY, joined) -> REPORT; goto told_of }
  :: atomic { SETTLED(EVERYBODY, joined) -> met = met | (1 << i) }
  OR_END
  fi;
  if
  :: met == EVERYBODY
  :: atomic { ((dead | come) & ~met) != 0 && met != EVERYBODY -> REPORT }
  :: atomic { met != EVERYBODY -> REPORT }
  :: failure != 0
  OR_END
  fi;
told_of:
  if
  :: atomic {
       if
       :: failure != 0 -> assert(told == 0 || told == failure); told = failure
       :: else
       fi
     }
  OR_END
  fi;

  /* rebuild(). The first rank may not want to wait for the last. */
  if
  :: atomic {
       come = come | (1 << i);
       if
       :: i == 0 -> impatient = 1
       :: skip
       fi
     }
  OR_END
  fi;
  if
  :: atomic { successor != 0 -> goto enter }
#if BUG == 4
  :: atomic { come == EVERYBODY -> goto look }
#else
  :: atomic {
       SETTLED(EVERYBODY, come) || (impatient && SETTLED(EVERYBODY >> 1, come)) -> goto look
     }
#endif
  OR_END
  fi;

  /* Member by member, while they end. (Two looks at each, has it come and then has it ended, say
     what one look at one of the two moments would have said.) */
look:
  if
  :: atomic {
       mine = mine | ((HAS(come, k) && !HAS(dead, k)) << k);
       k++;
       do
       :: k < RANKS && STABLE(k) -> mine = mine | ((HAS(come, k) && !HAS(dead, k)) << k); k++
       :: else -> break
       od;
       if
       :: k < RANKS -> goto look
       :: else
       fi
     }
  OR_END
  fi;
  /* Then one word. */
  if
  :: atomic {
#if BUG == 1
       successor = mine;
#else
       if :: successor == 0 -> successor = mine :: else fi;
#endif
       mine = 0;
       k = 0
     }
  OR_END
  fi;

enter:
  if
  :: atomic {
       mine = successor;
#if BUG == 3
       mine = mine | (1 << i);
#endif
       if
       :: !HAS(mine, i) -> goto gone  /* came too late: an error, and no way in */
       :: HAS(mine, i) ->
         assert((mine & ~come) == 0);
         assert(agreed == 0 || agreed == mine);
         agreed = mine;
         met_next = met_next | (1 << i);
         assert((met_next & ~successor) == 0)
       fi
     }
  OR_END
  fi;
  if
  :: SETTLED(mine, met_next)
  OR_END
  fi;
gone:
  atomic { mine = 0; k = 0 }
}

init {
  byte i = 0;
  atomic {
    if
    :: left = CRASHES
#if CRASHES > 0
    :: left = CRASHES - 1
#endif
#if CRASHES > 1
    :: left = CRASHES - 2
#endif
    fi;
    do
    :: i < RANKS -> run rank(i); i++
    :: else -> break
    od
  }
}
