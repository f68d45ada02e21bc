/* The ranks of one host, from joining to the end of the epoch after the first: they join, meet in a
   barrier, fail or not, call for a rebuild and agree who goes on (src/control/succession.h), and meet
   in a barrier of the next epoch. Any CRASHES of them end at any point.

   RANKS, CRASHES: how many. ONLY: 1: the first epoch; 2: what follows it. Checked: nobody waits for
   ever; all that return from the rebuild have the same members, themselves among them, and nobody
   that had not come; one who came too late takes no part in the next epoch; what ended a group first
   is what all are told.

   BUG: 1: the decision is a store instead of a compare-and-swap. 2: so is the failure. 3: late ranks
   are let in. 4: the dead are waited for. The checker must find each of them. */

#ifndef RANKS
#define RANKS 3
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef BUG
#define BUG 0
#endif
#ifndef ONLY
#define ONLY 0
#endif
#define EVERYBODY ((1 << RANKS) - 1)
#define HAS(set, i) (((set) >> (i)) & 1)

/* One bit a rank, each written by its own rank, as in the segment; death by the kernel. */
byte dead, joined, met, come, met_next;
bool impatient;      /* somebody goes on without those who have not come */
byte failure;        /* of the first group: who reported it, plus one */
byte successor;      /* the next group's members, in one word; 0: undecided */
/* Not the ranks', but the checker's: what the first was told, and given. */
byte told, agreed;
byte crashes;

/* All of `set` are in `done` or have ended. */
#define SETTLED(set, done) ((((done) | dead) & (set)) == (set))

proctype rank(byte i) {
  byte mine = 0;
  byte k = 0;
  {
#if ONLY != 2
    joined = joined | (1 << i);
    SETTLED(EVERYBODY, joined);

    /* The barrier of the first epoch: it ends when all are there, or by a failure, a death or the
       departure of one that it needs. Before that is believed, it is asked once more whether all
       have come. */
    met = met | (1 << i);
    if
    :: met == EVERYBODY -> skip
    :: ((dead | come) & ~met) != 0 && met != EVERYBODY ->
#if BUG == 2
       failure = i + 1
#else
       atomic { if :: failure == 0 -> failure = i + 1 :: else fi }
#endif
    :: failure != 0 -> skip
    fi;
    atomic {
      if
      :: failure != 0 -> assert(told == 0 || told == failure); told = failure
      :: else
      fi
    };

#endif
#if ONLY != 1
    /* rebuild(). The others may not want to wait for the last rank. */
    atomic {
      come = come | (1 << i);
      if
      :: i == 0 -> impatient = 1
      :: skip
      fi
    };
    if
    :: successor != 0 -> skip
#if BUG == 4
    :: come == EVERYBODY ->
#else
    :: SETTLED(EVERYBODY, come) || (impatient && SETTLED(EVERYBODY >> 1, come)) ->
#endif
       /* Read member by member, while they end; then one word. */
#if RANKS > 3
       mine = come;  /* in two looks, or there are too many orders */
       mine = mine & ~dead;
#else
       do
       :: k < RANKS -> mine = mine | ((HAS(come, k) && !HAS(dead, k)) << k); k++
       :: else -> break
       od;
#endif
#if BUG == 1
       successor = mine
#else
       atomic { if :: successor == 0 -> successor = mine :: else fi }
#endif
    fi;
    atomic {
      k = 0;
      mine = successor;
#if BUG == 3
      mine = mine | (1 << i);
#endif
      if
      :: !HAS(mine, i) -> mine = 0  /* came too late: an error, and no way in */
      :: HAS(mine, i) ->
         assert((mine & ~come) == 0);
         assert(agreed == 0 || agreed == mine);
         agreed = mine;
         met_next = met_next | (1 << i);
         assert((met_next & ~successor) == 0)
      fi
    };
    SETTLED(mine, met_next)
#endif
    skip
  } unless { HAS(dead, i) }
}

/* Ends ranks at any point, without a word. */
proctype fate() {
  do
  :: atomic { crashes < CRASHES && !HAS(dead, 0) -> dead = dead | 1; crashes++ }
  :: atomic { crashes < CRASHES && !HAS(dead, 1) -> dead = dead | 2; crashes++ }
  :: atomic { crashes < CRASHES && !HAS(dead, 2) -> dead = dead | 4; crashes++ }
#if RANKS > 3
  :: atomic { crashes < CRASHES && !HAS(dead, 3) -> dead = dead | 8; crashes++ }
#endif
  :: break
  od
}

init {
  byte i = 0;
  atomic {
    do
    :: i < RANKS -> run rank(i); i++
    :: else -> break
    od;
    run fate()
  }
}
