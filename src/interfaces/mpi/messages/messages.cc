// Messages between two ranks, in all of MPI's modes.
#include "interfaces/mpi/messages/messages.h"

#include <algorithm>
#include <list>
#include <mutex>

#include "hocket/error.h"
#include "interfaces/mpi/entry.h"
#include "mpi_calls.h"

namespace hocket::mpi {

// Buffered sends. hocket copies the data itself. The program's buffer only limits their total size.
struct BufferedSends {
  std::mutex mutex;
  void* buffer = nullptr;
  std::int64_t size = 0, used = 0;
  bool automatic = false;
  struct One {
    std::shared_ptr<Comm> comm;  // the program may free it before the message has left
    Work work;
    std::shared_ptr<Bytes> bytes;
    std::int64_t held;
    std::uint64_t number;
  };
  std::uint64_t begun = 0;
  std::list<One> sends;

  // Removes the sends that have ended. The caller has the mutex.
  void reap() {
    sends.remove_if([&](One& one) {
      if (!one.work.test()) return false;
      used -= one.held;
      return true;
    });
  }
  std::uint64_t last() {
    const std::lock_guard lock(mutex);
    return begun;
  }
  // Returns whether the sends up to this number have ended.
  bool have_ended(std::uint64_t number) {
    const std::lock_guard lock(mutex);
    reap();
    return sends.empty() || sends.front().number > number;
  }
  bool has_any_of(const Comm& of) {
    const std::lock_guard lock(mutex);
    reap();
    return std::ranges::any_of(sends, [&](const One& one) { return one.comm.get() == &of; });
  }
};

namespace {

// Waits until `condition` returns true. It polls, so that meanwhile other threads can make calls.
template <typename Condition>
void poll(const Condition& condition) {
  for (int looks = 0; !condition(); ++looks) {
    if (looks < 100) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

enum class Mode { kStandard, kBuffered, kSynchronous };

void check_destination(const Comm& comm, int destination, int tag) {
  if (destination < 0 || destination >= static_cast<int>(comm.peers().members.size())) {
    fail(MPI_ERR_RANK,
         "dest is " + std::to_string(destination) + ", and there are " +
             std::to_string(comm.peers().members.size()) + " ranks");
  }
  if (tag < 0) fail(MPI_ERR_TAG, "tag is " + std::to_string(tag) + ", expected at least 0");
}

int source_in_net(const Comm& comm, int source) {
  if (source == MPI_ANY_SOURCE) return kAnySource;
  if (source < 0 || source >= static_cast<int>(comm.peers().members.size())) {
    fail(MPI_ERR_RANK,
         "source is " + std::to_string(source) + ", and there are " +
             std::to_string(comm.peers().members.size()) + " ranks");
  }
  return source + comm.first_peer();
}
int tag_in_net(int tag) {
  if (tag == MPI_ANY_TAG) return kAnyTag;
  if (tag < 0) fail(MPI_ERR_TAG, "tag is " + std::to_string(tag) + ", expected at least 0");
  return tag;
}

Outcome outcome_of(const Comm& comm, const Received& received) {
  return {
      .source = received.source - comm.first_peer(), .tag = received.tag, .bytes = received.count};
}

}  // namespace

void note_truncation(Outcome& outcome, std::int64_t room) {
  if (outcome.bytes <= static_cast<std::uint64_t>(room)) return;
  outcome.code = code_with_text(MPI_ERR_TRUNCATE,
                                "the message has " + std::to_string(outcome.bytes) +
                                    " bytes, and there is room for " + std::to_string(room));
  outcome.bytes = static_cast<std::uint64_t>(room);
}

namespace {

Outcome outcome_of(const Comm& comm, const Received& received, const Space& space) {
  space.take(received.count);
  Outcome outcome = outcome_of(comm, received);
  note_truncation(outcome, space.bytes);
  return outcome;
}

const std::shared_ptr<BufferedSends>& buffered_by_all() {
  static auto& made =  // NOLINT: it outlives what is destroyed
      *new std::shared_ptr<BufferedSends>(std::make_shared<BufferedSends>());
  return made;
}
BufferedSends& buffered() { return *buffered_by_all(); }
// Returns the send buffer of a communicator. If it has none, returns its session's, and else the
// process's.
BufferedSends& buffered(const Comm& comm) {
  if (comm.buffered != nullptr) return *comm.buffered;
  if (comm.session != nullptr && comm.session->buffered != nullptr) return *comm.session->buffered;
  return buffered();
}

void send_buffered(Comm& comm, Sent what, int destination, int tag) {
  BufferedSends& all = buffered(comm);
  const std::lock_guard lock(all.mutex);
  const std::int64_t needed = what.bytes + MPI_BSEND_OVERHEAD;
  all.reap();
  if (!all.automatic && all.used + needed > all.size) {
    fail(MPI_ERR_BUFFER,
         "the attached buffer has " + std::to_string(all.size - all.used) +
             " bytes left, and the message needs " + std::to_string(needed));
  }
  if (what.copy == nullptr) {
    what.copy = std::make_shared<Bytes>(what.data, what.data + what.bytes);
    what.data = what.copy->data();
  }
  const std::lock_guard starting(comm.starting);
  all.sends.push_back({comm.shared_from_this(),
                       comm.net->send_async(what.view(), destination, {.tag = tag}),
                       what.copy,
                       needed,
                       ++all.begun});
  all.used += needed;
}

// Waits until all buffered sends so far have ended.
void flush(BufferedSends& all) {
  poll([&all, last = all.last()] { return all.have_ended(last); });
}

// Makes a request for the same wait.
void flush_later(const std::shared_ptr<BufferedSends>& all,
                 MPI_Request* request,
                 const Scope& scope) {
  hand_out_polled(request, [all, last = all->last()] { return all->have_ended(last); }, scope);
}

Pending send(How how,
             const void* buf,
             MPI_Count count,
             MPI_Datatype datatype,
             int dest,
             int tag,
             MPI_Comm handle,
             Mode mode) {
  Comm& comm = comm_of(handle);
  const Datatype& type = type_of(datatype);
  if (dest == MPI_PROC_NULL) return {};
  check_destination(comm, dest, tag);
  Sent what = outgoing(buf, count, type);
  const int destination = dest + comm.first_peer();
  if (mode == Mode::kBuffered) {
    send_buffered(comm, std::move(what), destination, tag);
    return {};
  }
  const MessageOptions options{.tag = tag, .synchronous = mode == Mode::kSynchronous};
  if (is_direct(how)) {
    comm.net->send(what.view(), destination, options);
    return {};
  }
  Pending pending;
  const std::lock_guard lock(comm.starting);
  pending.work = comm.net->send_async(what.view(), destination, options);
  pending.waits = true;
  if (what.copy != nullptr) pending.finish = [kept = what.copy](Outcome&) {};
  return pending;
}

// The arguments of a receive, checked. A value.
struct Expected {
  int from;
  MessageOptions options;
  Space space;
};

Expected expect(
    Comm& comm, void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag) {
  return {.from = source_in_net(comm, source),
          .options = {.tag = tag_in_net(tag), .allow_shorter = true, .allow_longer = true},
          .space = incoming(buf, count, datatype)};
}

Pending recv(How how, Comm& comm, const Expected& expected) {
  const auto& [from, options, space] = expected;
  if (is_direct(how)) {
    return received_already(outcome_of(comm, comm.net->recv(space.view(), from, options), space));
  }
  Pending pending;
  pending.is_receive = true;
  {
    const std::lock_guard lock(comm.starting);
    pending.work = comm.net->recv_async(space.view(), from, options);
  }
  if (const auto received = pending.work.received()) {
    return received_already(outcome_of(comm, *received, space));
  }
  pending.waits = true;
  pending.when_received = [&comm, into = space](const Received& received, Outcome& outcome) {
    outcome = outcome_of(comm, received, into);
  };
  return pending;
}

}  // namespace

// Looks at each list that may have sends of the communicator, because a buffer may have been
// attached after they began.
void flush_sends_of(const Comm& comm) {
  for (const auto& all : {comm.buffered,
                          comm.session == nullptr ? nullptr : comm.session->buffered,
                          buffered_by_all()}) {
    if (all != nullptr) poll([&] { return !all->has_any_of(comm); });
  }
}

std::shared_ptr<Message> take_message(Comm& comm, int source, int tag, bool waits) {
  if (source == MPI_PROC_NULL) return process().messages.share(MPI_MESSAGE_NO_PROC);
  const int from = source_in_net(comm, source);
  const int wanted = tag_in_net(tag);
  for (;;) {
    {
      const std::lock_guard lock(comm.starting);
      if (const auto found = comm.net->probe_now(from, {.tag = wanted})) {
        auto made = std::make_shared<Message>();
        made->comm = shared_comm(comm.handle);
        made->bytes.resize(found->count);
        const Received received =
            comm.net->recv(ArrayView(made->bytes.data(), made->bytes.size(), DType::kUInt8),
                           found->source,
                           {.tag = found->tag});
        made->outcome = outcome_of(comm, received);
        return made;
      }
    }
    if (!waits) return nullptr;
    probe(comm, source, tag);
  }
}

Outcome probe(Comm& comm, int source, int tag) {
  const int from = source_in_net(comm, source);
  const MessageOptions options{.tag = tag_in_net(tag)};
  const auto told = [&](const Received& found) {
    return Outcome{
        .source = found.source - comm.first_peer(), .tag = found.tag, .bytes = found.count};
  };
  if (is_direct(How::kBlocking)) return told(comm.net->probe(from, options));
  std::optional<Received> found;
  poll([&] {
    const std::lock_guard lock(comm.starting);
    found = comm.net->probe_now(from, options);
    return found.has_value();
  });
  return told(*found);
}

}  // namespace hocket::mpi

namespace hocket::mpi::call {

Pending Send(How how,
             const void* buf,
             MPI_Count count,
             MPI_Datatype datatype,
             int dest,
             int tag,
             MPI_Comm comm) {
  return send(how, buf, count, datatype, dest, tag, comm, Mode::kStandard);
}
Pending Rsend(How how,
              const void* buf,
              MPI_Count count,
              MPI_Datatype datatype,
              int dest,
              int tag,
              MPI_Comm comm) {
  return send(how, buf, count, datatype, dest, tag, comm, Mode::kStandard);
}
Pending Ssend(How how,
              const void* buf,
              MPI_Count count,
              MPI_Datatype datatype,
              int dest,
              int tag,
              MPI_Comm comm) {
  return send(how, buf, count, datatype, dest, tag, comm, Mode::kSynchronous);
}
Pending Bsend(How how,
              const void* buf,
              MPI_Count count,
              MPI_Datatype datatype,
              int dest,
              int tag,
              MPI_Comm comm) {
  return send(how, buf, count, datatype, dest, tag, comm, Mode::kBuffered);
}
Pending Recv(How how,
             void* buf,
             MPI_Count count,
             MPI_Datatype datatype,
             int source,
             int tag,
             MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  if (source == MPI_PROC_NULL) return received_already(kFromNobody);
  return recv(how, comm, expect(comm, buf, count, datatype, source, tag));
}

// The receive is checked before the send begins. The send begins first, so that a short message has
// left before this rank waits for its own.
Pending Sendrecv(How how,
                 const void* sendbuf,
                 MPI_Count sendcount,
                 MPI_Datatype sendtype,
                 int dest,
                 int sendtag,
                 void* recvbuf,
                 MPI_Count recvcount,
                 MPI_Datatype recvtype,
                 int source,
                 int recvtag,
                 MPI_Comm handle) {
  Comm& comm = comm_of(handle);
  std::optional<Expected> expected;
  if (source != MPI_PROC_NULL) {
    expected = expect(comm, recvbuf, recvcount, recvtype, source, recvtag);
  }
  Pending sent =
      send(How::kImmediate, sendbuf, sendcount, sendtype, dest, sendtag, handle, Mode::kStandard);
  Pending both = expected ? recv(how, comm, *expected) : received_already(kFromNobody);
  if (is_direct(how)) {
    sent.wait();
    return both;
  }
  both.is_receive = false;
  if (sent.waits) both.others.push_back(std::move(sent.work));
  if (sent.finish) both.finish = std::move(sent.finish);
  return both;
}
Pending Sendrecv_replace(How how,
                         void* buf,
                         MPI_Count count,
                         MPI_Datatype datatype,
                         int dest,
                         int sendtag,
                         int source,
                         int recvtag,
                         MPI_Comm comm) {
  const Datatype& type = type_of(datatype);
  auto copy = std::make_shared<Bytes>(static_cast<std::size_t>(bytes_of(type, count)));
  if (!copy->empty()) type.pack(buf, count, copy->data());
  Pending both = Sendrecv(how,
                          copy->data(),
                          static_cast<MPI_Count>(copy->size()),
                          MPI_BYTE,
                          dest,
                          sendtag,
                          buf,
                          count,
                          datatype,
                          source,
                          recvtag,
                          comm);
  both.finish = [copy](Outcome&) {};
  return both;
}

void Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  Comm& c = comm_of(comm);
  fill(status, source == MPI_PROC_NULL ? kFromNobody : probe(c, source, tag));
}
void Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  Comm& c = comm_of(comm);
  *flag = 1;
  if (source == MPI_PROC_NULL) return fill(status, kFromNobody);
  const int from = source_in_net(c, source);
  const std::lock_guard lock(c.starting);
  const auto found = c.net->probe_now(from, {.tag = tag_in_net(tag)});
  *flag = found.has_value();
  if (!found) return;
  fill(status,
       {.source = found->source - c.first_peer(), .tag = found->tag, .bytes = found->count});
}

namespace {
void hand_out_message(const std::shared_ptr<Message>& taken,
                      MPI_Message* message,
                      MPI_Status* status) {
  fill(status, taken->is_null ? kFromNobody : taken->outcome);
  *message = taken->is_null ? MPI_MESSAGE_NO_PROC : process().messages.add(taken);
}
}  // namespace

void Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  hand_out_message(take_message(comm_of(comm), source, tag, true), message, status);
}
void Improbe(
    int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status) {
  const auto taken = take_message(comm_of(comm), source, tag, false);
  *flag = taken != nullptr;
  if (taken == nullptr) {
    *message = MPI_MESSAGE_NULL;
    return;
  }
  hand_out_message(taken, message, status);
}
Pending Mrecv(How, void* buf, MPI_Count count, MPI_Datatype datatype, MPI_Message* message) {
  auto taken = process().messages.share(*message);
  require(taken != nullptr, MPI_ERR_REQUEST, "message is none");
  process().messages.remove(*message);
  *message = MPI_MESSAGE_NULL;
  if (taken->is_null) return received_already(kFromNobody);
  const Datatype& type = type_of(datatype);
  const std::int64_t room = bytes_of(type, count);
  Outcome outcome = taken->outcome;
  note_truncation(outcome, room);
  if (outcome.bytes > 0) {
    type.unpack_part(taken->bytes.data(), 0, static_cast<std::int64_t>(outcome.bytes), buf);
  }
  return received_already(outcome);
}

