#include "interfaces/cli/run/guardian.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <set>

#include "interfaces/cli/run/process_tree.h"
#include "interfaces/cli/run/rank_process.h"

namespace hocket::cli {
namespace {

// An order from the launcher to the guardian, one in each packet.
struct Order {
  enum class Kind : std::uint8_t { kStart, kSignal };
  Kind kind;
  bool from_terminal;
  int number;                   // kSignal: which; kStart: the number of ranks of the job
  std::array<char, 128> store;  // kStart
};

// The loop that runs in the guardian's process.
class GuardianLoop {
 public:
  GuardianLoop(LaunchPlan plan, Fd socket)
      : plan_(std::move(plan)), socket_(std::move(socket)), pids_(plan_.ranks.size(), -1) {}

  // Returns when all ranks have ended, or the launcher is gone.
  void run() {
    open_signals();
    while (!started_ || living_ > 0 || failures_.valid()) {
      std::array<pollfd, 3> wait{
          {{socket_.get(), POLLIN, 0}, {signals_.get(), POLLIN, 0}, {failures_.get(), POLLIN, 0}}};
      if (::poll(wait.data(), wait.size(), -1) < 0 && errno != EINTR) return end_everything();
      if (wait[0].revents != 0 && !take_order()) return end_everything();
      // Reports failed starts before ends, because one rank may cause both.
      if (wait[2].revents != 0) take_start_failure();
      if (wait[1].revents != 0) reap();
    }
    end_everything();
  }

 private:
  void open_signals() {
    sigset_t all;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);  // only the launcher's orders count here
    sigset_t children;
    ::sigemptyset(&children);
    ::sigaddset(&children, SIGCHLD);
    signals_ = Fd(::signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK));
  }

  void report(GuardianReport::Kind kind, int rank, int value) {
    const GuardianReport report{kind, rank, value};
    // If the launcher is gone, the loop notices it.
    [[maybe_unused]] const ssize_t sent =
        ::send(socket_.get(), &report, sizeof report, MSG_NOSIGNAL);
  }

  // Takes an order. Returns false if the launcher is gone.
  bool take_order() {
    Order order{};
    const ssize_t length = ::recv(socket_.get(), &order, sizeof order, 0);
    if (length < 0) return errno == EINTR;
    if (length != sizeof order) return false;
    if (order.kind == Order::Kind::kStart) {
      start(order.store.data(), order.number);
    } else {
      signal(order.number, order.from_terminal);
    }
    return true;
  }

  void start(const char* store, int size) {
    Pipe failures = make_pipe();
    // Duplicates the descriptor to a number above those that a rank inherits.
    const Fd lifted(::fcntl(failures.write.get(), F_DUPFD_CLOEXEC, 16));
    failures.write.reset();
    for (std::size_t index = 0; index < plan_.ranks.size(); ++index) {
      plan_.ranks[index].environment.set("HOCKET_STORE", store);
      plan_.ranks[index].environment.set("HOCKET_SIZE", std::to_string(size));
      const pid_t pid = start_rank(plan_, index, lifted.get());
      if (pid < 0) {
        report(GuardianReport::Kind::kNotStarted, plan_.ranks[index].rank, errno);
        continue;
      }
      pids_[index] = pid;
      ++living_;
      report(GuardianReport::Kind::kStarted, plan_.ranks[index].rank, pid);
    }
    for (RankPlan& rank : plan_.ranks) {
      for (Fd* fd : {&rank.in, &rank.out, &rank.err}) fd->reset();
    }
    plan_.key.reset();
    failures_ = std::move(failures.read);
    started_ = true;
  }

  void take_start_failure() {
    StartFailure failure{};
    if (::read(failures_.get(), &failure, sizeof failure) != sizeof failure) {
      failures_.reset();  // all have started
      return;
    }
    refused_.insert(failure.rank);
    report(GuardianReport::Kind::kNotStarted, failure.rank, failure.error_number);
  }

  void signal(int number, bool from_terminal) {
    for (std::size_t index = 0; index < pids_.size(); ++index) {
      if (pids_[index] < 0) continue;
      const bool own_group = plan_.ranks[index].own_process_group;
      if (own_group) {
        ::kill(-pids_[index], number);
      } else if (!from_terminal) {
        ::kill(pids_[index], number);
      }
    }
  }

