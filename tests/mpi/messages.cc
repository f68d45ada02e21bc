// engines::mpi::MpiMessages between two ranks, on host memory: what it leaves in MPI's hands, and
// for how long. Run by each MPI's mpirun, whose name is the argument.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engines/mpi/mpi_messages.h"
#include "foundation/cuda/driver.h"
#include "hocket/error.h"

namespace {

using hocket::engine::Envelope;
using hocket::engine::EnvelopeMismatch;
using hocket::engine::MessageId;
using hocket::engines::mpi::Comm;
using hocket::engines::mpi::MpiLibrary;
using hocket::engines::mpi::MpiMessages;
using Bytes = std::vector<std::byte>;

int own_rank = 0;

void check(bool condition, const std::string& what) {
  if (condition) return;
  std::printf("rank %d: wrong: %s\n", own_rank, what.c_str());
  std::fflush(stdout);
  std::_Exit(1);  // mpirun ends the other one
}

void wait_for(const std::function<bool()>& condition, const std::string& what) {
  // The other rank needs a processor too, and there may be only one for all.
  constexpr int kPolls = 20;
  constexpr auto kPause = std::chrono::microseconds(50);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (int polls = 0; !condition(); ++polls) {
    check(std::chrono::steady_clock::now() < until, what + " does not come");
    if (polls >= kPolls) std::this_thread::sleep_for(kPause);
  }
}

// Two ranks that have messages of their own for each scene, and others to keep in step by.
class Scene {
 public:
  explicit Scene(const Comm& world) : world_(world), steps_(make(), 2, nullptr) {}

  int peer() const { return 1 - own_rank; }
  // Collective. In a communicator of their own: who goes takes what words there are.
  std::unique_ptr<MpiMessages> messages(std::shared_ptr<void> memory = nullptr) const {
    return std::make_unique<MpiMessages>(make(), 2, std::move(memory));
  }
  // As calls of MPI by anybody do.
  void look_at_what_was_given_up() {
    steps_.progress();
    MpiLibrary::sweep();
  }
  // Both have come here.
  void step() {
    std::byte in{};
    std::byte out{};
    const MessageId ids[] = {steps_.recv(envelope(0, 1), {&in, 1}),
                             steps_.send(envelope(0, 1), {&out, 1})};
    for (const MessageId id : ids) finish(steps_, id);
  }
  Envelope envelope(hocket::engine::Tag tag, std::size_t count) const {
    return {.peer = peer(), .tag = tag, .count = count};
  }
  static void finish(MpiMessages& messages, MessageId id) {
    wait_for(
        [&] {
          messages.progress();
          return messages.test(id, nullptr);
        },
        "a message");
  }

 private:
  std::shared_ptr<Comm> make() const {
    return world_.library().create(world_, std::array{0, 1}, 5);
  }
  const Comm& world_;
  MpiMessages steps_;
};

// The messages of a test, and their memory, which MPI may use for longer.
class Loan {
 public:
  Loan(Scene& scene, Bytes bytes)
      : scene_(scene),
        memory_(std::make_shared<Bytes>(std::move(bytes))),
        watched_(memory_),
        messages_(scene.messages(memory_)) {}

  MpiMessages* operator->() const { return messages_.get(); }
  MpiMessages& messages() const { return *messages_; }
  Bytes& memory() const { return *memory_; }
  std::span<std::byte> first(std::size_t bytes) const { return std::span(*memory_).first(bytes); }
  // Their owner has gone.
  void give_up() {
    messages_.reset();
    memory_.reset();
  }
  bool is_back() const { return watched_.expired(); }
  void await_return(const std::string& what) const {
    wait_for(
        [this] {
          scene_.look_at_what_was_given_up();
          return is_back();
        },
        what);
  }

 private:
  Scene& scene_;
  std::shared_ptr<Bytes> memory_;
  std::weak_ptr<Bytes> watched_;
  std::unique_ptr<MpiMessages> messages_;
};

Bytes values(int rank, std::size_t size, int seed) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i) {
    bytes[i] = static_cast<std::byte>(rank * 101 + seed * 17 + static_cast<int>(i % 249));
  }
  return bytes;
}