// --- The buffer of buffered sends ----------------------------------------------------------------

namespace {
void attach(BufferedSends& all, void* buffer, std::int64_t size) {
  const std::lock_guard lock(all.mutex);
  require(all.buffer == nullptr && !all.automatic, MPI_ERR_BUFFER, "a buffer is attached already");
  require(size >= 0, MPI_ERR_ARG, "size is negative");
  all.automatic = buffer == MPI_BUFFER_AUTOMATIC;
  all.buffer = all.automatic ? nullptr : buffer;
  all.size = size;
}
void detach(BufferedSends& all, void* buffer_addr, CountOut size) {
  flush(all);
  const std::lock_guard lock(all.mutex);
  *static_cast<void**>(buffer_addr) = all.automatic ? MPI_BUFFER_AUTOMATIC : all.buffer;
  size = all.automatic ? 0 : all.size;
  all.buffer = nullptr;
  all.size = 0;
  all.automatic = false;
}
// Returns the send buffer that is attached to a communicator or a session.
template <typename Object>
const std::shared_ptr<BufferedSends>& attached(Object& of) {
  require(of.buffered != nullptr, MPI_ERR_BUFFER, "no buffer is attached to it");
  return of.buffered;
}
template <typename Object>
void attach_to(Object& of, void* buffer, std::int64_t size) {
  require(of.buffered == nullptr, MPI_ERR_BUFFER, "it has a buffer attached already");
  auto made = std::make_shared<BufferedSends>();
  attach(*made, buffer, size);
  of.buffered = std::move(made);
}
template <typename Object>
void detach_from(Object& of, void* buffer_addr, CountOut size) {
  detach(*attached(of), buffer_addr, size);
  of.buffered = nullptr;
}
}  // namespace

