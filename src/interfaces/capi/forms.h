// Macros that define the functions of C's collectives: the call itself, its start, its preparation.
//
// A macro takes three parts:
//
//   parameters  the C parameters between `comm` and `options`, in parentheses
//   read        declares `call`, a Collective, and all other variables that `expression` uses
//   expression  makes the call in C++
#pragma once

#include "interfaces/capi/collective.h"

#define HOCKET_C_LIST(...) __VA_ARGS__

#define HOCKET_C_CALL(function, parameters, read, expression)                                     \
  int function(hocket_comm* comm, HOCKET_C_LIST parameters, const hocket_call_options* options) { \
    return hocket::capi::guarded(#function, [&] {                                                 \
      read;                                                                                       \
      expression;                                                                                 \
    });                                                                                           \
  }

#define HOCKET_C_START(function, parameters, read, expression) \
  int function(hocket_comm* comm,                              \
               HOCKET_C_LIST parameters,                       \
               const hocket_call_options* options,             \
               hocket_work** work) {                           \
    return hocket::capi::guarded(#function, [&] {              \
      read;                                                    \
      call.start(work, [&] { return expression; });            \
    });                                                        \
  }

#define HOCKET_C_PREPARE(function, parameters, read, expression) \
  int function(hocket_comm* comm,                                \
               HOCKET_C_LIST parameters,                         \
               const hocket_call_options* options,               \
               hocket_prepared** prepared) {                     \
    return hocket::capi::guarded(#function, [&] {                \
      read;                                                      \
      call.prepare(prepared, [&] { return expression; });        \
    });                                                          \
  }

// The two arrays of most calls.
#define HOCKET_C_ARRAYS const hocket_array *in, const hocket_array *out
