// Strided messages, ranks as a grid with neighbours, and messages of plain data.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

#include "ranks.h"

namespace hocket::multiprocess {
namespace {

// --- Strided messages ---------------------------------------------------------------------------

struct Cut {
  const char* name;
  std::vector<std::size_t> shape;
  std::vector<std::ptrdiff_t> strides;
  std::ptrdiff_t first;  // place of the first element
};
// Cuts of 12 elements out of an array of 6 by 5 by 4.
std::vector<Cut> cuts() {
  return {
      {"contiguous", {3, 4}, {4, 1}, 20},
      {"every second", {12}, {2}, 3},
      {"backwards", {12}, {-3}, 100},
      {"box", {3, 2, 2}, {20, 4, 1}, 41},
      {"column", {6, 2}, {20, 8}, 7},
      {"transposed", {2, 3, 2}, {1, 40, 4}, 5},
      {"one axis of one", {1, 12}, {999, 1}, 60},
  };
}
constexpr std::size_t kWhole = 120;
constexpr int kEmpty = -1;

// Places of a cut's elements, in C order.
std::vector<std::size_t> places_of(const Cut& cut) {
  std::vector<std::ptrdiff_t> places{cut.first};
  for (std::size_t axis = 0; axis < cut.shape.size(); ++axis) {
    std::vector<std::ptrdiff_t> next;
    for (const std::ptrdiff_t place : places) {
      for (std::size_t i = 0; i < cut.shape[axis]; ++i) {
        next.push_back(place + static_cast<std::ptrdiff_t>(i) * cut.strides[axis]);
      }
    }
    places = next;
  }
  return {places.begin(), places.end()};
}
std::vector<int> filled(int rank) {
  std::vector<int> x(kWhole);
  for (std::size_t i = 0; i < kWhole; ++i) x[i] = 1000 * rank + static_cast<int>(i);
  return x;
}

TEST(Neighbours, StridedArraysArePackedAndUnpacked) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    const int peer = 1 - rank.rank();
    for (const Cut& from : cuts()) {
      for (const Cut& to : cuts()) {
        rank.stage(fmt::format("{} to {}", from.name, to.name));
        const std::vector<int> mine = filled(rank.rank()), other = filled(peer);
        std::vector<int> wanted(kWhole, kEmpty), got(kWhole, kEmpty);
        const auto sources = places_of(from), targets = places_of(to);
        for (std::size_t i = 0; i < 12; ++i) wanted[targets[i]] = other[sources[i]];
        const ConstStridedView in = strided(mine.data() + from.first, from.shape, from.strides);
        const StridedView out = strided(got.data() + to.first, to.shape, to.strides);
        Received received = send_recv_strided(comm, in, peer, out, peer, {.tag = 3});
        rank.check(got == wanted && received.count == 12 && received.source == peer,
                   "send_recv_strided is wrong");
        got.assign(kWhole, kEmpty);
        if (rank.rank() == 0) send_strided(comm, in, peer);
        received = recv_strided(comm, out, peer);
        if (rank.rank() == 1) send_strided(comm, in, peer);
        rank.check(got == wanted && received.count == 12, "recv_strided is wrong");
        // One side may be an ordinary array; and a shorter message fills the beginning.
        if (rank.rank() == 0) {
          comm.send(std::vector<int>(5, 7), peer);
        } else {
          std::vector<int> begun(kWhole, kEmpty);
          for (std::size_t i = 0; i < 5; ++i) begun[targets[i]] = 7;
          got.assign(kWhole, kEmpty);
          received = recv_strided(comm, out, peer, {.allow_shorter = true});
          rank.check(got == begun && received.count == 5, "a shorter message is wrong");
        }
      }
    }
  });
}

TEST(Neighbours, StridedViewsAreChecked) {
  Communicator none{nullptr};
  std::vector<int> x(10);
  const auto refused = [&](const StridedView& view, const std::string& why) {
    const Outcome outcome = outcome_of([&] { recv_strided(none, view, 0); });
    EXPECT_EQ(outcome.kind, "InvalidArgument") << why;
    EXPECT_NE(outcome.message.find(why), std::string::npos) << outcome.message;
  };
  refused({x.data(), DType::kInt32, {2, 2}, {1}}, "2 axes and 1 strides");
  refused({x.data(), DType::kInt32, {2, 2}, {1, 1}}, "share memory");
  refused({x.data(), DType::kInt32, {4, 2}, {1, 2}}, "share memory");
  refused({x.data(), DType::kInt32, {3}, {0}}, "share memory");
  refused({nullptr, DType::kInt32, {3}, {2}}, "data is null");
  refused({x.data(), static_cast<DType>(77), {3}, {2}}, "none of hocket::DType");
  refused({x.data(), DType::kInt32, {1ul << 40, 1ul << 40}, {1, 1}}, "any memory holds");
  const StridedView whole = strided(x.data(), {2, 5});
  EXPECT_EQ(whole.part(1, 2, 4).count(), 4u);
  EXPECT_EQ(whole.part(1, 2, 4).data, x.data() + 2);
  EXPECT_THROW(static_cast<void>(whole.part(2, 0, 1)), InvalidArgument);
  EXPECT_THROW(static_cast<void>(whole.part(1, 2, 6)), InvalidArgument);
}