void Buffer_attach(void* buffer, MPI_Count size) { attach(buffered(), buffer, size); }
void Buffer_detach(void* buffer_addr, CountOut size) { detach(buffered(), buffer_addr, size); }
void Buffer_flush() { flush(buffered()); }
void Buffer_iflush(MPI_Request* request) { flush_later(buffered_by_all(), request, {}); }
void Comm_attach_buffer(MPI_Comm comm, void* buffer, MPI_Count size) {
  attach_to(comm_of(comm), buffer, size);
}
void Comm_detach_buffer(MPI_Comm comm, void* buffer_addr, CountOut size) {
  detach_from(comm_of(comm), buffer_addr, size);
}
void Comm_flush_buffer(MPI_Comm comm) { flush(*attached(comm_of(comm))); }
void Comm_iflush_buffer(MPI_Comm comm, MPI_Request* request) {
  flush_later(attached(comm_of(comm)), request, Scope{comm});
}
void Session_attach_buffer(MPI_Session session, void* buffer, MPI_Count size) {
  attach_to(session_of(session), buffer, size);
}
void Session_detach_buffer(MPI_Session session, void* buffer_addr, CountOut size) {
  detach_from(session_of(session), buffer_addr, size);
}
void Session_flush_buffer(MPI_Session session) { flush(*attached(session_of(session))); }
void Session_iflush_buffer(MPI_Session session, MPI_Request* request) {
  flush_later(attached(session_of(session)), request, Scope{.session = session});
}

}  // namespace hocket::mpi::call