// Whichever side comes first, in the order of each tag.
void messages_arrive(Scene& scene) {
  const auto messages = scene.messages();
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{5000}, std::size_t{3} << 20}) {
    for (int first = 0; first < 2; ++first) {
      constexpr int kMany = 5;
      std::vector<Bytes> out, in;
      std::vector<MessageId> ids;
      for (int i = 0; i < kMany; ++i) {
        out.push_back(values(own_rank, size, i));
        in.emplace_back(size);
      }
      const auto tag = [](int i) { return static_cast<hocket::engine::Tag>(7 + i % 2); };
      const auto receive = [&] {
        for (int i = 0; i < kMany; ++i) {
          const auto at = static_cast<std::size_t>(i);
          ids.push_back(messages->recv(scene.envelope(tag(i), size), in[at]));
        }
      };
      if (first == own_rank) receive();
      scene.step();
      for (int i = 0; i < kMany; ++i) {
        const auto at = static_cast<std::size_t>(i);
        ids.push_back(messages->send(scene.envelope(tag(i), size), out[at]));
      }
      if (first != own_rank) receive();
      for (const MessageId id : ids) Scene::finish(*messages, id);
      for (int i = 0; i < kMany; ++i) {
        check(in[static_cast<std::size_t>(i)] == values(scene.peer(), size, i), "what has come");
      }
    }
  }
}

// A receive that is called off: its memory stays until a send has met it.
void a_receive_keeps_its_memory(Scene& scene) {
  Loan loan(scene, Bytes(std::size_t{1} << 20));
  const Envelope envelope = scene.envelope(3, loan.memory().size());
  if (own_rank == 0) {
    scene.step();
    Scene::finish(loan.messages(), loan->send(envelope, loan.memory()));
    return;
  }
  loan->cancel(loan->recv(envelope, loan.memory()));
  bool refused = false;
  try {
    static_cast<void>(loan->send(envelope, loan.memory()));
  } catch (const hocket::DeviceError&) {
    refused = true;
  }
  check(refused, "a message after one that MPI still has");
  loan.give_up();
  scene.look_at_what_was_given_up();
  check(!loan.is_back(), "memory that MPI has is freed");
  scene.step();
  loan.await_return("the end of what MPI has");
}

// A send that its receiver never wanted was never MPI's.
void a_send_that_nobody_wants_is_forgotten(Scene& scene) {
  constexpr std::size_t kSize = 4 << 20;
  Loan loan(scene, values(own_rank, kSize, 1));
  if (own_rank == 0) {
    const MessageId sent = loan->send(scene.envelope(4, kSize), loan.memory());
    for (int i = 0; i < 100; ++i) {
      loan->progress();
      check(!loan->test(sent, nullptr), "a send has ended without a receive");
    }
    loan->cancel(sent);
  }
  scene.step();
  Bytes in(kSize);
  const MessageId ids[] = {loan->recv(scene.envelope(4, kSize), in),
                           loan->send(scene.envelope(4, kSize), loan.memory())};
  for (const MessageId id : ids) Scene::finish(loan.messages(), id);
  check(in == values(scene.peer(), kSize, 1), "what comes after it");
  loan.give_up();
  check(loan.is_back(), "memory that MPI never had is kept");
}

void lengths_are_compared(Scene& scene) {
  Loan loan(scene, Bytes(std::size_t{2} << 20));
  const std::size_t own = own_rank == 0 ? 1000 : 2000;
  const MessageId message = own_rank == 0 ? loan->send(scene.envelope(9, own), loan.first(own))
                                          : loan->recv(scene.envelope(9, own), loan.first(own));
  scene.step();
  bool told = false;
  wait_for(
      [&] {
        loan->progress();
        try {
          check(!loan->test(message, nullptr), "a message has ended that does not fit");
        } catch (const EnvelopeMismatch& error) {
          told = error.expected.count == own && error.received.count == 3000 - own &&
                 error.received.peer == scene.peer();
          return true;
        }
        return false;
      },
      "the refusal");
  check(told, "what the two sides have");
  scene.step();
  loan->cancel(message);
  loan.give_up();
  loan.await_return("the end of what nobody sends");
}

