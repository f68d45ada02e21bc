#include "interfaces/cli/bench/team.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>

#include "interfaces/cli/run/environment_block.h"

namespace hocket::cli::bench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// Time that ranks get to leave by themselves before they are killed.
constexpr auto kGrace = std::chrono::seconds(5);
// Time that a library may take to start, even if its limit for answers is shorter.
constexpr auto kLongestStart = std::chrono::seconds(60);
// Bytes of a failed library's output that are shown.
constexpr std::size_t kTailBytes = 2000;

milliseconds until(Clock::time_point end) {
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(end - Clock::now()));
}

// Waits until one of `entries` is ready. Throws Interrupted. False when time ran out.
bool wait_for_any(std::vector<pollfd>& entries, const Interrupts& interrupts, milliseconds time) {
  entries.push_back({interrupts.fd(), POLLIN, 0});
  const int ready = ::poll(entries.data(), entries.size(), static_cast<int>(time.count()));
  const bool interrupted = ready > 0 && entries.back().revents != 0;
  entries.pop_back();
  if (interrupted) interrupts.raise();
  if (ready < 0 && errno != EINTR) throw SystemError("cannot wait for the ranks", errno);
  return ready > 0;
}

Fd open_process(pid_t pid) { return Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))); }

void kill_process(const Fd& process) {
  if (process.valid()) ::syscall(SYS_pidfd_send_signal, process.get(), SIGKILL, nullptr, 0);
}

std::string describe_exit(int status) {
  if (WIFSIGNALED(status)) return fmt::format("was ended by signal {}", WTERMSIG(status));
  return fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

// Runs between fork and exec, so it must not allocate.
[[noreturn]] void become(char* const* arguments,
                         char* const* environment,
                         int output,
                         const sigset_t& mask,
                         pid_t parent) {
  // Makes a separate process group. So Ctrl-C at the terminal reaches only the command, which ends
  // all ranks.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  ::execve(arguments[0], arguments, environment);
  ::_exit(127);
}

}  // namespace

Interrupts::Interrupts() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&wanted, signal);
  ::sigprocmask(SIG_BLOCK, &wanted, &before_);
  fd_ = checked_fd(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK), "cannot watch for signals");
}

Interrupts::~Interrupts() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

void Interrupts::raise() const {
  signalfd_siginfo info{};
  const ssize_t n = ::read(fd_.get(), &info, sizeof(info));
  throw Interrupted(n == sizeof(info) ? static_cast<int>(info.ssi_signo) : SIGINT);
}

Listener::Listener()
    : fd_(checked_fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                     "cannot make a socket")) {
  // If bind gets only the family, the kernel chooses a free abstract name.
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  if (::bind(fd_.get(), generic, sizeof(sa_family_t)) != 0 || ::listen(fd_.get(), 1024) != 0 ||
      ::getsockname(fd_.get(), generic, &length) != 0) {
    throw SystemError("cannot listen for the ranks", errno);
  }
  name_.assign(address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1);
  std::array<unsigned char, 16> secret{};
  if (::getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) {
    throw SystemError("cannot draw random bytes", errno);
  }
  for (const unsigned char byte : secret) token_ += fmt::format("{:02x}", byte);
}

std::vector<Listener::Guest> Listener::accept_waiting() const {
  std::vector<Guest> guests;
  for (;;) {
    const int fd = ::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0) return guests;
    Channel channel(fd);
    ucred owner{};
    socklen_t length = sizeof(owner);
    const bool known = ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &owner, &length) == 0;
    if (known && owner.uid == ::geteuid()) guests.push_back({std::move(channel), owner.pid});
  }
}

Team::Team(const Launch& launch,
           const TeamOptions& options,
           const Listener& listener,
           const Interrupts& interrupts)
    : library_(launch.library),
      options_(options),
      interrupts_(interrupts),
      output_(checked_fd(::memfd_create("hocket-bench-output", MFD_CLOEXEC),
                         "cannot make memory for a library's output")) {
  for (int rank = 0; rank < options_.ranks; ++rank) ranks_.emplace_back(-1);
  processes_.resize(ranks_.size());
  processors_.resize(ranks_.size());
  try {
    start(launch, listener);
    assemble(listener);
  } catch (...) {
    end_by_force();
    throw;
  }
}

Team::~Team() { end_gently(); }

void Team::start(const Launch& launch, const Listener& listener) {
  EnvironmentBlock environment = EnvironmentBlock::inherited();
  for (const auto& [name, value] : launch.environment) environment.set(name, value);
  environment.set(kSocketVariable, listener.name());
  environment.set(kTokenVariable, listener.token());
  std::vector<char*> arguments;
  for (const std::string& word : launch.arguments) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  const std::vector<char*> variables = environment.pointers();
  const pid_t self = ::getpid();
  launcher_ = ::fork();
  if (launcher_ < 0) throw SystemError("cannot start " + launch.arguments.front(), errno);
  if (launcher_ == 0) {
    become(arguments.data(), variables.data(), output_.get(), interrupts_.mask_before(), self);
  }
}

