// Functions that glibc has only since a version after 2.28, with the same behaviour as there. The
// numbers in the comments are these versions of glibc. The linker puts the functions into each of
// the wheel's libraries with hidden symbols, so that other libraries keep using glibc's functions.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define HIDDEN __attribute__((visibility("hidden")))

// 2.32: tells libstdc++ whether the process has only one thread. This file cannot know it, so the
// answer is 0: no.
HIDDEN char __libc_single_threaded = 0;

HIDDEN pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }  // 2.30

// Converts `until`, a time on `clock`, to the wall clock: glibc 2.28 can only wait on the wall
// clock. libstdc++ converts times in the same way where glibc lacks the newer functions below
// (2.30). If somebody sets the wall clock during the wait, the wait ends too early or too late.
// Then the caller compares `until` with `clock` again. Returns 0, EINVAL or ETIMEDOUT.
static int on_the_wall_clock(clockid_t clock, const struct timespec* until, struct timespec* end) {
  struct timespec now;
  struct timespec real;
  if (clock_gettime(clock, &now) != 0 || clock_gettime(CLOCK_REALTIME, &real) != 0) return EINVAL;
  long nanoseconds = real.tv_nsec + (until->tv_nsec - now.tv_nsec);
  time_t seconds = real.tv_sec + (until->tv_sec - now.tv_sec);
  for (; nanoseconds < 0; --seconds) nanoseconds += 1000000000;
  for (; nanoseconds >= 1000000000; ++seconds) nanoseconds -= 1000000000;
  *end = (struct timespec){.tv_sec = seconds, .tv_nsec = nanoseconds};
  return seconds < 0 ? ETIMEDOUT : 0;
}

HIDDEN int pthread_cond_clockwait(pthread_cond_t* condition,
                                  pthread_mutex_t* mutex,
                                  clockid_t clock,
                                  const struct timespec* until) {
  struct timespec end;
  const int problem = on_the_wall_clock(clock, until, &end);
  return problem != 0 ? problem : pthread_cond_timedwait(condition, mutex, &end);
}

HIDDEN int pthread_rwlock_clockrdlock(pthread_rwlock_t* lock,
                                      clockid_t clock,
                                      const struct timespec* until) {
  struct timespec end;
  const int problem = on_the_wall_clock(clock, until, &end);
  return problem != 0 ? problem : pthread_rwlock_timedrdlock(lock, &end);
}

HIDDEN int pthread_rwlock_clockwrlock(pthread_rwlock_t* lock,
                                      clockid_t clock,
                                      const struct timespec* until) {
  struct timespec end;
  const int problem = on_the_wall_clock(clock, until, &end);
  return problem != 0 ? problem : pthread_rwlock_timedwrlock(lock, &end);
}

#define NAME(SIGNAL) [SIG##SIGNAL] = #SIGNAL
static const char* const kNames[] = {
    NAME(HUP),  NAME(INT),    NAME(QUIT), NAME(ILL),  NAME(TRAP),   NAME(ABRT), NAME(BUS),
    NAME(FPE),  NAME(KILL),   NAME(USR1), NAME(SEGV), NAME(USR2),   NAME(PIPE), NAME(ALRM),
    NAME(TERM), NAME(STKFLT), NAME(CHLD), NAME(CONT), NAME(STOP),   NAME(TSTP), NAME(TTIN),
    NAME(TTOU), NAME(URG),    NAME(XCPU), NAME(XFSZ), NAME(VTALRM), NAME(PROF), NAME(WINCH),
    NAME(POLL), NAME(PWR),    NAME(SYS)};

HIDDEN const char* sigabbrev_np(int signal) {  // 2.32
  const int count = (int)(sizeof kNames / sizeof *kNames);
  return signal > 0 && signal < count ? kNames[signal] : NULL;
}

HIDDEN const char* sigdescr_np(int signal) {  // 2.32
  return sigabbrev_np(signal) != NULL ? strsignal(signal) : NULL;
}
