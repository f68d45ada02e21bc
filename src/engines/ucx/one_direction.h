// A change of UCX that avoids a crash: UCX handles only one direction of a TCP connection after
// each epoll_wait.
#pragma once

#include <sys/epoll.h>

namespace hocket::engines::ucx {

// Makes UCX handle one direction of a connection after each wait, by replacing its epoll_wait.
// `in_ucs` is the address of any function in UCX's library libucs. The change affects all users of
// UCX in this process. Returns false if this UCX does not import epoll_wait. Any thread may call
// it, any number of times.
//
// UCX (seen from 1.13 to 1.22) asks epoll for both directions of a connection together, receives,
// and then sends. Suppose that UCX has closed its end, and receives the close of the other end
// (CONN_FIN). Then it frees the connection before it sends:
//
//   epoll_wait: {in + out, c}         receive on c, free c; send on c: crash
//
// With one direction in each wait, no event is left for a connection that was freed or has failed:
//
//   epoll_wait: {in, c}               receive on c, free c
//   epoll_wait: nothing
//
// docs/notes/ucx.md has the whole story.
bool handle_one_direction(const void* in_ucs) noexcept;

// Replaces epoll_wait in UCX. If an event has both directions, this removes one of them. The choice
// is random, so that neither direction starves. The events are level-triggered, so the next wait
// returns the removed direction again. For a broken connection only the receive is kept, because a
// failing send may end the process by an assertion in UCX up to 1.19.
int wait_for_one_direction(int set, epoll_event* events, int most, int timeout) noexcept;

}  // namespace hocket::engines::ucx