// A receiver that goes without having looked, when the sender has refused already: it is withdrawn.
void who_goes_looks_for_refusals(Scene& scene) {
  Loan loan(scene, Bytes(std::size_t{2} << 20));
  if (own_rank == 0) {
    const MessageId sent = loan->send(scene.envelope(9, 1000), loan.first(1000));
    scene.step();
    for (int i = 0; i < 100; ++i) loan->progress();
    loan->cancel(sent);
    scene.step();
  } else {
    static_cast<void>(loan->recv(scene.envelope(9, 2000), loan.first(2000)));
    scene.step();
    scene.step();
  }
  loan.give_up();
  loan.await_return("the end of what nobody sends");
}

// MPICH has 2048 communicators at once.
constexpr int kMoreThanThereAre = 2100;

// A message that never ends keeps its own communicator, and no other.
void other_communicators_are_freed(const Comm& world) {
  MpiLibrary& library = world.library();
  const auto create = [&] { return library.create(world, std::array{0, 1}, 5); };
  auto kept = create();
  auto memory = std::make_shared<Bytes>(std::size_t{1} << 20);
  {
    MpiMessages messages(kept, 2, memory);
    const MessageId wanted = messages.recv({.peer = 1 - own_rank, .tag = 3, .count = 1}, *memory);
    messages.cancel(wanted);
  }
  kept.reset();
  for (int i = 0; i < kMoreThanThereAre; ++i) static_cast<void>(create());
}

// A communicator is freed when its message ends, even long after its last user has gone.
void what_ends_late_frees_its_communicator(Scene& scene) {
  const auto memory = std::make_shared<Bytes>(std::size_t{100});
  const Envelope envelope = scene.envelope(3, memory->size());
  for (int i = 0; i < kMoreThanThereAre; ++i) {
    auto messages = scene.messages(memory);
    if (own_rank == 1) {
      messages->cancel(messages->recv(envelope, *memory));
      messages.reset();
    }
    scene.step();
    if (own_rank == 0) Scene::finish(*messages, messages->send(envelope, *memory));
    scene.step();  // MPI also progresses the waiting message
  }
}

// MPI's end may move GPUs' memory, too.
std::atomic<int> made_current{0};
hocket::cuda::Result (*push)(hocket::cuda::Context) = nullptr;
int made_current_before_the_end = 0;

void check_the_end() {
  if (push == nullptr) return;  // there is no driver here
  check(made_current > made_current_before_the_end, "MPI has ended without the GPU's context");
}

void use_a_gpu(MpiLibrary& library) {
  const auto found = hocket::cuda::Driver::find();
  if (!found.driver || found.driver->devices() == 0) return;
  auto& driver = const_cast<hocket::cuda::Driver&>(*found.driver);
  push = std::exchange(driver.ctx_push_current, [](hocket::cuda::Context context) {
    ++made_current;
    return push(context);
  });
  library.use(std::make_shared<hocket::cuda::DeviceContext>(found.driver, 0));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  const auto found = MpiLibrary::load(name == "openmpi" ? "Open MPI" : "MPICH");
  if (!found.library) {
    std::printf("%s\n", found.why_not.c_str());
    return 1;
  }
  MpiLibrary& library = *found.library;
  check(MpiLibrary::load(name == "openmpi" ? "Open MPI" : "MPICH").library == found.library,
        "a process has more than one, whose calls would not take turns");
  std::atexit(&check_the_end);  // after what `start` leaves for the end
  library.start();
  std::atexit([] { made_current_before_the_end = made_current; });  // before that
  const auto world = library.world();
  int size = 0;
  library.place(*world, own_rank, size);
  check(size == 2, "it wants two ranks");
  {
    Scene scene(*world);
    messages_arrive(scene);
    a_send_that_nobody_wants_is_forgotten(scene);
    a_receive_keeps_its_memory(scene);
    lengths_are_compared(scene);
    who_goes_looks_for_refusals(scene);
    what_ends_late_frees_its_communicator(scene);
    scene.step();
  }
  other_communicators_are_freed(*world);
  use_a_gpu(library);
  std::printf("rank %d is through\n", own_rank);
  return 0;
}
