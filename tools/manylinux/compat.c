// What is called and came to glibc after 2.28, in its words. Linked into what the wheel has, unseen
// from outside.
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

// libstdc++ asks whether a process has one thread (2.32). Nobody can say: it has more.
HIDDEN char __libc_single_threaded = 0;

HIDDEN pid_t gettid(void) { return (pid_t)syscall(SYS_gettid); }  // 2.30

// 2.30: waits until a time on a clock that is named. The old way, which libstdc++ itself goes where
// there is no such call: the time that is left, on the clock that the old call has. Where that
// clock is set meanwhile, the wait is over at another time, and whoever waits looks at its own.
// 0, EINVAL or ETIMEDOUT.
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
    NAME(HUP),  NAME(INT),    NAME(QUIT), NAME(ILL),    NAME(TRAP), NAME(ABRT),  NAME(BUS),
    NAME(FPE),  NAME(KILL),   NAME(USR1), NAME(SEGV),   NAME(USR2), NAME(PIPE),  NAME(ALRM),
    NAME(TERM), NAME(STKFLT), NAME(CHLD), NAME(CONT),   NAME(STOP), NAME(TSTP),  NAME(TTIN),
    NAME(TTOU), NAME(URG),    NAME(XCPU), NAME(XFSZ),   NAME(VTALRM), NAME(PROF), NAME(WINCH),
    NAME(POLL), NAME(PWR),    NAME(SYS)};

HIDDEN const char* sigabbrev_np(int signal) {  // 2.32
  const int count = (int)(sizeof kNames / sizeof *kNames);
  return signal > 0 && signal < count ? kNames[signal] : NULL;
}

HIDDEN const char* sigdescr_np(int signal) {  // 2.32
  return sigabbrev_np(signal) != NULL ? strsignal(signal) : NULL;
}
