// What is used of Asio: waiting for descriptors and for time. Included by the server's files only.
#pragma once

// The order matters: Asio's configuration asks what the standard library has, and says something
// else in a file where none of it has been included yet. All files must agree.
// clang-format off
#include <cstddef>
#include <cstdlib>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
// clang-format on
