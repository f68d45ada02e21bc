// The order in which UCX handles the events of a TCP connection.
#pragma once

#include <sys/epoll.h>

namespace hocket::engines::ucx {

// Makes UCX send before it receives, and so avoids a crash. `in_ucs` is the address of a function
// of UCX's library ucs. The change holds for all users of UCX in this process. Returns false if
// this UCX does not import the function in question. Any thread may call it, any number of times.
//
// Since 1.13 at least, up to 1.22, UCX asks epoll for both directions of a connection at once,
// receives, and then sends. If it has closed its end and receives the close of the other end
// (CONN_FIN), it frees the connection before it sends:
//
//   epoll_wait: {in + out, c}         receive on c, free c; send on c: crash
//
// With an event for each direction, epoll's own order no longer matters:
//
//   epoll_wait: {out, c}, {in, c}     send on c; receive on c, free c
//
// docs/notes/ucx.md has the whole story.
bool send_first(const void* in_ucs) noexcept;

// Replaces epoll_wait in UCX: returns an event in both directions as two, the sending one first.
// A connection that has broken is only to be received from: UCX up to 1.19 may end the process by
// an assertion when a send fails. With room for one event no event becomes two.
int wait_send_first(int set, epoll_event* events, int most, int timeout) noexcept;

}  // namespace hocket::engines::ucx
