/* The hosts of a group agree which of its members go on (src/membership/control/agreement.h): Paxos with hosts for
   acceptors. Whoever speaks for a host may end: what the host has promised and accepted stays, what
   its speaker was about to do is gone, and another rank of the host speaks, with connections of its own.

   R0, R1, R2: ranks of each host, 6 at most together; all have called for the rebuild. CRASHES of them, or
   fewer, end at any point. CUTS: 1: at any point one host may be cut off from one or both others, which
   each side notices when it does. BREAKS: the messages between so many pairs of single ranks may be lost at
   any point, while all lanes stand; each side notices that when it does. ROUNDS: that many ballots are walked
   through, for two hosts that each take themselves for the first can go on outbidding each other.

   Messages of different kinds and hosts overtake each other, and may be as late as can be; those to a
   rank that ends are lost, those from it may be. Each host hears of deaths in its own time, of a host's
   last rank once it has read what the host had sent.

   Checked: one outcome, of whole hosts, and no member in it whose end all others knew of before the first
   vote. When nothing can happen any more, nobody is left who should propose and has not, and hosts that hear
   each other all know the outcome, or none. Where no host was cut off, each has given the group's memory
   back if there was an outcome, and there was one if hosts that outweigh the others hear each other's ranks.
   Where nothing broke either, nobody who lives was left out.

   BUG: 1: votes end with who speaks. 2: what others have accepted is not looked at. 3: hosts vote below
   what they promised. 4: no majority is needed. 5: nothing is asked twice. 6: who knows of a death before
   the proposer counts as deaf. 7: the outcome is forgotten once a host's own ranks are through. 8: those
   who accept need only outweigh. 9: a host that has ended as a whole does not count, though the others do
   not hear each other. 10: hosts that do not hear each other are left out in their order. 11: ranks that
   messages alone do not reach do not count as there. The checker must find each of them. */

#ifndef R0
#define R0 2
#endif
#ifndef R1
#define R1 1
#endif
#ifndef R2
#define R2 1
#endif
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef CUTS
#define CUTS 0
#endif
#ifndef BREAKS
#define BREAKS 0
#endif
#ifndef ROUNDS
#define ROUNDS 7
#endif
#ifndef BUG
#define BUG 0
#endif

/* Sets of ranks, and of hosts, are bits. */
#define ALL ((1 << (R0 + R1 + R2)) - 1)
#define RANKS_OF_ALL(set) \
  ((((set) & 1) * ranks_of[0]) | ((((set) >> 1) & 1) * ranks_of[1]) | ((((set) >> 2) & 1) * ranks_of[2]))
#define HAS(set, i) (((set) >> (i)) & 1)
#define COUNT(set) (HAS(set, 0) + HAS(set, 1) + HAS(set, 2) + HAS(set, 3) + HAS(set, 4) + HAS(set, 5))
#define FIRST(set) ((set) & ~((set) - 1))
#define HOSTS_OF(ranks) \
  ((((ranks) & ranks_of[0]) != 0) | ((((ranks) & ranks_of[1]) != 0) << 1) | \
   ((((ranks) & ranks_of[2]) != 0) << 2))

mtype = { nothing, prepare, promise, accept, accepted, refused, decided, through };
chan inbox[3] = [10] of { byte /* from */, mtype, byte /* ballot */, byte /* other ballot */,
                          byte /* members */, byte /* lost */ };

byte ranks_of[3];
byte flying[9];           /* messages to a host (times 3) from another */
byte dead;                /* ranks, in truth */
byte cut;                 /* which of the connections 0-1, 0-2 and 1-2 are */
byte unseen[3];           /* ranks whose messages are lost, as their hosts' connections tell; not noticed */
/* A host's memory, which outlives its ranks. */
byte ended[3], silent[3], parted[3]; /* ranks, as it knows; parted: by messages alone */
byte promised[3], voted[3], vote[3], decision[3], knows[3]; /* knows: hosts that have the decision */
bool forgotten[3];        /* its ranks have left the group, and its memory is given back */
/* The memory of who speaks for it: its attempt. */
byte ballot[3], highest[3], asked[3], answered[3], best[3], best_vote[3], deaf[9], proposed[3],
  agreeing[3];