// --- Grids --------------------------------------------------------------------------------------

struct GridCase {
  std::vector<int> shape;
  std::vector<bool> periodic;
  std::vector<Halo> halo;
};

// Returns the value of the whole array at a place.
int value_at(int row, int column, int rest) { return 10000 * row + 10 * column + rest; }

// An exchange on arrays of own cells `kRows` by `kColumns` with two numbers a cell.
void check_exchange(Rank& rank, Communicator& comm, const GridCase& each) {
  constexpr int kRows = 3, kColumns = 4, kRest = 2;
  Grid grid(comm, each.shape, each.periodic);
  const std::vector<int> place = grid.coordinates();
  rank.check(grid.rank_of(place) == comm.rank(), "this rank is elsewhere");
  const auto [above, below] = each.halo[0];
  const auto [left, right] = each.halo[1];
  const int rows = kRows + static_cast<int>(above + below);
  const int columns = kColumns + static_cast<int>(left + right);
  std::vector<int> x, wanted;
  for (int row = 0; row < rows; ++row) {
    for (int column = 0; column < columns; ++column) {
      for (int rest = 0; rest < kRest; ++rest) {
        const int own_row = row - static_cast<int>(above);
        const int own_column = column - static_cast<int>(left);
        const bool is_own =
            own_row >= 0 && own_row < kRows && own_column >= 0 && own_column < kColumns;
        const int all_rows = grid.shape()[0] * kRows, all_columns = grid.shape()[1] * kColumns;
        const int r = place[0] * kRows + own_row, c = place[1] * kColumns + own_column;
        const bool exists = (each.periodic[0] || (r >= 0 && r < all_rows)) &&
                            (each.periodic[1] || (c >= 0 && c < all_columns));
        const int there =
            value_at((r + all_rows) % all_rows, (c + all_columns) % all_columns, rest);
        x.push_back(is_own ? there : kEmpty);
        wanted.push_back(exists ? there : kEmpty);
      }
    }
  }
  const std::vector<std::size_t> shape{
      static_cast<std::size_t>(rows), static_cast<std::size_t>(columns), kRest};
  grid.neighbour_exchange(strided(x.data(), shape), each.halo, {.tag = 2});
  rank.check(x == wanted, fmt::format("the border of rank {} is wrong", comm.rank()));
}

TEST(Neighbours, AGridExchangesBorders) {
  for (const int size : {1, 2, 4, 6}) {
    run_job({.size = size}, [size](Rank& rank) {
      World world = rank.join();
      auto& comm = world.communicator();
      const std::vector<std::vector<int>> shapes{{size, 1}, {-1, size % 2 == 0 ? 2 : 1}};
      const std::vector<std::vector<Halo>> halos{
          {{1, 1}, {1, 1}}, {{2, 1}, {0, 3}}, {{0, 0}, {2, 0}}};
      for (const auto& shape : shapes) {
        for (const int ends : {0, 1, 2, 3}) {
          for (const auto& halo : halos) {
            rank.stage(fmt::format("{} by {}, ends {}", shape[0], shape[1], ends));
            check_exchange(rank, comm, {shape, {ends % 2 == 1, ends / 2 == 1}, halo});
          }
        }
      }
    });
  }
}

