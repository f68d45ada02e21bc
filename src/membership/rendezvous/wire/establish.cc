#include "membership/rendezvous/wire/establish.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>

#include "foundation/base/deadline.h"
#include "foundation/base/interrupt.h"
#include "foundation/base/log.h"
#include "foundation/base/poll.h"
#include "foundation/os/process/standard_descriptors.h"
#include "foundation/os/sockets/peer_credentials.h"
#include "foundation/os/sockets/socket.h"
#include "foundation/os/sockets/unix_socket.h"
#include "hocket/error.h"
#include "membership/rendezvous/address.h"
#include "membership/rendezvous/wire/handshake.h"
#include "membership/rendezvous/wire/wire.h"

namespace hocket::rendezvous {
namespace {

using base::Deadline;
using std::chrono::milliseconds;

// The result of one attempt: a connection, or the reason why there is none yet.
struct Attempt {
  Established established;
  std::string reason;
  bool stale = false;         // the store serves another job or epoch
  bool is_other_job = false;  // another job of this user, with the same name
};

// Thrown if the peer has accepted the connection, but sends nothing.
class SilentPeer : public RendezvousError {
  using RendezvousError::RendezvousError;
};

[[noreturn]] void throw_silent(const std::string& address) {
  throw SilentPeer(
      fmt::format("what listens at {} took the connection and did not answer as a hocket store in "
                  "time; it may be another program, which holds the port, or a stopped one; give "
                  "the job another port, or end that program",
                  address));
}

// Sends a frame. Returns false if the peer has closed the connection.
bool send_frame(Channel& channel,
                const Bytes& payload,
                const std::string& address,
                Deadline deadline) {
  WireWriter writer;
  writer.raw(payload);
  const Bytes frame = std::move(writer).frame();
  std::span<const std::byte> rest = frame;
  while (!rest.empty()) {
    const auto [state, bytes] = channel.send(rest);
    if (state == Channel::State::kClosed) return false;
    rest = rest.subspan(bytes);
    if (state == Channel::State::kMoved) continue;
    const auto wanted =
        state == Channel::State::kWantRead ? os::Readiness::kRead : os::Readiness::kWrite;
    if (!os::wait_ready(channel.fd(), wanted, deadline)) throw_silent(address);
  }
  return true;
}

// Receives the payload of a frame. Absent if the peer has closed the connection.
std::optional<Bytes> receive_frame(Channel& channel,
                                   const std::string& address,
                                   Deadline deadline) {
  Bytes received;
  std::array<std::byte, kMaxHandshakePayload> chunk;
  for (;;) {
    const Frame frame = parse_frame(received, kMaxHandshakePayload);
    if (frame.state == Frame::State::kTooLong) {
      throw RendezvousError(fmt::format("what listens at {} is no hocket store", address));
    }
    if (frame.state == Frame::State::kComplete) {
      return Bytes(frame.payload.begin(), frame.payload.end());
    }
    const auto [state, bytes] = channel.receive(chunk);
    if (state == Channel::State::kClosed) return std::nullopt;
    received.insert(received.end(), chunk.begin(), chunk.begin() + static_cast<long>(bytes));
    if (state == Channel::State::kMoved) continue;
    const auto wanted =
        state == Channel::State::kWantWrite ? os::Readiness::kWrite : os::Readiness::kRead;
    if (!os::wait_ready(channel.fd(), wanted, deadline)) throw_silent(address);
  }
}

std::unique_ptr<Channel> open_channel(const Address& address,
                                      const StoreClientOptions& options,
                                      Deadline deadline) {
  if (const auto* name = std::get_if<UnixName>(&address)) {
    os::Fd socket = os::connect_abstract(name->name, deadline);
    os::require_same_user(socket);
    return make_plain_channel(std::move(socket), Side::kClient);
  }
  os::Fd socket = os::connect_tcp(std::get<os::HostPort>(address), deadline);
  const bool in_the_clear = !options.key || os::is_loopback_connection(socket.get());
  return in_the_clear
             ? make_plain_channel(std::move(socket), Side::kClient)
             : make_tls_channel(std::move(socket), make_tls_context(Side::kClient, *options.key));
}

Trust trust_of(const Address& address, const StoreClientOptions& options) {
  if (options.key) return Trust::kKey;
  return std::holds_alternative<UnixName>(address) ? Trust::kUser : Trust::kNetwork;
}

// Explains a refusal: any decision except kWelcome.
std::string explain(const Verdict& verdict,
                    const Address& address,
                    const StoreClientOptions& options) {
  const std::string& at = options.address;
  const auto* tcp = std::get_if<os::HostPort>(&address);
  switch (verdict.decision) {
    case Decision::kWelcome:
      break;
    case Decision::kNoProof:
      if (options.key && tcp != nullptr && verdict.fact != 0 && verdict.fact != tcp->port) {
        return fmt::format(
            "{} is forwarded to a store at port {}, and in the clear a proof of the key holds for "
            "one port; forward port {} of this host to it, or give the address of its host",
            at,
            verdict.fact,
            verdict.fact);
      }
      return options.key
                 ? fmt::format(
                       "the store at {} did not accept this job's key; check that all ranks "
                       "are started by one launcher, or that HOCKET_KEY_FILE names the same "
                       "key for all of them",
                       at)
                 : fmt::format(
                       "the store at {} asks for the job's key, and this process has none; "
                       "set HOCKET_KEY_FILE to it",
                       at);
    case Decision::kVersion:
      return fmt::format(
          "the store at {} speaks version {} of the protocol, this process version "
          "{}; use one version of hocket for all ranks",
          at,
          verdict.fact,
          kProtocolVersion);
    case Decision::kJob:
      return fmt::format(
          "the store at {} serves another job than \"{}\"; give each job an address "
          "of its own",
          at,
          options.job);
    case Decision::kEpoch:
      return fmt::format(
          "the store at {} serves epoch {} of the job, this process belongs to epoch "
          "{}",
          at,
          verdict.fact,
          options.epoch);
    case Decision::kSize:
      return fmt::format("rank {} was started as one of {}, but the store at {} serves {} ranks",
                         options.rank,
                         options.size,
                         at,
                         verdict.fact);
    case Decision::kRankOutOfRange:
      return fmt::format("rank {} is out of range: the store at {} serves ranks 0 to {}",
                         options.rank,
                         at,
                         verdict.fact - 1);
    case Decision::kRankTaken:
      return fmt::format(
          "rank {} is taken at the store at {}: another process claims it, one that has died did, "
          "this one has joined already, or another job of yours meets there; give each process a "
          "rank of its own, let it call init once, and give each job an address or a HOCKET_JOB of "
          "its own",
          options.rank,
          at);
    case Decision::kComeLater:
      return fmt::format(
          "the store at {} was started by another process than rank {}, and takes its own ranks "
          "first: another job of yours meets there; give each job an address or a HOCKET_JOB of "
          "its "
          "own",
          at,
          options.rank);
    case Decision::kOtherJob:
      return fmt::format(
          "rank {} finds {} taken by another job of yours: process {} serves that job there; end "
          "it, or give each job an address or a HOCKET_JOB of its own",
          options.rank,
          at,
          verdict.fact);
    case Decision::kFull:
      return fmt::format("the store at {} has {} clients, as many as it takes", at, verdict.fact);
  }
  return {};
}

// Returns the result of an attempt in which the peer has closed the connection. Throws if the
// reason is that the two sides do not share a key.
Attempt closed(const Channel& channel, const StoreClientOptions& options) {
  const std::string why = channel.distrust();
  if (why.empty()) {
    return {.reason =
                os::is_loopback_connection(channel.fd())
                    ? "the connection was closed during the handshake (a port that is forwarded to "
                      "another host's address is closed so: give that address itself)"
                    : "the connection was closed during the handshake"};
  }
  throw RendezvousError(
      fmt::format("the store at {} and this process do not share a key (TLS: {}); check that "
                  "HOCKET_KEY_FILE holds the same key on every host, and the address",
                  options.address,
                  why));
}

Attempt shake_hands(std::unique_ptr<Channel> channel,
                    const Address& address,
                    const StoreClientOptions& options,
                    bool is_named,
                    Deadline deadline) {
  const std::string& at = options.address;
  const bool is_member = options.role == StoreRole::kMember;
  const Bytes hello = Hello{.trust = trust_of(address, options),
                            .role = options.role,
                            .epoch = options.epoch,
                            .rank = options.rank,
                            .size = options.size,
                            .nonce = make_nonce(),
                            .job = options.job,
                            .is_named = is_named,
                            .origin = is_member ? origin_of_this_process() : Origin{}}
                          .encode();
  if (!send_frame(*channel, hello, at, deadline)) return closed(*channel, options);
  const auto challenge = receive_frame(*channel, at, deadline);
  if (!challenge) return closed(*channel, options);
  if (!Challenge::parse(*challenge)) {
    throw RendezvousError(fmt::format("what listens at {} is no hocket store", at));
  }
  const Key key = options.key.value_or(Key{});
  const Transcript transcript(hello, *challenge, channel->binding());
  if (!send_frame(*channel, Proof{transcript.client_mac(key)}.encode(), at, deadline)) {
    return closed(*channel, options);
  }
  const auto answer = receive_frame(*channel, at, deadline);
  if (!answer) return closed(*channel, options);
  const auto verdict = Verdict::parse(*answer);
  const bool is_signed = verdict && equal(verdict->mac, transcript.server_mac(key, *verdict));
  if (!is_signed && (!verdict || verdict->decision != Decision::kNoProof)) {
    throw RendezvousError(fmt::format(
        "what answers at {} does not know this job's key: it is not the job's store", at));
  }
  if (verdict->decision == Decision::kWelcome) {
    return {.established = {.channel = std::move(channel),
                            .server_rank = static_cast<int>(verdict->fact)}};
  }
  const std::string reason = explain(*verdict, address, options);
  const bool stale = verdict->decision == Decision::kJob || verdict->decision == Decision::kEpoch ||
                     verdict->decision == Decision::kComeLater;
  const bool is_other_job = verdict->decision == Decision::kOtherJob;
  if (!stale && !is_other_job) throw RendezvousError(reason);
  return {.reason = reason, .stale = stale, .is_other_job = is_other_job};
}

bool is_loopback(const Address& address) {
  const auto* tcp = std::get_if<os::HostPort>(&address);
  return tcp != nullptr && os::is_loopback(tcp->host);
}

Attempt attempt(const Address& address,
                const StoreClientOptions& options,
                bool is_named,
                Deadline deadline) {
  std::unique_ptr<Channel> channel;
  try {
    channel = open_channel(address, options, deadline);
  } catch (const SystemError& error) {
    const int number = error.error_number();
    if (is_loopback(address) && (number == ENETUNREACH || number == EHOSTUNREACH)) {
      throw RendezvousError(
          fmt::format("{}: this host's loopback interface is down; `ip link set lo up` mends that, "
                      "and ranks of one host need no network where they meet at unix:NAME",
                      error.what()));
    }
    return {.reason = is_loopback(address)
                          ? fmt::format("{} ({} is this host alone: others cannot reach it)",
                                        error.what(),
                                        options.address)
                          : error.what()};  // no process listens there yet
  }
  return shake_hands(std::move(channel), address, options, is_named, deadline);
}

void check(const Address& address, const StoreClientOptions& options) {
  if (options.job.size() > kMaxJobBytes) {
    throw InvalidArgument(
        fmt::format("the job's name has {} bytes; at most {} will do (HOCKET_JOB)",
                    options.job.size(),
                    kMaxJobBytes));
  }
  if (options.rank < 0) {
    throw InvalidArgument(fmt::format("rank {} is negative; ranks go from 0", options.rank));
  }
  const bool needs_key = std::holds_alternative<os::HostPort>(address) && !options.trust_network;
  if (needs_key && !options.key) {
    throw RendezvousError(fmt::format(
        "meeting at {} needs the job's key: make one with `hocket key FILE`, copy it to every host "
        "and set HOCKET_KEY_FILE to it; or, where everybody on the network is trusted, set "
        "HOCKET_TRUST_NETWORK=1",
        options.address));
  }
}

}  // namespace

Established establish(const StoreClientOptions& options, const Approach& approach) {
  const Address address = parse_address(options.address, "the store's address");
  check(address, options);
  const RunClock::Watch watch;
  const auto deadline = Deadline::in(options.timeout);
  const auto stale_deadline = std::min(Deadline::in(approach.stale_timeout), deadline);
  const auto other_job_deadline = std::min(Deadline::in(kForOtherJob), stale_deadline);
  auto silent_until = Deadline::in(kSilentWait);
  std::string stale;  // the reason of the previous attempt, if it was stale
  Established established;
  const auto is_there = [&](bool) {
    Attempt tried;
    try {
      tried = attempt(
          address, options, approach.is_named, std::min(deadline, Deadline::in(kSilentWait)));
    } catch (const SilentPeer& silent) {
      if (deadline.has_passed() || approach.on_silence == OnSilence::kGiveUp) throw;
      tried.reason = silent.what();
    } catch (const RendezvousError&) {
      // If the time ended during a handshake, report the previous attempt, which explains more.
      if (!stale.empty() && deadline.has_passed()) throw RendezvousError(stale);
      throw;
    }
    established = std::move(tried.established);
    if (established.channel) return true;
    if (tried.is_other_job && other_job_deadline.has_passed()) throw OtherJob(tried.reason);
    stale = tried.stale ? tried.reason : "";
    if (tried.stale && stale_deadline.has_passed()) throw RendezvousError(stale);
    if (deadline.has_passed()) {
      throw Unserved(
          fmt::format("no store could be reached at {} in {}: {}. Is rank 0, or host 0's launcher, "
                      "running, and "
                      "is the address right?",
                      options.address,
                      base::in_seconds(options.timeout),
                      tried.reason));
    }
    if (silent_until.has_passed()) {
      base::log(base::LogLevel::kWarning,
                fmt::format("still waiting for the store at {}: {}; it comes with rank 0, or with "
                            "the launcher",
                            options.address,
                            tried.reason));
      silent_until = Deadline::never();
    }
    base::throw_if_interrupted(fmt::format("the search for the store at {}", options.address));
    return false;
  };
  base::Naps naps(milliseconds(1), milliseconds(50));
  naps.wake_by(deadline);
  base::wait_until(is_there, naps);
  return established;
}

}  // namespace hocket::rendezvous

namespace hocket {

std::shared_ptr<Store> connect_store(const StoreClientOptions& options) {
  os::occupy_standard_descriptors();
  return rendezvous::make_client(rendezvous::establish(options), options);
}

}  // namespace hocket