/* The checker's. */
byte agreed, fenced, crashes, cuts, breaks;
bool exhausted;           /* somebody had no ballots left */
bool any_vote;

#if BUG == 11
#define LOST(h) (ended[h] | silent[h] | parted[h])
#else
#define LOST(h) (ended[h] | silent[h])
#endif
#define THERE(h) (ALL & ~LOST(h))
#define ALIVE(h) ((ranks_of[h] & ~dead) != 0)
#if BUG == 6
#define DEAF_TO(h) (LOST(h) | parted[h])
#else
#define DEAF_TO(h) ((silent[h] | parted[h]) & ~ended[h])
#endif
/* Hosts of which nobody is left may have voted with those who are silent. */
#define GONE(h, g) (((ranks_of[g] & ~ended[h]) == 0) * ranks_of[g])
#define DOUBTFUL(h) \
  (((silent[h] & ~ended[h]) != 0 && BUG != 9) * (GONE(h, 0) | GONE(h, 1) | GONE(h, 2)))
#define COUNTED(h) ((ALL & ~ended[h]) | DOUBTFUL(h))
#define FOR(h, hosts) COUNT(COUNTED(h) & RANKS_OF_ALL(hosts))
#define AGAINST(h, hosts) COUNT(COUNTED(h) & ~RANKS_OF_ALL(hosts))
#define OUTWEIGHS(h, hosts) \
  (BUG == 4 || FOR(h, hosts) > AGAINST(h, hosts) || \
   (FOR(h, hosts) == AGAINST(h, hosts) && (FIRST(COUNTED(h)) & RANKS_OF_ALL(hosts)) != 0))
#define LEADS(h) \
  ((FIRST(THERE(h)) & ranks_of[h]) != 0 && OUTWEIGHS(h, HOSTS_OF(THERE(h))) && decision[h] == 0)
#define AGREED(h) (agreeing[h] == asked[h] || BUG == 8)
#define HEARS(a, b) (!HAS(cut, (a) + (b) - 1))
#define IS_WHOLE(h) ((agreed & ranks_of[h]) == 0 || (ranks_of[h] & ~dead & ~agreed) == 0)

inline send(whom, who, what, number, second, some, gone) {
  if
  :: ALIVE(whom) && HEARS(whom, who) ->
    assert(len(inbox[whom]) < 10);
    inbox[whom]!!who, what, number, second, some, gone;
    flying[whom * 3 + who]++
  :: else
  fi
}

inline tell_others(choice) {
  send((h + 1) % 3, h, decided, 0, 0, choice, 0);
  send((h + 2) % 3, h, decided, 0, 0, choice, 0)
}

inline drop_attempt() {
  ballot[h] = 0; highest[h] = 0; asked[h] = 0; answered[h] = 0; best[h] = 0; best_vote[h] = 0;
  deaf[h * 3] = 0; deaf[h * 3 + 1] = 0; deaf[h * 3 + 2] = 0; proposed[h] = 0; agreeing[h] = 0
}

inline decide(choice) {
  assert(agreed == 0 || agreed == choice);
  agreed = choice;
  assert((agreed & fenced) == 0);
  assert(IS_WHOLE(0) && IS_WHOLE(1) && IS_WHOLE(2));
  decision[h] = agreed;
  drop_attempt();
  tell_others(agreed)
}

/* The most who hear each other, of the hosts that have answered; of several such sets the one whose hosts
   come first. They are proposed where they outweigh the others. */
#define DEAF(h, a, b) \
  ((deaf[h * 3 + (a)] & THERE(h) & ranks_of[b]) != 0 || (deaf[h * 3 + (b)] & THERE(h) & ranks_of[a]) != 0)
#define PARTED(h, set, a, b) (HAS(set, a) && HAS(set, b) && DEAF(h, a, b))
#define FITS(h, set) \
  (((set) & ~(answered[h] & HOSTS_OF(THERE(h)))) == 0 && \
   !PARTED(h, set, 0, 1) && !PARTED(h, set, 0, 2) && !PARTED(h, set, 1, 2))
