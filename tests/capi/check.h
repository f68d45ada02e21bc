/* Checks that say where they failed, and which rank they failed on. */
#ifndef TESTS_CAPI_CHECK_H_
#define TESTS_CAPI_CHECK_H_

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hocket/c.h"

static int my_rank = -1;

#define CHECK(condition)                                      \
  do {                                                        \
    if (!(condition)) {                                       \
      fprintf(stderr,                                         \
              "%s:%d: rank %d: not so: %s; last error: %s\n", \
              __FILE__,                                       \
              __LINE__,                                       \
              my_rank,                                        \
              #condition,                                     \
              hocket_error_message());                        \
      exit(1);                                                \
    }                                                         \
  } while (0)
#define CHECK_OK(call) CHECK((call) == HOCKET_OK)
/* The call fails with this code, and the message has this text in it. */
#define CHECK_FAILS(code, text, call)                                     \
  do {                                                                    \
    const int got = (call);                                               \
    if (got != (code) || strstr(hocket_error_message(), text) == NULL) {  \
      fprintf(stderr,                                                     \
              "%s:%d: rank %d: %s: got %d, expected %d and \"%s\": %s\n", \
              __FILE__,                                                   \
              __LINE__,                                                   \
              my_rank,                                                    \
              #call,                                                      \
              got,                                                        \
              code,                                                       \
              text,                                                       \
              hocket_error_message());                                    \
      exit(1);                                                            \
    }                                                                     \
  } while (0)

static inline hocket_array host_array(void* data, size_t count, int32_t dtype) {
  const hocket_array array = {data, count, dtype, HOCKET_MEMORY_HOST};
  return array;
}

#endif