void Team::assemble(const Listener& listener) {
  const auto most = std::max(options_.timeout, kLongestStart);
  const auto end = Clock::now() + most;
  std::vector<Listener::Guest> guests;  // connections whose ranks have not reported yet
  int missing = options_.ranks;
  const Fd launcher = open_process(launcher_);
  while (missing > 0) {
    std::vector<pollfd> entries{{listener.fd(), POLLIN, 0}, {launcher.get(), POLLIN, 0}};
    for (const auto& guest : guests) entries.push_back({guest.channel.fd(), POLLIN, 0});
    if (!wait_for_any(entries, interrupts_, until(end)) && Clock::now() >= end) {
      fail(fmt::format("only {} of {} ranks were there after {} s (--timeout)",
                       options_.ranks - missing,
                       options_.ranks,
                       most.count()));
    }
    if (entries[1].revents != 0) {
      reap_launcher();
      fail(fmt::format("its launcher {} before all ranks were there",
                       describe_exit(launcher_status_)));
    }
    for (auto& guest : listener.accept_waiting()) guests.push_back(std::move(guest));
    std::erase_if(guests, [&](Listener::Guest& guest) {
      const bool open = guest.channel.receive();
      if (const auto line = guest.channel.take_line()) {
        take_guest(listener, guest, *line);
        --missing;
        return true;
      }
      return !open;
    });
  }
}

void Team::take_guest(const Listener& listener, Listener::Guest& guest, const std::string& line) {
  const Hello hello = parse_hello(line);
  if (hello.token != listener.token() || hello.library != library_) {
    fail(fmt::format("a process that is not of this benchmark reported (pid {})", guest.pid));
  }
  if (hello.ranks != options_.ranks || hello.rank < 0 || hello.rank >= hello.ranks ||
      ranks_[hello.rank].fd() >= 0) {
    fail(
        fmt::format("its launcher started rank {} of {}, wanted were {} ranks. Was the program "
                    "built with another MPI than its launcher's?",
                    hello.rank,
                    hello.ranks,
                    options_.ranks));
  }
  ranks_[hello.rank] = std::move(guest.channel);
  processes_[hello.rank] = open_process(guest.pid);
  processors_[hello.rank] = hello.processors;
  version_ = hello.version;
}

std::vector<Answer> Team::ask(const Request& request) {
  const std::string line = to_line(request);
  broken_ = true;
  try {
    for (Channel& rank : ranks_) rank.write_line(line);
  } catch (const std::exception&) {
    // A rank has ended. `ask` finds out which one.
  }
  std::vector<Answer> answers = gather_answers();
  broken_ = false;
  return answers;
}

std::vector<Answer> Team::gather_answers() {
  std::vector<Answer> answers(ranks_.size());
  std::vector<bool> answered(ranks_.size(), false);
  const auto end = Clock::now() + options_.timeout;
  for (std::size_t missing = ranks_.size(); missing > 0;) {
    std::vector<pollfd> entries;
    // poll passes over negative descriptors.
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      entries.push_back({answered[rank] ? -1 : ranks_[rank].fd(), POLLIN, 0});
    }
    if (!wait_for_any(entries, interrupts_, until(end)) && Clock::now() >= end) {
      const auto late = std::find(answered.begin(), answered.end(), false) - answered.begin();
      fail(fmt::format(
          "rank {} has not answered for {} s (--timeout)", late, options_.timeout.count()));
    }
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (entries[rank].revents == 0) continue;
      const bool open = ranks_[rank].receive();
      if (const auto text = ranks_[rank].take_line()) {
        answers[rank] = parse_answer(*text);
        answered[rank] = true;
        --missing;
      } else if (!open) {
        fail(fmt::format("rank {} has ended", rank));
      }
      if (answers[rank].outcome == Outcome::kFailed) {
        fail(fmt::format("rank {}: {}", rank, answers[rank].text));
      }
    }
  }
  return answers;
}

void Team::reap_launcher() {
  if (launcher_ < 0) return;
  while (::waitpid(launcher_, &launcher_status_, 0) < 0 && errno == EINTR) {
  }
  launcher_ = -1;
}

void Team::end_gently() {
  // Ranks that see their connection closed exit normally, and then the launcher does.
  ranks_.clear();
  if (launcher_ > 0 && !broken_) {
    const Fd process = open_process(launcher_);
    pollfd entry{process.get(), POLLIN, 0};
    const auto grace = std::chrono::duration_cast<milliseconds>(kGrace).count();
    if (::poll(&entry, 1, static_cast<int>(grace)) > 0) reap_launcher();
  }
  end_by_force();
}

void Team::end_by_force() {
  ranks_.clear();
  if (launcher_ > 0) {
    // Launchers pass SIGTERM on to ranks that have not reported yet.
    ::kill(launcher_, SIGTERM);
    for (const Fd& process : processes_) kill_process(process);
    const Fd process = open_process(launcher_);
    pollfd entry{process.get(), POLLIN, 0};
    if (::poll(&entry, 1, 2000) <= 0) ::kill(launcher_, SIGKILL);
    reap_launcher();
  }
  for (const Fd& process : processes_) kill_process(process);
}

void Team::fail(const std::string& what) const {
  const std::string tail = output_tail();
  throw TeamFailed(tail.empty() ? what : fmt::format("{}. It printed:\n{}", what, tail));
}

std::string Team::output_tail() const {
  const off_t size = ::lseek(output_.get(), 0, SEEK_END);
  if (size <= 0) return "";
  std::string text(std::min<std::size_t>(kTailBytes, static_cast<std::size_t>(size)), '\0');
  const ssize_t n =
      ::pread(output_.get(), text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace hocket::cli::bench
