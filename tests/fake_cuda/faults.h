// Calls that fail because a test wants them to: any function of the driver's, from any call on.
#pragma once

#include "fake.h"

namespace fake {

// Returns a wrapper of `function` that fails if `fake_cuda_fail` has asked for it. Called while the
// table is made.
void* breakable(const char* name, void* function);
// Reads the faults that the environment asks for. Called once the table has been made.
void read_faults();

}  // namespace fake

// For tests, found by dlsym. The `count` calls of that name, starting with call `first` from now
// (1: the next), do nothing and return `result`. `first` 0: no more failures. Returns nonzero if
// there is no such function.
extern "C" int fake_cuda_fail(const char* name, long first, long count, int result);
// Number of calls so far; -1: there is no such function.
extern "C" long fake_cuda_calls(const char* name);