TEST(Neighbours, AGridKnowsWhoIsWhere) {
  run_job({.size = 6}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    Grid grid(comm, {2, -1}, {false, true});
    rank.check(grid.shape() == std::vector{2, 3}, "the shape is wrong");
    rank.check(grid.coordinates_of(5) == std::vector{1, 2}, "rank 5 is elsewhere");
    const int row = rank.rank() / 3, column = rank.rank() % 3;
    const Shift down = grid.shift(0), right = grid.shift(1), far = grid.shift(1, -4);
    rank.check(down.destination == (row == 0 ? rank.rank() + 3 : kNullRank), "down");
    rank.check(down.source == (row == 1 ? rank.rank() - 3 : kNullRank), "from above");
    rank.check(right.destination == 3 * row + (column + 1) % 3, "right");
    rank.check(far.destination == 3 * row + (column + 2) % 3, "four to the left");
    rank.check(grid.shift(0, 2147483647).destination == kNullRank, "far beyond the end");
    const Shift farthest = grid.shift(0, std::numeric_limits<int>::min());
    rank.check(farthest.source == kNullRank && farthest.destination == kNullRank,
               "as far as an int goes");
    const Shift around = grid.shift(1, std::numeric_limits<int>::min());  // a multiple of 3, less 2
    rank.check(around.destination == 3 * row + (column + 1) % 3, "far around");
    rank.check(around.source == 3 * row + (column + 2) % 3, "from far around");
    struct Wrong {
      std::function<void()> use;
      std::string why;
    };
    std::vector<int> x(16);
    const std::vector<Wrong> wrong{
        {[&] { Grid(comm, {4, -1}); }, "a grid of (4, -1) does not have the communicator's 6"},
        {[&] { Grid(comm, {-1, -1}); }, "6 ranks"},
        {[&] { Grid(comm, {}); }, "6 ranks"},
        {[&] { Grid(comm, {6, 0}); }, "6 ranks"},
        {[&] { Grid(comm, {6}, {true, true}); }, "periodic has 2 entries"},
        {[&] { static_cast<void>(grid.coordinates_of(6)); }, "rank is 6"},
        {[&] { static_cast<void>(grid.rank_of(std::vector{1})); }, "1 entries, and the grid 2"},
        {[&] { static_cast<void>(grid.shift(2)); }, "axis is 2"},
        {[&] { grid.neighbour_exchange(strided(x.data(), {4, 4}), 2); }, "too few"},
        {[&] { grid.neighbour_exchange(strided(x.data(), {16})); }, "the array 1 axes"},
        {[&] { grid.neighbour_exchange(strided(x.data(), {4, 4}, {0, 1})); }, "share memory"},
    };
    for (const Wrong& each : wrong) {
      const Outcome outcome = outcome_of(each.use);
      rank.check(
          outcome.kind == "InvalidArgument" && outcome.message.find(each.why) != std::string::npos,
          each.why + ": " + outcome.message);
    }
    comm.barrier();
  });
}

// --- Plain data ---------------------------------------------------------------------------------

struct Particle {
  double at[3];
  char kind;
  friend bool operator==(const Particle&, const Particle&) = default;
};

template <typename T>
void pass_on(Rank& rank, Communicator& comm, const std::vector<T>& x) {
  const int peer = 1 - rank.rank();
  std::vector<T> got(x.size()), longer(x.size() + 3);
  if (rank.rank() == 0) {
    comm.send(x, peer);
    Work work = comm.send_async(x, peer);
    work.wait();
  } else {
    const Received received = comm.recv(got, peer);
    rank.check(got == x && received.count == x.size(), "recv is wrong");
    got.assign(x.size(), T{});
    Work work = comm.recv_async(got, peer);
    work.wait();
    rank.check(got == x && work.received()->count == x.size() * sizeof(T), "recv_async is wrong");
  }
  const Received received = comm.send_recv(x, longer, peer, {.allow_shorter = true});
  got = longer;
  got.resize(x.size());
  rank.check(got == x && received.count == x.size(), "send_recv is wrong");
}

TEST(Neighbours, PlainDataTravelsAsBytes) {
  run_job({.size = 2}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    pass_on<char>(rank, comm, {'a', 'b', 'c'});
    pass_on<long double>(rank, comm, {1.5L, -2.25L});
    pass_on<wchar_t>(rank, comm, {L'a', L'b'});
    pass_on<Particle>(rank, comm, {{{1, 2, 3}, 'x'}, {{4, 5, 6}, 'y'}});
    pass_on<std::array<int, 3>>(rank, comm, {{1, 2, 3}, {4, 5, 6}});
    std::string text = "hello";
    if (rank.rank() == 0) comm.send(text, 1);
    if (rank.rank() == 1) {
      text.resize(20);
      text.resize(comm.recv(text, 0, {.allow_shorter = true}).count);
      rank.check(text == "hello", text);
    }
  });
}

TEST(Neighbours, SendAndReceiveAtOnceMayBeShorter) {
  run_job({.size = 3}, [](Rank& rank) {
    World world = rank.join();
    auto& comm = world.communicator();
    const int following = (rank.rank() + 1) % 3, preceding = (rank.rank() + 2) % 3;
    for (const std::size_t count : {0, 3, 30'000}) {
      // Every rank sends another number.
      const std::vector<int> x(count + static_cast<std::size_t>(rank.rank()), rank.rank());
      std::vector<int> got(count + 2, kEmpty), wanted(count + 2, kEmpty);
      const std::size_t came = count + static_cast<std::size_t>(preceding);
      std::fill_n(wanted.begin(), came, preceding);
      const Received received =
          comm.send_recv(x, following, got, preceding, {.allow_shorter = true});
      rank.check(got == wanted && received.count == came && received.source == preceding,
                 fmt::format("{} elements: {} came", count, received.count));
    }
    std::vector<int> first(4);
    const Received kept = comm.send_recv(
        std::vector<int>(9, rank.rank()), following, first, preceding, {.allow_longer = true});
    rank.check(first == std::vector(4, preceding) && kept.count == 9, "a longer message is wrong");
  });
}

}  // namespace
}  // namespace hocket::multiprocess
