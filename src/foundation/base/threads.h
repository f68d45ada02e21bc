// Threads of hocket's own, and what is said where the system gives none.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace hocket::base {

// One thread, which takes no signals: they belong to the program's own. `name` is what the system
// shows, at most 15 letters. Throws SystemError.
std::thread start_thread(const char* name, std::function<void()> body);

// `count` threads; each runs body(number), numbered from 0. Where one cannot be started, no other
// runs `body`, so that none waits for it, and this throws SystemError.
std::vector<std::jthread> start_threads(int count, std::function<void(int)> body);

}  // namespace hocket::base
