#include "engines/ucx/fabric.h"

#include <fmt/format.h>

#include <cstring>
#include <initializer_list>
#include <utility>

#include "engines/ucx/devices.h"
#include "foundation/base/config.h"
#include "foundation/base/log.h"
#include "foundation/base/threads.h"
#include "foundation/cuda/stream.h"
#include "foundation/os/sockets/ports.h"
#include "hocket/error.h"

namespace hocket::engines::ucx {

using base::Deadline;
using engine::Fate;

namespace {

constexpr unsigned kMessageId = 29;  // UCX's number for hocket's active messages, chosen freely
constexpr std::size_t kMostFree = 256;
// UCX sends only messages of up to so many bytes immediately and completely.
constexpr std::size_t kMostAtOnce = 8192;
constexpr auto kGrace = std::chrono::milliseconds(100);  // for pending messages at the end

// Makes the GPU's context current, if there is one, while UCX runs. Also keeps UCX's calls out of
// graph captures: UCX may free memory and wait for its own streams while the program captures other
// streams.
class CurrentDevice {
 public:
  explicit CurrentDevice(const std::shared_ptr<const cuda::DeviceContext>& device) {
    if (!device) return;
    guard_.emplace(*device);
    outside_.emplace(device->driver());
  }
  bool is_current() const noexcept { return !guard_ || guard_->is_current(); }