#define MEMBERS_OF(h, set) (THERE(h) & RANKS_OF_ALL(set))
inline consider(set) {
  if
  :: FITS(h, set) && COUNT(MEMBERS_OF(h, set)) > COUNT(MEMBERS_OF(h, k)) -> k = set
  :: else
  fi
}
/* As it was once: in their order, each that hears those before it. */
inline take_in(g) {
  if
  :: FITS(h, k | (1 << g)) -> k = k | (1 << g)
  :: else
  fi
}

inline propose() {
  if
  :: best[h] != 0 && BUG != 2 -> proposed[h] = best_vote[h]
  :: else ->
    k = 0;
#if BUG == 10
    take_in(0); take_in(1); take_in(2);
#else
    consider(7); consider(3); consider(5); consider(1); consider(6); consider(2); consider(4);
#endif
    if
    :: OUTWEIGHS(h, k) || BUG == 10 -> proposed[h] = MEMBERS_OF(h, k)
    :: else
    fi;
    assert(proposed[h] == 0 || OUTWEIGHS(h, HOSTS_OF(proposed[h])));
    k = 0
  fi;
  if
  :: proposed[h] != 0 ->
    best[h] = 0; best_vote[h] = 0; answered[h] = 0;
    deaf[h * 3] = 0; deaf[h * 3 + 1] = 0; deaf[h * 3 + 2] = 0;
    any_vote = 1;
    voted[h] = ballot[h];
    vote[h] = proposed[h];
    agreeing[h] = 1 << h
  :: else
  fi
}

#define QUIET(g) (flying[h * 3 + g] == 0 && flying[g * 3 + h] == 0)
inline ask_one(to) {
  if
  :: to == h || !HAS(asked[h], to) || (kind == nothing && ballot[h] == before && !QUIET(to))
  :: else ->
    if
    :: proposed[h] == 0 && !HAS(answered[h], to) -> send(to, h, prepare, ballot[h], 0, 0, 0)
    :: proposed[h] != 0 && !HAS(agreeing[h], to) -> send(to, h, accept, ballot[h], 0, proposed[h], 0)
    :: else
    fi
  fi
}
inline ask() {
  ask_one((h + 1) % 3);
  ask_one((h + 2) % 3)
}

inline begin() {
  k = (highest[h] > promised[h] -> highest[h] : promised[h]);
  drop_attempt();
  if
  :: (k >> 2) >= ROUNDS -> exhausted = 1; highest[h] = k
  :: else ->
    highest[h] = k;
    ballot[h] = (((k >> 2) + 1) << 2) | h;
    promised[h] = ballot[h];
    asked[h] = HOSTS_OF(THERE(h));
    answered[h] = 1 << h;
    best[h] = voted[h];
    best_vote[h] = vote[h];
    deaf[h * 3 + h] = DEAF_TO(h);
    k = 0;
    asks = 1
  fi;
  k = 0
}

inline vote_on() {
  if
  :: decision[h] != 0 -> send(from, h, decided, 0, 0, decision[h], 0)
  :: decision[h] == 0 && b < promised[h] && !(BUG == 3 && kind == accept) ->
    send(from, h, refused, b, promised[h], 0, 0)
  :: else ->
    promised[h] = b;
    if
    :: kind == prepare -> send(from, h, promise, b, voted[h], vote[h], DEAF_TO(h))
    :: else ->
      voted[h] = b;
      vote[h] = members;
      send(from, h, accepted, b, 0, 0, 0)
    fi
  fi
}

inline take_answer() {
  if
  :: ballot[h] == 0 || b != ballot[h] || decision[h] != 0 || promised[h] != b || !HAS(asked[h], from)
  :: else ->
    if
    :: kind == refused ->
      drop_attempt();
      highest[h] = other;
      exhausted = exhausted || (other >> 2) >= ROUNDS
    :: kind == promise && proposed[h] == 0 ->
      answered[h] = answered[h] | (1 << from);
      deaf[h * 3 + from] = lost;
      if
      :: other > best[h] -> best[h] = other; best_vote[h] = members
      :: else
      fi
    :: kind == accepted && proposed[h] != 0 ->
      agreeing[h] = agreeing[h] | (1 << from)
    :: else
    fi
  fi
}


