// The calls that the ranks of failure_latency repeat until one of them dies.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "hocket/hocket.h"

enum class CallStream : std::uint8_t { kSmall, kLarge, kBarrier, kMessages, kAsync };
inline constexpr std::array kCallStreams{CallStream::kSmall,
                                         CallStream::kLarge,
                                         CallStream::kBarrier,
                                         CallStream::kMessages,
                                         CallStream::kAsync};
inline constexpr std::array kCallStreamNames{
    "all_reduce 8 B", "all_reduce 4 MiB", "barrier", "send_recv 64 KiB", "all_reduce_async 64 KiB"};

// Repeats one kind of call until a call throws. After the first call all ranks are connected, and
// `started` is counted up.
void call_on_hosts(hocket::Communicator& comm, CallStream kind, std::atomic<int>& started);
// Does the same with arrays of GPU rank % Gpu::count(), on one stream. The rank waits for each
// call, and with kAsync for each batch of 100 calls.
void call_on_gpus(hocket::Communicator& comm, CallStream kind, std::atomic<int>& started);