 private:
  std::optional<cuda::DeviceGuard> guard_;
  std::optional<cuda::OutsideCapture> outside_;
};

bool is_lost(Fate fate) noexcept { return fate == Fate::kDied || fate == Fate::kCutOff; }

// Returns the network devices for UCX. Empty: UCX or the user chooses. Without this setting, UCX
// would also try interfaces that other hosts cannot reach, or whose address other hosts have, too.
// An example is docker0, which has the same address on all machines.
std::string devices_for(const ListenOptions& listening) {
  if (listening.interface.empty() || base::environment("UCX_NET_DEVICES")) return {};
  if (listening.is_chosen) return listening.interface;
  const std::string transports = base::environment("UCX_TLS").value_or("");
  return net_devices(listening.interface, transports, infiniband_devices());
}

}  // namespace

// A message that UCX may still read: the header, and the copy of the bytes if `send` made one.
struct Fabric::Outgoing {
  Fabric* fabric = nullptr;
  MessageHeader header;
  std::vector<std::byte> payload;
  Count left;
};

Fabric::Fabric(std::shared_ptr<const UcxLibrary> library, FabricOptions options)
    : device_(std::move(options.device)),
      library_(std::move(library)),
      wake_(std::move(options.wake)),
      help_(std::move(options.help)),
      fate_(std::move(options.fate)),
      bulk_(options.bulk),
      direct_from_(options.direct_from) {
  start(options);
}

void Fabric::stop() noexcept {
  if (worker_ != nullptr) library_->worker_destroy(std::exchange(worker_, nullptr));
  if (context_ != nullptr) library_->cleanup(std::exchange(context_, nullptr));
}

void Fabric::refuse(const char* what, UcsStatus status) const {
  throw Error(
      {.code = ErrorCode::kSystem,
       .message = fmt::format("{} cannot {}: {}", name(), what, library_->status_string(status))});
}

std::string Fabric::name() const { return "UCX " + library_->version(); }

// Starts UCX. If the user has limited the ports, hocket selects a free port for UCX. UCX itself
// would try ports at random, and would loop forever if no port is free.
void Fabric::start(const FabricOptions& options) {
  const base::PortRange ports = options.listening.ports;
  if (!ports.is_set() || base::environment("UCX_TCP_PORT_RANGE")) return start(options, 0);
  os::use_free_port(ports, [&](int port) {
    try {
      start(options, port);
      return true;
    } catch (const Error&) {
      if (os::is_port_free(port)) throw;
      return false;  // another program has taken the port meanwhile
    }
  });
}

void Fabric::start(const FabricOptions& options, int port) {
  try {
    start_unguarded(options, port);
  } catch (...) {
    stop();
    throw;
  }
}

void Fabric::start_unguarded(const FabricOptions& options, int port) {
  const auto require = [this](UcsStatus status, const char* what) {
    if (status != UcsStatus::kOk) refuse(what, status);
  };
  Config config = nullptr;
  require(library_->config_read(nullptr, nullptr, &config), "read its configuration");
  const auto set = [&](std::initializer_list<const char*> names, const std::string& value) {
    for (const char* name : names) {
      if (library_->config_modify(config, name, value.c_str()) == UcsStatus::kOk) return;
    }
    base::log(base::LogLevel::kWarning,
              fmt::format("UCX does not take {}={}", *names.begin(), value));
  };
  const bool chosen = base::environment("UCX_TLS").has_value();
  // UCX must not use shared memory: it could not notice the end of a peer, and ranks of one host
  // have a faster engine.
  if (!chosen) set({"TLS"}, options.gpus ? "^sm" : "^sm,cuda_copy,cuda_ipc,gdr_copy");
  // Let all messages use rendezvous, because UCX copies eager messages of GPUs' memory with calls
  // that wait for the GPU's default stream.
  if (options.gpus && !base::environment("UCX_RNDV_THRESH")) set({"RNDV_THRESH"}, "0");
  const std::string devices = devices_for(options.listening);
  if (!devices.empty()) set({"NET_DEVICES"}, devices);
  // Old versions of UCX expect the setting of a transport without the transport's name as a prefix.
  // They warn if no transport in use has the setting. New versions require the prefix.
  if (!chosen && !base::environment("UCX_TCP_RX_SEG_SIZE")) {
    set({"RX_SEG_SIZE", "TCP_RX_SEG_SIZE"}, std::to_string(kReceivedAtOnce));
    // UCX 1.13 to 1.19 ends the process by an assertion if a connection breaks while TCP sends
    // directly from an array. So let TCP send from a copy. This takes no more time, because the
    // copy stays in the caches.
    if (!options.gpus && infiniband_devices().empty() && !base::environment("UCX_ZCOPY_THRESH") &&
        !base::environment("UCX_TCP_TX_SEG_SIZE")) {
      set({"TX_SEG_SIZE", "TCP_TX_SEG_SIZE"}, std::to_string(kReceivedAtOnce));
      set({"ZCOPY_THRESH"}, "inf");
    }
  }
  if (port != 0) set({"PORT_RANGE", "TCP_PORT_RANGE"}, fmt::format("{0}-{0}", port));
  const base::SignalsBlocked blocked;  // for UCX's own thread: signals belong to the program
  const ContextParams context;
  const UcsStatus made = library_->init_version(1, 12, &context, config, &context_);
  library_->config_release(config);
  require(made, "start");
  ContextAttributes attributes;
  require(library_->context_query(context_, &attributes), "say what memory it knows");
  knows_gpus_ = (attributes.memory_types >> static_cast<int>(UcsMemoryType::kCuda) & 1) != 0;
  const WorkerParams worker;
  require(library_->worker_create(context_, &worker, &worker_), "make a worker");
  require(library_->worker_get_efd(worker_, &event_fd_), "tell when messages come");
  AmHandlerParam handler;
  handler.id = kMessageId;
  handler.callback = &Fabric::on_message;
  handler.argument = this;
  require(library_->worker_set_am_recv_handler(worker_, &handler), "take active messages");
}

// Ends UCX if all connections can be closed. UCX crashes if it closes a connection that is still
// being set up, that has broken, or that leads to a dead rank. If there is such a connection, or if
// the GPU's context no longer exists, UCX is not ended. It then keeps its memory until the process
// ends.
Fabric::~Fabric() {
  fate_ = nullptr;
  const CurrentDevice current(device_);
  if (!current.is_current() || retired_ || knows_lost_ || !flush_all(Deadline::in(kGrace))) {
    new std::shared_ptr<const cuda::DeviceContext>(device_);
    return;
  }
  for (void* drain : std::exchange(drains_, {})) library_->request_cancel(worker_, drain);
  library_->worker_destroy(worker_);
  library_->cleanup(context_);
}

std::vector<std::byte> Fabric::address() const {
  Address* address = nullptr;
  std::size_t length = 0;
  const UcsStatus status = library_->worker_get_address(worker_, &address, &length);
  if (status != UcsStatus::kOk) refuse("tell its address", status);
  const auto* bytes = reinterpret_cast<const std::byte*>(address);
  std::vector<std::byte> result(bytes, bytes + length);
  library_->worker_release_address(worker_, address);
  return result;
}

void Fabric::meet(std::vector<std::vector<std::byte>> addresses) {
  const std::lock_guard lock(mutex_);
  peers_.resize(addresses.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) peers_[i].address = std::move(addresses[i]);
}

void Fabric::introduce(std::size_t world,
                       std::span<const int> ranks,
                       std::span<const std::vector<std::byte>> addresses) {
  const std::lock_guard lock(mutex_);
  if (peers_.empty()) peers_.resize(world);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Peer& peer = peers_.at(static_cast<std::size_t>(ranks[i]));
    if (peer.address.empty()) peer.address = addresses[i];
  }
}