/* Whoever speaks for host h. */
#define LACKS(g) \
  (g != h && HAS(asked[h], g) && !HAS((proposed[h] == 0 -> answered[h] : agreeing[h]), g) && \
   QUIET(g))
#define TAKE(g, what) inbox[h]??g, what, b, other, members, lost -> \
  from = g; kind = what; flying[h * 3 + g]--
#define TAKE_FROM(g) \
  :: TAKE(g, prepare) :: TAKE(g, accept) :: TAKE(g, promise) :: TAKE(g, accepted) \
  :: TAKE(g, refused) :: TAKE(g, decided) :: TAKE(g, through)

proctype speaker(byte h) {
  byte from, b, other, members, lost, k;
  mtype kind = nothing;
  bool asks;
  byte before;  /* ballot */
end:
  do
  :: atomic {
       if
       TAKE_FROM(0)
       TAKE_FROM(1)
       TAKE_FROM(2)
       :: ALIVE(h) && ballot[h] + highest[h] != 0 && !LEADS(h) -> drop_attempt()
       :: ALIVE(h) && LEADS(h) && ballot[h] != 0 && promised[h] != ballot[h] ->
         drop_attempt();
         highest[h] = promised[h];
         exhausted = exhausted || (highest[h] >> 2) >= ROUNDS
       :: ALIVE(h) && LEADS(h) && asked[h] != HOSTS_OF(THERE(h)) && (highest[h] >> 2) < ROUNDS &&
          (ballot[h] == 0 || promised[h] == ballot[h]) -> begin()
       :: ALIVE(h) && decision[h] != 0 && !forgotten[h] &&
          (BUG == 7 || (HOSTS_OF(THERE(h)) & ~knows[h] & ~(1 << h)) == 0) -> forgotten[h] = 1
#if BUG != 5
       :: ALIVE(h) && LEADS(h) && ballot[h] != 0 && promised[h] == ballot[h] &&
          asked[h] == HOSTS_OF(THERE(h)) && (LACKS(0) || LACKS(1) || LACKS(2)) -> asks = 1; before = ballot[h]
#endif
       fi;
       if
       :: forgotten[h] && kind == decided -> send(from, h, through, 0, 0, 0, 0); kind = nothing
       :: forgotten[h] && kind != decided -> kind = nothing
       :: !forgotten[h] && (kind == prepare || kind == accept) -> vote_on()
       :: !forgotten[h] && (kind == promise || kind == accepted || kind == refused) -> take_answer()
       :: !forgotten[h] && (kind == decided || kind == through) -> knows[h] = knows[h] | (1 << from)
       :: !forgotten[h] && kind == nothing
       fi;
       if
       :: ballot[h] != 0 && proposed[h] == 0 && answered[h] == asked[h] -> propose(); asks = proposed[h] != 0
       :: else
       fi;
       if
       :: asks -> ask()
       :: else
       fi;
       if
       :: kind == decided && decision[h] == 0 -> decide(members)
       :: kind != decided && kind != through && decision[h] == 0 && proposed[h] != 0 && AGREED(h) && OUTWEIGHS(h, agreeing[h]) ->
         decide(proposed[h])
       :: else
       fi;
       from = 0; b = 0; other = 0; members = 0; lost = 0; k = 0; kind = nothing; asks = 0; before = 0
     }
  od
}

/* What becomes of the messages in a queue that are from one host: some, or all, or none, are lost. */
inline lose_some(to, sender) {
  k = len(inbox[to]);
  do
  :: k > 0 ->
    k--;
    inbox[to]?from, kind, b, other, members, lost;
    if
    :: inbox[to]!from, kind, b, other, members, lost
    :: from == sender -> flying[to * 3 + from]--
    fi
  :: else -> break
  od
}

