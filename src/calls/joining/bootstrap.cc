#include "calls/joining/bootstrap.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <random>
#include <string>
#include <utility>

#include "foundation/base/hash.h"
#include "foundation/base/short_text.h"
#include "foundation/os/machine/host_identity.h"
#include "foundation/os/sockets/addresses.h"
#include "hocket/error.h"
#include "membership/rendezvous/address.h"

namespace hocket::joining {
namespace {

// The message of rank 0 to the other ranks, of constant size.
struct Word {
  base::ShortText<16> job;  // hexadecimal digits
  base::ShortText<256> address;
  base::ShortSentence<512> problem;  // the reason why rank 0 cannot serve; empty: it can
  std::array<std::byte, Key::kBytes> key{};
};
static_assert(std::is_trivially_copyable_v<Word>);

std::string random_job() {
  std::random_device source;
  return fmt::format("{:08x}{:07x}", source(), source() & 0xfffffff);
}

// Returns an error that this rank can find before any exchange; empty: none.
std::string problem_of(const Bootstrap& bootstrap, const InitOptions& options) {
  const int rank = bootstrap.rank();
  const int size = bootstrap.size();
  if (size < 1 || rank < 0 || rank >= size) {
    return fmt::format("the bootstrap says rank {} of {}; ranks go from 0 to size - 1", rank, size);
  }
  if (options.rank.value_or(rank) != rank || options.size.value_or(size) != size) {
    return fmt::format(
        "init was given rank {} of {}, and a bootstrap that says rank {} of {}; leave the options "
        "out",
        options.rank.value_or(rank),
        options.size.value_or(size),
        rank,
        size);
  }
  return {};
}

// Compares the number of ranks, and shares errors; `problem` is this rank's error. All ranks call
// it, also ranks with an error. Returns true if all are on one host.
bool agree(Bootstrap& bootstrap, const std::string& problem) {
  const std::int64_t size = bootstrap.size();
  const std::int64_t host = hash_of_host();
  // The values whose minima are taken. A maximum is the minimum of the negative values.
  enum : std::size_t { kRefusing, kSize, kMinusSize, kHost, kMinusHost, kCount };
  std::array<std::int64_t, kCount> least{};
  least[kRefusing] = problem.empty() ? INT64_MAX : bootstrap.rank();
  least[kSize] = size;
  least[kMinusSize] = -size;
  least[kHost] = host;
  least[kMinusHost] = -host;
  bootstrap.all_reduce(least, Bootstrap::Fold::kMin);
  if (!problem.empty()) throw InvalidArgument(problem);
  if (least[kRefusing] != INT64_MAX) {
    throw InvalidArgument(
        fmt::format("rank {} was given wrong arguments or settings for init; see its output",
                    least[kRefusing]));
  }
  if (least[kSize] != size || -least[kMinusSize] != size) {
    throw RendezvousError(
        fmt::format("the bootstrap says that there are {} ranks here and {} elsewhere; its "
                    "all_reduce must be one over all of its ranks",
                    size,
                    least[kSize] != size ? least[kSize] : -least[kMinusSize]));
  }
  return least[kHost] == -least[kMinusHost];
}

// Returns the options for a store at `where`. If it is empty, chooses an address.
StoreServer::Options server_options(const std::string& where,
                                    bool one_host,
                                    const std::string& job) {
  StoreServer::Options server{.job = job};
  if (!where.empty()) {
    const auto address = rendezvous::parse_address(where, "init's address");
    if (const auto* tcp = std::get_if<os::HostPort>(&address)) {
      server.address = tcp->host;
      server.port = tcp->port;
    } else {
      server.address = where;
    }
    return server;
  }
  if (one_host) {
    server.address = fmt::format("unix:hocket-{}-{}", geteuid(), job);
    return server;
  }
  const auto addresses = os::outside_addresses();
  if (addresses.empty()) {
    throw RendezvousError(
        "the ranks run on several hosts, and rank 0's has no address but loopback; give init the "
        "address of a network that all of them are on");
  }
  server.address = addresses.front();
  return server;
}

// Serves the store on rank 0, and stores its address in `word` for the other ranks.
std::optional<StoreServer> serve(
    Word& word, const InitOptions& options, int size, bool one_host, std::exception_ptr& error) {
  try {
    OpenStore meeting = open_store(options.address, 0, size, one_host, Key::generate());
    const std::string& address = meeting.server.address();
    if (address.size() > sizeof(word.address)) {
      throw InvalidArgument(fmt::format("init's address has {} characters, at most {} will do",
                                        address.size(),
                                        sizeof(word.address)));
    }
    std::ranges::copy(meeting.key.bytes(), word.key.begin());
    word.job = meeting.job;
    word.address = address;
    return std::move(meeting.server);
  } catch (const std::exception& problem) {
    error = std::current_exception();
    word.problem = problem.what();
    return std::nullopt;
  }
}

}  // namespace

std::int64_t hash_of_host() {
  return static_cast<std::int64_t>(base::hash_of(os::host_identity()) >> 1);
}

OpenStore open_store(
    const std::string& address, int rank, int size, bool one_host, const Key& key) {
  std::string job = random_job();
  StoreServer::Options asked = server_options(address, one_host, job);
  asked.key = key;
  asked.size = size;
  asked.rank = rank;
  return {.server = StoreServer(std::move(asked)), .key = key, .job = std::move(job)};
}

Introduced introduce(Bootstrap& bootstrap, const InitOptions& options, std::string problem) {
  if (problem.empty()) problem = problem_of(bootstrap, options);
  const bool one_host = agree(bootstrap, problem);
  Introduced made{
      .launch = {.rank = bootstrap.rank(), .size = bootstrap.size(), .launcher = "bootstrap"}};
  LaunchInfo& launch = made.launch;
  if (launch.size == 1) {
    launch.local_rank = 0;
    launch.local_size = 1;
    return made;
  }
  Word word;
  std::exception_ptr error;
  if (launch.rank == 0) made.server = serve(word, options, launch.size, one_host, error);
  bootstrap.broadcast(std::as_writable_bytes(std::span(&word, 1)), 0);
  if (error) std::rethrow_exception(error);
  if (!word.problem.empty()) {
    throw RendezvousError(fmt::format("rank 0 cannot serve the others: {}", word.problem.view()));
  }
  launch.job = word.job.view();
  launch.store_address = word.address.view();
  launch.key = Key(word.key);
  launch.rank_zero_serves = true;
  return made;
}

}  // namespace hocket::joining
