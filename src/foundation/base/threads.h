// hocket's own threads, and the error if the system provides none.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace hocket::base {

// Starts a thread that blocks all signals, because they belong to the program. `name` is visible in
// the system, at most 15 letters. Throws SystemError.
std::thread start_thread(const char* name, std::function<void()> body);

// Starts `count` threads; each runs body(number), from 0. If one cannot start, none runs `body`, so
// that none waits for it, and this throws SystemError.
std::vector<std::jthread> start_threads(int count, std::function<void(int)> body);

}  // namespace hocket::base