// --- Moving -------------------------------------------------------------------------------------

bool Fabric::arm() noexcept {
  const std::lock_guard lock(mutex_);
  if (retired_) return true;
  if (poll()) return false;
  return library_->worker_arm(worker_) == UcsStatus::kOk;
}

bool Fabric::progress() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  // If another thread holds the lock, that thread moves everything.
  return lock && poll();
}

bool Fabric::poll() noexcept {
  if (retired_) return false;
  bool moved = false;
  for (int i = 0; i < 64 && !came_ && library_->worker_progress(worker_) != 0; ++i) moved = true;
  if (std::exchange(closes_, false)) close_broken();
  for (const auto& [rank, header] : std::exchange(answers_, {})) send(rank, header, {});
  if (came_) {
    came_ = false;
    if (wake_) wake_();
  }
  return moved;
}

bool Fabric::wait_for(StatusPointer request, Deadline deadline) noexcept {
  if (request == nullptr || error_in(request) != UcsStatus::kOk) return true;
  bool done = false;
  while (!(done = library_->request_check_status(request) != UcsStatus::kInProgress) &&
         !deadline.has_passed()) {
    poll();
  }
  library_->request_free(request);
  return done;
}

Fate Fabric::fate(std::size_t rank) const noexcept {
  return fate_ ? fate_(static_cast<int>(rank)) : Fate::kHere;
}

bool Fabric::flush(Deadline deadline) noexcept {
  const CurrentDevice current(device_);
  const std::lock_guard lock(mutex_);
  if (retired_) return false;
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    knows_lost_ = knows_lost_ || is_lost(fate(rank));
  }
  return knows_lost_ ? flush_living(deadline) : flush_all(deadline);
}

bool Fabric::flush_all(Deadline deadline) noexcept {
  const RequestParam plain{};
  return wait_for(library_->worker_flush_nbx(worker_, &plain), deadline);
}

// Flushes only the connections to living ranks. UCX 1.13 ends the process by an assertion when it
// flushes a connection whose peer no longer answers.
bool Fabric::flush_living(Deadline deadline) noexcept {
  const RequestParam plain{};
  for (std::size_t rank = 0; rank < peers_.size(); ++rank) {
    const Peer& peer = peers_[rank];
    if (peer.endpoint == nullptr || peer.broken || is_lost(fate(rank))) continue;
    wait_for(library_->ep_flush_nbx(peer.endpoint, &plain), deadline);
  }
  return false;
}

void Fabric::retire() noexcept {
  const std::lock_guard lock(mutex_);
  retired_ = true;
}

bool Fabric::try_retire() noexcept {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (lock) retired_ = true;
  return lock.owns_lock();
}

// --- Connections --------------------------------------------------------------------------------

