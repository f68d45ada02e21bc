// The messages between the head and the commands on other hosts, also cut short or spoiled.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include "hocket/error.h"
#include "interfaces/cli/fd.h"
#include "interfaces/cli/hosts/briefing.h"
#include "interfaces/cli/hosts/host_connection.h"
#include "interfaces/cli/hosts/host_list.h"
#include "interfaces/cli/hosts/remote_command.h"
#include "interfaces/cli/run/over_hosts/head_link.h"
#include "interfaces/cli/run/over_hosts/outcome.h"

namespace hocket::cli {
namespace {

Briefing some_briefing() {
  return {.token = "abc123",
          .key = Key::generate(),
          .job = "run-1",
          .hosts = {{"a", 2}, {"user@b", 1}},
          .host = 1,
          .folder = "/some where",
          .colour = true,
          .environment = {"HOCKET_WARN=3", "HOCKET_X=a=b\nc"},
          .arguments = {"run", "--", "sh", "-c", "", "it's"}};
}

// A file without a name that has this text.
Fd file_of(const std::string& text) {
  Fd file(::memfd_create("text", MFD_CLOEXEC));
  EXPECT_EQ(::write(file.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

Briefing receive(const std::string& text, std::string* rest = nullptr) {
  const Fd file = file_of(text);
  const Fd answers(::memfd_create("answers", MFD_CLOEXEC));
  Briefing briefing = receive_briefing(file.get(), answers.get());
  char buffer[64];
  const ssize_t length = ::read(file.get(), buffer, sizeof buffer);
  if (rest != nullptr) rest->assign(buffer, static_cast<std::size_t>(length));
  return briefing;
}

TEST(Briefing, ArrivesAsItWasAndLeavesWhatFollows) {
  const Briefing sent = some_briefing();
  std::string rest;
  const Briefing got = receive(encode(sent) + "alive\n", &rest);
  EXPECT_EQ(rest, "alive\n");
  EXPECT_TRUE(got.key == sent.key);
  EXPECT_EQ(got.token, sent.token);
  EXPECT_EQ(got.job, sent.job);
  ASSERT_EQ(got.hosts.size(), 2U);
  EXPECT_EQ(got.self().name, "user@b");
  EXPECT_EQ(got.self().address(), "b");
  EXPECT_EQ(got.hosts[0].slots, 2);
  EXPECT_EQ(got.folder, sent.folder);
  EXPECT_TRUE(got.colour);
  EXPECT_EQ(got.environment, sent.environment);
  EXPECT_EQ(got.arguments, sent.arguments);
}

TEST(Briefing, CutAnywhereIsRefused) {
  const std::string whole = encode(some_briefing());
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_THROW(receive(whole.substr(0, length)), InvalidArgument) << length;
  }
}

TEST(Briefing, WithAnyByteChangedIsRefusedOrAnotherOne) {
  const std::string whole = encode(some_briefing());
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const char changed : {'\0', '9', '\n', 'x', static_cast<char>(whole[at] ^ 1)}) {
      std::string text = whole;
      text[at] = changed;
      try {
        const Briefing got = receive(text);
        EXPECT_LT(static_cast<std::size_t>(got.host), got.hosts.size());
      } catch (const InvalidArgument&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(HostList, AddsUpAndLeavesOutWhatHasNoPlace) {
  const auto hosts = parse_hosts("a:2,[fe80::1]:3,u@b,a");
  ASSERT_EQ(hosts.size(), 3U);
  EXPECT_EQ(hosts[0].slots, 3);
  EXPECT_EQ(hosts[1].name, "fe80::1");
  EXPECT_EQ(hosts[2].address(), "b");
  EXPECT_EQ(total_slots(hosts), 7);
  for (int ranks = 1; ranks <= 7; ++ranks) {
    const auto taken = take_places(hosts, ranks);
    EXPECT_EQ(total_slots(taken), ranks);
    EXPECT_EQ(taken.size(), ranks <= 3 ? 1U : ranks <= 6 ? 2U : 3U);
  }
  EXPECT_THROW(take_places(hosts, 8), InvalidArgument);
}

TEST(RemoteCommand, SplitsAsAShellDoes) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(split_words(" a  'b c' \"d 'e\" f\\ g '' h\"i\"j ", "--launcher"),
            (Words{"a", "b c", "d 'e", "f g", "", "hij"}));
  EXPECT_EQ(split_words("$(x) `y` *", "--launcher"), (Words{"$(x)", "`y`", "*"}));
  EXPECT_THROW(split_words("a \"b", "--launcher"), InvalidArgument);
}

TEST(RemoteCommand, NamesTheHostOnceAndQuotesForSshAlone) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(words_for({.launcher = "run -w {host} -x{host}", .hocket = "/a b"}, "h"),
            (Words{"run", "-w", "h", "-xh", "/a b", "as-host"}));
  EXPECT_EQ(words_for({.launcher = "/bin/ssh -p 1", .hocket = "/it's"}, "h"),
            (Words{"/bin/ssh", "-p", "1", "h", "'/it'\\''s' as-host"}));
  const Words plain = words_for({.launcher = "", .hocket = "/opt/hocket"}, "u@h");
  EXPECT_EQ(plain.front(), "ssh");
  EXPECT_EQ(plain.back(), "/opt/hocket as-host");
  EXPECT_EQ(plain[plain.size() - 2], "u@h");
}

// Everything that a child wrote, in its notices and beside them.
void read_to_the_end(HostConnection& connection,
                     std::string& output,
                     std::vector<std::string>& notices) {
  while (!connection.has_ended()) {
    std::vector<pollfd> wait;
    connection.add_to(wait, true, true);
    ::poll(wait.data(), wait.size(), 10);
    connection.move(wait);
    connection.reap();
    output += connection.take_output();
    for (std::string& text : connection.take_notices()) notices.push_back(std::move(text));
  }
}

TEST(HostConnection, PartsNoticesFromOutputHoweverItIsCut) {
  std::signal(SIGPIPE, SIG_IGN);
  const std::string other =
      "\x1e"
      "abc12\n\x1e\x1e"
      "abc123no\n";
  const std::string text = "one" + notice("abc123", "ready x") + other + "\x1e" +
                           notice("abc123", "ended 0") +
                           "two\x1e"
                           "abc123 cut";
  // As slowly as every byte by itself, and at once.
  for (const char* pause : {"0.002", "0"}) {
    std::string octal;
    for (const char c : text) {
      char code[8];
      std::snprintf(code, sizeof code, "\\%03o", static_cast<unsigned char>(c));
      octal += code;
      if (pause[2] != '\0') octal += " ";
    }
    const std::string script = "for c in $1; do printf \"$c\"; test $0 = 0 || sleep $0; done";
    HostConnection connection({"sh", "-c", script, pause, octal}, some_briefing());
    std::string output;
    std::vector<std::string> notices;
    read_to_the_end(connection, output, notices);
    EXPECT_EQ(notices, (std::vector<std::string>{"ready x", "ended 0"}));
    EXPECT_EQ(output,
              "one" + other + "\x1e" +
                  "two\x1e"
                  "abc123 cut");
  }
}

// Orders as a HeadLink reads them from standard input. `silent_at` gets the link's after the last
// of them.
std::vector<HeadOrder> orders_of(const std::string& text,
                                 RunClock::time_point* silent_at = nullptr) {
  const Fd before(::dup(STDIN_FILENO));
  const Fd file = file_of(text);
  ::dup2(file.get(), STDIN_FILENO);
  HeadLink link(some_briefing());
  const Fd input = link.make_input();
  std::vector<HeadOrder> all;
  for (int turn = 0; turn < 100 && (all.empty() || all.back().kind != HeadOrder::Kind::kGone);
       ++turn) {
    const std::vector<pollfd> answer{{STDIN_FILENO, POLLIN, POLLIN}, {-1, POLLOUT, 0}};
    for (HeadOrder& order : link.move(answer)) all.push_back(std::move(order));
  }
  ::dup2(before.get(), STDIN_FILENO);
  if (silent_at != nullptr) *silent_at = link.silent_at();
  return all;
}

TEST(HeadLink, ReadsOrdersUntilTheHeadIsGone) {
  const auto orders =
      orders_of("alive\ngo 1.2.3.4:5\nsignal 15\ninput 3\na\nbdeaf 1\nfail\ninput 0\nalive\n");
  using Kind = HeadOrder::Kind;
  std::vector<Kind> kinds;
  for (const HeadOrder& order : orders) kinds.push_back(order.kind);
  EXPECT_EQ(kinds,
            (std::vector<Kind>{
                Kind::kGo, Kind::kSignal, Kind::kTook, Kind::kDeaf, Kind::kFail, Kind::kGone}));
  EXPECT_EQ(orders[0].text, "1.2.3.4:5");
  EXPECT_EQ(orders[1].number, 15);
  EXPECT_EQ(orders[2].number, 3);
}

TEST(HeadLink, TakesNonsenseForALostHead) {
  for (const char* text :
       {"rubbish\n", "signal 999\n", "signal x\n", "input 99999999999\n", "input -1\n", "\n"}) {
    const auto orders = orders_of(text);
    ASSERT_EQ(orders.size(), 1U) << text;
    EXPECT_EQ(orders[0].kind, HeadOrder::Kind::kGone);
    EXPECT_NE(orders[0].text.find("nonsense"), std::string::npos);
  }
  EXPECT_EQ(orders_of(std::string(10'000, 'x')).back().kind, HeadOrder::Kind::kGone);
}

// An event loop sleeps until then, and not at all once the time has come.
TEST(HeadLink, AwaitsNoSignOfAHeadThatIsGone) {
  EXPECT_LT(HeadLink(some_briefing()).silent_at(), RunClock::now() + 2 * kHeadSilence);
  for (const char* text : {"", "alive\n", "rubbish\n", "signal 20\nsignal 18\n", "input 3\na"}) {
    RunClock::time_point silent_at;
    ASSERT_EQ(orders_of(text, &silent_at).back().kind, HeadOrder::Kind::kGone) << text;
    EXPECT_EQ(silent_at, RunClock::time_point::max()) << text;
  }
}

TEST(HostsOutcome, BlamesTheLikeliestUntilItIsSaid) {
  HostsOutcome outcome;
  const std::vector<std::optional<int>> codes{1, 137};
  outcome.rank_failed({.likelihood = 0, .exit_code = 1, .text = "late"});
  EXPECT_FALSE(outcome.is_certain());
  outcome.rank_failed({.likelihood = 2, .exit_code = 137, .text = "first"});
  EXPECT_TRUE(outcome.is_certain());
  EXPECT_EQ(outcome.take_report(), "first");
  EXPECT_EQ(outcome.take_report(), std::nullopt);
  outcome.host_failed(1);
  EXPECT_EQ(outcome.exit_code(codes, false), 137);
  outcome.asked_to_end(SIGINT);
  outcome.asked_to_end(SIGTERM);
  EXPECT_EQ(outcome.exit_code(codes, false), 130);
}

TEST(HostsOutcome, LostHostsComeBeforeWhatTheyDoToOthers) {
  HostsOutcome outcome;
  outcome.host_failed(1);
  outcome.rank_failed({.likelihood = 2, .exit_code = 137, .text = "a consequence"});
  EXPECT_EQ(outcome.take_report(), std::nullopt);
  EXPECT_EQ(outcome.exit_code(std::vector<std::optional<int>>{137, 1}, false), 1);
  EXPECT_EQ(HostsOutcome().exit_code(std::vector<std::optional<int>>{0, 124}, false), 124);
  EXPECT_EQ(HostsOutcome().exit_code(std::vector<std::optional<int>>{3, 0}, true), 0);
  EXPECT_EQ(HostsOutcome().exit_code(std::vector<std::optional<int>>{0, std::nullopt}, false), 0);
}

}  // namespace
}  // namespace hocket::cli