  void reap() {
    signalfd_siginfo info{};
    while (::read(signals_.get(), &info, sizeof info) > 0) {
    }
    int status = 0;
    for (pid_t pid = 0; (pid = ::waitpid(-1, &status, WNOHANG)) > 0;) {
      for (std::size_t index = 0; index < pids_.size(); ++index) {
        if (pids_[index] == pid) ended(index, status);
      }
    }
  }

  void ended(std::size_t index, int status) {
    pids_[index] = -1;
    --living_;
    const int rank = plan_.ranks[index].rank;
    // A rank that fails because a peer died can often be reaped before that peer. The kernel takes
    // 45 ms a GiB to free a dead process's memory. So this reports which others are ending.
    if (status != 0 && !said_who_is_ending_) {
      said_who_is_ending_ = true;
      for (std::size_t other = 0; other < pids_.size(); ++other) {
        if (pids_[other] > 0 && is_ending(pids_[other])) {
          report(GuardianReport::Kind::kEnding, plan_.ranks[other].rank, 0);
        }
      }
    }
    if (!refused_.contains(rank)) report(GuardianReport::Kind::kEnded, rank, status);
  }

  void end_everything() { report(GuardianReport::Kind::kAllEnded, -1, kill_descendants()); }

  LaunchPlan plan_;
  Fd socket_;
  Fd signals_;
  Fd failures_;              // start failures; open until every rank has started
  std::vector<pid_t> pids_;  // by index in the plan; -1: not started, or reaped
  std::set<int> refused_;    // ranks whose program did not start
  int living_ = 0;
  bool started_ = false;
  bool said_who_is_ending_ = false;
};

[[noreturn]] void be_guardian(LaunchPlan plan, Fd socket) {
  ::prctl(PR_SET_NAME, "job-guardian", 0, 0, 0);
  ::setpgid(0, 0);  // the terminal's signals go to the launcher
  become_subreaper();
  int exit_code = 0;
  try {
    GuardianLoop(std::move(plan), std::move(socket)).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "hocket: the guardian failed: %s\n", error.what());
    kill_descendants();
    exit_code = 1;
  }
  ::_exit(exit_code);  // skips the exit handlers copied from the launcher
}

}  // namespace

Guardian::Guardian(LaunchPlan plan, const std::function<void()>& in_child) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw SystemError("cannot make the socket to the ranks' guardian", errno);
  }
  socket_ = Fd(ends[0]);
  Fd theirs(ends[1]);
  pid_ = ::fork();
  if (pid_ < 0) throw SystemError("cannot start the ranks' guardian (see `ulimit -u`)", errno);
  if (pid_ == 0) {
    socket_.reset();
    in_child();
    be_guardian(std::move(plan), std::move(theirs));
  }
}

void Guardian::start(const std::string& store, int size) {
  Order order{};
  order.kind = Order::Kind::kStart;
  order.number = size;
  if (store.size() >= order.store.size()) {
    throw InvalidArgument("the store's address is longer than 127 bytes: " + store);
  }
  store.copy(order.store.data(), store.size());
  if (::send(socket_.get(), &order, sizeof order, MSG_NOSIGNAL) < 0) {
    throw SystemError("cannot reach the ranks' guardian", errno);
  }
}

void Guardian::signal(int number, bool from_terminal) {
  Order order{};
  order.kind = Order::Kind::kSignal;
  order.number = number;
  order.from_terminal = from_terminal;
  // If the guardian is gone, next_report notices it.
  [[maybe_unused]] const ssize_t sent = ::send(socket_.get(), &order, sizeof order, MSG_NOSIGNAL);
}

std::optional<GuardianReport> Guardian::next_report() {
  GuardianReport report{};
  ssize_t length = ::recv(socket_.get(), &report, sizeof report, MSG_DONTWAIT);
  // The guardian ended with an order unread. The kernel reports that first; its last reports
  // follow.
  if (length < 0 && errno == ECONNRESET) {
    length = ::recv(socket_.get(), &report, sizeof report, MSG_DONTWAIT);
  }
  if (length == sizeof report) return report;
  if (length < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  throw SystemError("the process that guards the ranks ended unexpectedly",
                    length < 0 ? errno : ECHILD);
}

void Guardian::reap() noexcept {
  while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace hocket::cli
