// Calls that fail because a test wants them to: any function of the driver's, from any call on.
#pragma once

#include "fake.h"

namespace fake {

// `function`, which fails where `fake_cuda_fail` has been asked to make it. While the table is
// made.
void* breakable(const char* name, void* function);
// What the environment asks for; once the table has been made.
void read_faults();

}  // namespace fake

// For tests, found by dlsym. From now on the call of that name that is `first` (1: the next), and
// the `count` - 1 after it, do nothing and return `result`. `first` 0: none does any more. Not 0:
// there is no such function.
extern "C" int fake_cuda_fail(const char* name, long first, long count, int result);
// How often it has been called; -1: there is no such function.
extern "C" long fake_cuda_calls(const char* name);