Endpoint Fabric::endpoint(int rank) {
  Peer& peer = peers_.at(static_cast<std::size_t>(rank));
  if (peer.endpoint != nullptr || peer.broken) return peer.broken ? nullptr : peer.endpoint;
  EndpointParams params;
  params.address = reinterpret_cast<const Address*>(peer.address.data());
  params.error_handler = &Fabric::on_error;
  params.error_argument = this;
  const UcsStatus status = library_->ep_create(worker_, &params, &peer.endpoint);
  if (status == UcsStatus::kOk) return peer.endpoint;
  peer.endpoint = nullptr;
  peer.broken = true;
  peer.why_broken = library_->status_string(status);
  base::log(base::LogLevel::kWarning,
            fmt::format("UCX has no way to rank {}: {}", rank, peer.why_broken));
  note_broken(static_cast<std::size_t>(rank));
  return nullptr;
}

void Fabric::try_ways(int own_rank, std::span<const int> ranks) {
  const std::lock_guard lock(mutex_);
  MessageHeader header;
  header.type = PacketType::kTrial;
  header.source = own_rank;
  for (const int rank : ranks) {
    Peer& peer = peers_.at(static_cast<std::size_t>(rank));
    peer.is_on_trial = !std::exchange(peer.was_heard, false);
    hand_over(rank, take_outgoing(header), {}, trials_left_);
  }
}

bool Fabric::are_ways_tried() {
  const std::lock_guard lock(mutex_);
  poll();
  const auto waits = [](const Peer& peer) { return peer.is_on_trial && !peer.broken; };
  return std::ranges::none_of(peers_, waits) && *trials_left_ == 0;
}

std::string Fabric::why_unreachable(int rank) {
  const std::lock_guard lock(mutex_);
  endpoint(rank);
  return peers_[static_cast<std::size_t>(rank)].why_broken;
}

bool Fabric::is_on_trial(int rank) {
  const std::lock_guard lock(mutex_);
  return peers_[static_cast<std::size_t>(rank)].is_on_trial;
}

bool Fabric::is_broken(int rank) noexcept {
  const std::lock_guard lock(mutex_);
  const auto peer = static_cast<std::size_t>(rank);
  return peer < peers_.size() && peers_[peer].broken;
}

void Fabric::on_error(void* argument, Endpoint endpoint, UcsStatus status) noexcept {
  auto& self = *static_cast<Fabric*>(argument);
  for (std::size_t rank = 0; rank < self.peers_.size(); ++rank) {
    Peer& peer = self.peers_[rank];
    if (peer.endpoint != endpoint) continue;
    peer.broken = peer.to_close = self.closes_ = true;
    if (peer.is_on_trial) peer.why_broken = self.library_->status_string(status);
    self.note_broken(rank);
  }
}

void Fabric::note_broken(std::size_t rank) {
  broken_.push_back(static_cast<int>(rank));
  knows_lost_ = knows_lost_ || fate(rank) != Fate::kLeft;
  if (help_) help_();
}

std::vector<int> Fabric::take_broken() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return {};  // the caller asks again later
  return std::exchange(broken_, {});
}

// Closes the connections that have broken. It must not run in a callback of UCX.
void Fabric::close_broken() noexcept {
  for (Peer& peer : peers_) {
    if (!peer.to_close) continue;
    peer.to_close = false;
    RequestParam force;
    force.mask = RequestParam::kFlags;
    force.flags = RequestParam::kCloseForce;
    const StatusPointer request =
        library_->ep_close_nbx(std::exchange(peer.endpoint, nullptr), &force);
    if (request != nullptr && error_in(request) == UcsStatus::kOk) library_->request_free(request);
  }
}

// --- Out ----------------------------------------------------------------------------------------

// Returns the parameters of a request, with the kind of memory. Otherwise UCX would ask the driver
// for the kind with every message.
RequestParam Fabric::param_for(MemoryKind memory) const noexcept {
  RequestParam param;
  param.mask = RequestParam::kCallback | RequestParam::kUserData | RequestParam::kMemoryType;
  const bool of_gpu = memory == MemoryKind::kCuda && knows_gpus_;
  param.memory_type = of_gpu ? UcsMemoryType::kCuda : UcsMemoryType::kHost;
  return param;
}

