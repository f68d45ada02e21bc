// Threads of which none begins unless all can.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace hocket::base {

// `count` threads; each runs body(number), numbered from 0. Where one cannot be started, no other
// runs `body`, so that none waits for it, and this throws SystemError.
std::vector<std::jthread> start_threads(int count, std::function<void(int)> body);

}  // namespace hocket::base