/* A lane made anew: each end says what was decided, where it knows. */
inline connect(to) {
  if
  :: decision[h] != 0 && !forgotten[h] -> send(to, h, decided, 0, 0, decision[h], 0)
  :: else
  fi;
  if
  :: ALIVE(to) && decision[to] != 0 && !forgotten[to] -> send(h, to, decided, 0, 0, decision[to], 0)
  :: else
  fi
}

inline end_rank(it) {
  h = it;
  r = FIRST(ranks_of[h] & ~dead);
  crashes++;
  dead = dead | r;
  ended[h] = ended[h] | r;
  drop_attempt();
  do
  :: len(inbox[h]) > 0 -> inbox[h]?from, kind, b, other, members, lost; flying[h * 3 + from]--
  :: else -> break
  od;
  lose_some((h + 1) % 3, h);
  lose_some((h + 2) % 3, h);
#if BUG == 1
  promised[h] = 0; voted[h] = 0; vote[h] = 0;
#endif
  if
  :: !ALIVE(h) -> promised[h] = 0; voted[h] = 0; vote[h] = 0; ended[h] = 0; silent[h] = 0; decision[h] = 0;
    knows[h] = 0; forgotten[h] = 0; parted[h] = 0; unseen[h] = 0
  :: else
  fi;
  if
  :: ALIVE(h) -> connect((h + 1) % 3); connect((h + 2) % 3)
  :: else
  fi;
  look_back()
}

/* What all knew of before the first vote. */
#define KNOWN(h) (ALIVE(h) -> ended[h] : ALL)
inline look_back() {
  if
  :: !any_vote -> fenced = KNOWN(0) & KNOWN(1) & KNOWN(2)
  :: else
  fi
}

/* A rank of another host, whose end this one has not heard of. The end of a whole host is that of its
   connections: what it had sent comes before. */
#define NEWS(h, g) (dead & ranks_of[g] & ~ended[h])
inline hear(me, g) {
  ended[me] = ended[me] | FIRST(NEWS(me, g));
  look_back()
}
#define MAY_HEAR(h, g) \
  (ALIVE(h) && NEWS(h, g) != 0 && HEARS(h, g) && \
   (ALIVE(g) || COUNT(NEWS(h, g)) > 1 || flying[h * 3 + g] == 0))

inline cut_off(a, c) {
  cut = cut | (1 << (a + c - 1));
  lose_all(a, c);
  lose_all(c, a)
}
inline lose_all(to, sender) {
  k = len(inbox[to]);
  do
  :: k > 0 ->
    k--;
    inbox[to]?from, kind, b, other, members, lost;
    if
    :: from != sender -> inbox[to]!from, kind, b, other, members, lost
    :: else -> flying[to * 3 + from]--
    fi
  :: else -> break
  od
}
#define MAY_GIVE_UP(h, g) \
  (ALIVE(h) && !HEARS(h, g) && (ranks_of[g] & ~LOST(h)) != 0)

#define HEAR(h, g) :: atomic { MAY_HEAR(h, g) -> hear(h, g) }
#define GIVE_UP(h, g) :: atomic { MAY_GIVE_UP(h, g) -> silent[h] = silent[h] | (ranks_of[g] & ~ended[h]) }
#define ALIKE(g, h) \
  (!ALIVE(g) || !ALIVE(h) || !HEARS(g, h) || (decision[g] != 0) == (decision[h] != 0))
#define CLEAN(h) (!ALIVE(h) || forgotten[h])
/* Hosts of which living ranks do not reach each other, and sets of hosts without such a pair. */
#define APART(a, b) ((parted[a] & ranks_of[b] & ~dead) != 0 || (parted[b] & ranks_of[a] & ~dead) != 0)
#define BOTH_APART(set, a, b) (HAS(set, a) && HAS(set, b) && APART(a, b))
#define LIVING(set) COUNT(ALL & ~dead & RANKS_OF_ALL(set))
#define MAY_GO_ON(set) \
  (!BOTH_APART(set, 0, 1) && !BOTH_APART(set, 0, 2) && !BOTH_APART(set, 1, 2) && \
   2 * LIVING(set) + ((FIRST(ALL & ~dead) & RANKS_OF_ALL(set)) != 0) > LIVING(7))
