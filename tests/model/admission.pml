/* Newcomers join a running job (src/calls/joining/admission.cc). MEMBERS members call `admit`, and NEWCOMERS
   processes wait at the door. Any DEATHS of them, or fewer, end at any point.

     member                            newcomer
     rebuild: who lives                wait at the door
     the root invites, and tells all
     make the new world                make the new world
     rebuild: commit, or one refuses   enter the first barrier there
     enter the first barrier there     return when it ends, or go back to the door

   `rebuild` is one step here: ranks.pml and hosts.pml have what it consists of. All members that live
   take part, and a single word decides for all. A member that has died may have refused or not.

   Checked: nobody waits for ever, but newcomers at the door; all members go on in the same new world; a
   member that could not make it never goes on in it; a newcomer returns only into that world; and each
   attempt that fails has a death of its own.

   BUG: 1: members go on without the second rebuild. 2: newcomers go on without the barrier. 3: a member
   that could not make the world does not refuse it. The checker must find each of them. */

#ifndef MEMBERS
#define MEMBERS 3
#endif
#ifndef NEWCOMERS
#define NEWCOMERS 2
#endif
#ifndef DEATHS
#define DEATHS 2
#endif
#ifndef BUG
#define BUG 0
#endif

#define ATTEMPTS (DEATHS + 1)
#define PHASES (2 * ATTEMPTS)
#define ALL_MEMBERS ((1 << MEMBERS) - 1)
#define HAS(set, i) (((set) >> (i)) & 1)

/* One bit a process: members first, then newcomers. */
byte dead, left = DEATHS;
/* For each rebuild: who has come, who refuses, the decision (1: agreed, 2: refused) and its members. */
byte come[PHASES], refusing[PHASES], decision[PHASES], agreed[PHASES];
/* For each attempt: the ranks of the new world, whether the root has told the plan, who has come to the
   world, who has entered its first barrier, and who has left it for good. */
byte planned[ATTEMPTS], arrived[ATTEMPTS], entered[ATTEMPTS], gone[ATTEMPTS];
bool is_told[ATTEMPTS];
byte invitation[NEWCOMERS]; /* the attempt, plus one; 0: none */
bool waits[NEWCOMERS];
byte winner; /* the attempt that members went on with, plus one */

#define OR_END :: atomic { left > 0 -> left--; dead = dead | (1 << me); goto ended }

/* The new world is made when all have come. It fails if one has died or left; those who came before may
   have seen it whole. */
#define IS_WHOLE(a) ((arrived[a] & planned[a]) == planned[a])
#define IS_BROKEN(a) ((planned[a] & (dead | gone[a])) != 0)

inline rebuild(p, refuses) {
  atomic {
    come[p] = come[p] | (1 << me);
    if
    :: refuses -> refusing[p] = refusing[p] | (1 << me)
    :: else
    fi
  };
  if
  :: atomic {
       decision[p] == 0 && ((come[p] | dead) & ALL_MEMBERS) == ALL_MEMBERS ->
       agreed[p] = come[p] & ~dead;
       if
       :: (refusing[p] & ~dead) != 0 -> decision[p] = 2
       :: (refusing[p] & ~dead) == 0 -> decision[p] = 1
       :: (refusing[p] & dead) != 0 -> decision[p] = 2
       fi
     }
  :: decision[p] != 0
  OR_END
  fi
}

proctype member(byte me) {
  byte a = 0;
  byte n;
  byte root;
  bool works;

  do
  :: true ->
     rebuild(2 * a, false);
     atomic {
       root = 0;
       do
       :: !HAS(agreed[2 * a], root) -> root++
       :: else -> break
       od
     };
     works = true;
     if
     :: me == root ->
        /* The root calls any of those who wait, as its patience allows. Each may die at once. */
        atomic {
          planned[a] = agreed[2 * a];
          n = 0;
          do
          :: n < NEWCOMERS ->
             if
             :: waits[n] -> waits[n] = false; planned[a] = planned[a] | (1 << (MEMBERS + n))
             :: true
             fi;
             n++
          :: else -> break
          od
        };
        n = 0;
        do
        :: n < NEWCOMERS ->
           if
           :: atomic { HAS(planned[a], MEMBERS + n) -> invitation[n] = a + 1 }
           :: !HAS(planned[a], MEMBERS + n)
           OR_END
           fi;
           n++
        :: else -> break
        od;
        is_told[a] = true
     :: else ->
        if
        :: is_told[a]
        :: HAS(dead, root) -> works = false
        OR_END
        fi
     fi;
     if
     :: works ->
        arrived[a] = arrived[a] | (1 << me);
        if
        :: IS_WHOLE(a)
        :: IS_BROKEN(a) -> works = false
        OR_END
        fi
     :: else
     fi;
     if
     :: !works -> gone[a] = gone[a] | (1 << me)
     :: else
     fi;
#if BUG == 1
     if
     :: works -> decision[2 * a + 1] = 1
     :: else -> decision[2 * a + 1] = 2
     fi;
#elif BUG == 3
     rebuild(2 * a + 1, false);
#else
     rebuild(2 * a + 1, !works);
#endif
     if
     :: decision[2 * a + 1] == 1 -> break
     :: else -> gone[a] = gone[a] | (1 << me); a++; assert(a < ATTEMPTS)
     fi
  od;
  assert(works);
  atomic {
    assert(winner == 0 || winner == a + 1);
    winner = a + 1;
    entered[a] = entered[a] | (1 << me)
  };
ended:
  skip
}

proctype newcomer(byte me) {
  byte a;

at_door:
  waits[me - MEMBERS] = true;
end_waits:
  if
  :: atomic {
       invitation[me - MEMBERS] != 0 ->
       a = invitation[me - MEMBERS] - 1;
       invitation[me - MEMBERS] = 0
     }
  OR_END
  fi;
  arrived[a] = arrived[a] | (1 << me);
  if
  :: IS_WHOLE(a)
  :: IS_BROKEN(a) -> goto back
  OR_END
  fi;
#if BUG != 2
  entered[a] = entered[a] | (1 << me);
  if
  :: (entered[a] & planned[a]) == planned[a]
  :: IS_BROKEN(a) -> goto back
  OR_END
  fi;
#endif
  assert(winner == a + 1);
  goto ended;
back:
  gone[a] = gone[a] | (1 << me);
  goto at_door;
ended:
  skip
}

init {
  byte i = 0;
  atomic {
    do
    :: i < MEMBERS -> run member(i); i++
    :: i >= MEMBERS && i < MEMBERS + NEWCOMERS -> run newcomer(i); i++
    :: else -> break
    od
  }
}