std::unique_ptr<Fabric::Outgoing> Fabric::take_outgoing(const MessageHeader& header) {
  std::unique_ptr<Outgoing> taken;
  if (free_.empty()) {
    taken = std::make_unique<Outgoing>();
    taken->fabric = this;
  } else {
    taken = std::move(free_.back());
    free_.pop_back();
  }
  taken->header = header;
  return taken;
}

void Fabric::on_sent(void* request, UcsStatus, void* user_data) noexcept {
  std::unique_ptr<Outgoing> done(static_cast<Outgoing*>(user_data));
  Fabric& self = *done->fabric;
  self.library_->request_free(request);
  self.unsent_.fetch_sub(1, std::memory_order_relaxed);
  if (const Count left = std::move(done->left); left && --*left == 0) self.came_ = true;
  if (self.free_.size() < kMostFree) self.free_.push_back(std::move(done));
}

// Sends a short message without a copy of our own. Returns false if UCX has no room for it now; the
// caller then copies the message and sends it later. In all other cases returns true: UCX has sent
// or copied the message, or the connection has failed and the message is dropped.
bool Fabric::send_at_once(int rank,
                          const MessageHeader& header,
                          std::span<const std::byte> payload) {
  const Endpoint to = retired_ ? nullptr : endpoint(rank);
  if (to == nullptr) return true;  // the message is dropped
  RequestParam param;
  param.mask = RequestParam::kFlags | RequestParam::kMemoryType | RequestParam::kAtOnce;
  param.flags = RequestParam::kAmEager;
  param.memory_type = UcsMemoryType::kHost;
  const StatusPointer sent = library_->am_send_nbx(
      to, kMessageId, &header, sizeof(header), payload.data(), payload.size(), &param);
  return error_in(sent) != UcsStatus::kNoResource;
}

// Sends immediately, with one exception. While UCX delivers a message, an answer that needs a new
// connection is put off until the delivery has ended. The reason: the new connection would take
// over the connection from which UCX is reading, with the rest of the data. UCX 1.13 crashes when
// it continues with this data.
void Fabric::send(int rank, const MessageHeader& header, std::span<const std::byte> payload) {
  if (delivers_ && payload.empty() &&
      peers_.at(static_cast<std::size_t>(rank)).endpoint == nullptr) {
    answers_.emplace_back(rank, header);
    return;
  }
  if (payload.size() <= kMostAtOnce && send_at_once(rank, header, payload)) return;
  auto outgoing = take_outgoing(header);
  outgoing->payload.assign(payload.begin(), payload.end());
  const std::span<const std::byte> copy = outgoing->payload;
  hand_over(rank, std::move(outgoing), copy, {});
}

void Fabric::send_in_place(int rank,
                           const MessageHeader& header,
                           std::span<const std::byte> payload,
                           const Count& left) {
  hand_over(rank, take_outgoing(header), payload, left);
}

// Gives a message to UCX, which then owns `outgoing` until `on_sent`. `left` counts the message
// until then.
void Fabric::hand_over(int rank,
                       std::unique_ptr<Outgoing> outgoing,
                       std::span<const std::byte> payload,
                       const Count& left) {
  const Endpoint to = retired_ ? nullptr : endpoint(rank);
  StatusPointer request = nullptr;
  if (to != nullptr) {
    RequestParam param = param_for(MemoryKind::kHost);
    param.mask |= RequestParam::kFlags;
    param.flags = RequestParam::kAmEager;
    param.callback.sent = &Fabric::on_sent;
    param.user_data = outgoing.get();
    request = library_->am_send_nbx(to,
                                    kMessageId,
                                    &outgoing->header,
                                    sizeof(MessageHeader),
                                    payload.data(),
                                    payload.size(),
                                    &param);
  }
  if (request != nullptr && error_in(request) == UcsStatus::kOk) {
    if (left) ++*left;
    outgoing->left = left;
    static_cast<void>(outgoing.release());  // on_sent owns it now
    if (unsent_.fetch_add(1, std::memory_order_relaxed) == 0 && help_) help_();
  } else if (free_.size() < kMostFree) {
    free_.push_back(std::move(outgoing));
  }
}

}  // namespace hocket::engines::ucx