#define ANY_MAY_GO_ON \
  (MAY_GO_ON(1) || MAY_GO_ON(2) || MAY_GO_ON(3) || MAY_GO_ON(4) || MAY_GO_ON(5) || MAY_GO_ON(6) || MAY_GO_ON(7))
#define STUCK(h) (ALIVE(h) && LEADS(h) && (breaks == 0 || ANY_MAY_GO_ON))
#define NOTICE(h) :: atomic { ALIVE(h) && unseen[h] != 0 -> parted[h] = parted[h] | FIRST(unseen[h]); \
                              unseen[h] = unseen[h] & ~FIRST(unseen[h]) }
proctype world() {
  byte from, b, other, members, lost, k, r, h;
  mtype kind = nothing;
end:
  do
  :: atomic {
       crashes < CRASHES ->
       if
       :: ALIVE(0) -> end_rank(0)
       :: ALIVE(1) -> end_rank(1)
       :: ALIVE(2) -> end_rank(2)
       fi;
       from = 0; b = 0; other = 0; members = 0; lost = 0; kind = nothing; k = 0; r = 0; h = 0
     }
  HEAR(0, 1) HEAR(0, 2) HEAR(1, 0) HEAR(1, 2) HEAR(2, 0) HEAR(2, 1)
#if CUTS > 0
  :: atomic {
       cuts < CUTS ->
       cuts++;
       r = 1;
       do
       :: r < 6 -> r++
       :: break
       od;
       if
       :: HAS(r, 0) -> cut_off(0, 1)
       :: else
       fi;
       if
       :: HAS(r, 1) -> cut_off(0, 2)
       :: else
       fi;
       if
       :: HAS(r, 2) -> cut_off(1, 2)
       :: else
       fi;
       r = 0;
       from = 0; b = 0; other = 0; members = 0; lost = 0; kind = nothing; k = 0
     }
#endif
#if BREAKS > 0
  :: atomic {
       breaks < BREAKS ->
       breaks++;
       if
       :: h = 0; from = 1
       :: h = 0; from = 2
       :: h = 1; from = 2
       fi;
       r = FIRST(ranks_of[h]);
       b = FIRST(ranks_of[from]);
       do
       :: ranks_of[h] & (r << 1) -> r = r << 1
       :: ranks_of[from] & (b << 1) -> b = b << 1
       :: break
       od;
       unseen[h] = unseen[h] | b;
       unseen[from] = unseen[from] | r;
       from = 0; b = 0; r = 0; h = 0
     }
  NOTICE(0) NOTICE(1) NOTICE(2)
#endif
#if CUTS > 0
  GIVE_UP(0, 1) GIVE_UP(0, 2) GIVE_UP(1, 0) GIVE_UP(1, 2) GIVE_UP(2, 0) GIVE_UP(2, 1)
#endif
  :: timeout -> break
  od;
  /* Nothing more can happen. */
  atomic {
    assert(exhausted || !STUCK(0) && !STUCK(1) && !STUCK(2));
    assert(exhausted || ALIKE(0, 1) && ALIKE(0, 2) && ALIKE(1, 2));
    assert(exhausted || cuts + breaks > 0 || dead == ALL || agreed != 0 && (ALL & ~dead & ~agreed) == 0);
    assert(exhausted || cuts > 0 || dead == ALL || agreed != 0 || !ANY_MAY_GO_ON);
    assert(exhausted || cuts > 0 || agreed == 0 || CLEAN(0) && CLEAN(1) && CLEAN(2))
  }
}

init {
  atomic {
    ranks_of[0] = (1 << R0) - 1;
    ranks_of[1] = ((1 << R1) - 1) << R0;
    ranks_of[2] = ((1 << R2) - 1) << (R0 + R1);
    run speaker(0); run speaker(1); run speaker(2); run world() }
}
