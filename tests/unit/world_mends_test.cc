// Follows the advice of the compiler's messages, word for word, and gets the right result. The
// messages are in tests/compile/refused.cc.
#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <initializer_list>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "hocket/hocket.h"

namespace mends {
struct Particle {
  float x, y;
  bool operator==(const Particle&) const = default;
};
// A view of someone else's elements.
struct Window {
  float* first;
  std::size_t count;
  float* data() const { return first; }
  std::size_t size() const { return count; }
  float* begin() const { return first; }
  float* end() const { return first + count; }
};
struct Scaled {
  double by;
  double operator()(double a, double b) const { return a + by * b; }
};
}  // namespace mends
template <>
inline constexpr bool std::ranges::enable_borrowed_range<mends::Window> = true;

namespace hocket {
namespace {

struct Row {
  std::string message;  // a part of it
  std::function<bool(Communicator&)> works;
};

const std::vector<Row> kRows{
    {"pass std::as_writable_bytes(std::span(x))",
     [](Communicator& comm) {
       std::vector<mends::Particle> x(2);
       if (comm.rank() == 0) x = {{1, 2}, {3, 4}};
       comm.broadcast(std::as_writable_bytes(std::span(x)));
       return x == std::vector<mends::Particle>{{1, 2}, {3, 4}};
     }},
    {"or std::as_bytes where it is const",
     [](Communicator& comm) {
       const std::vector<mends::Particle> x{{1, 2}, {3, 4}};
       std::vector<mends::Particle> y(2);
       if (comm.rank() == 0) comm.send(std::as_bytes(std::span(x)), 1);
       if (comm.rank() == 1) comm.recv(std::as_writable_bytes(std::span(y)), 0);
       return comm.rank() == 0 || y == x;
     }},
    {"this array is a temporary: give it a name",
     [](Communicator& comm) {
       std::vector<float> x = std::vector<float>(1 << 18, 1.0F);
       Work work = comm.all_reduce_async(x);
       work.wait();
       return x == std::vector<float>(1 << 18, 2.0F);
     }},
    {"if its type is only a view, pass std::span(view)",
     [](Communicator& comm) {
       std::vector<float> x(3, 1.0F);
       const auto part = x | std::views::take(2);
       Work work = comm.all_reduce_async(std::span(part));
       work.wait();
       return x == std::vector<float>{2, 2, 1};
     }},
    {"or specialize std::ranges::enable_borrowed_range",
     [](Communicator& comm) {
       std::vector<float> x(3, 1.0F);
       Work work = comm.all_reduce_async(mends::Window{x.data(), 2});
       work.wait();
       return x == std::vector<float>{2, 2, 1};
     }},
    {"not contiguous: copy it into a std::vector",
     [](Communicator& comm) {
       const std::deque<float> x{1, 2};
       std::vector<float> y(x.begin(), x.end());
       comm.all_reduce(y);
       return y == std::vector<float>{2, 4};
     }},
    {"packed bits: use uint8_t",
     [](Communicator& comm) {
       const std::vector<bool> x{true, comm.rank() == 0};
       std::vector<std::uint8_t> y(x.begin(), x.end());
       comm.all_reduce(y);
       return y == std::vector<std::uint8_t>{2, 1};
     }},
    {"a pointer has no size: pass std::span(p, count)",
     [](Communicator& comm) {
       std::vector<double> x(3, 1.0);
       double* p = x.data();
       const std::size_t count = 2;
       comm.all_reduce(std::span(p, count));
       return x == std::vector<double>{2, 2, 1};
     }},
    {"for one number pass hocket::scalar(x)",
     [](Communicator& comm) {
       double x = 1.5;
       const double y = 2.5;
       double sum = 0;
       comm.all_reduce(hocket::scalar(x));
       comm.all_reduce(hocket::scalar(y), hocket::scalar(sum));
       return x == 3 && sum == 5;
     }},
    {"this number is a temporary: give it a name",
     [](Communicator& comm) {
       const double number = 2.5;
       double came = 0;
       Work work;
       if (comm.rank() == 0) work = comm.send_async(hocket::scalar(number), 1);
       if (comm.rank() == 1) work = comm.recv_async(hocket::scalar(came), 0);
       work.wait();
       return comm.rank() == 0 || came == 2.5;
     }},
    {"a list is no array: std::vector x{...} is one",
     [](Communicator& comm) {
       std::vector x{1.0F, 2.0F};
       comm.all_reduce(x);
       return x == std::vector<float>{2, 4};
     }},
    {"pass hocket::operator_of<double>(function)",
     [](Communicator& comm) {
       const auto function = [](double a, double b) { return 10 * a + b; };
       std::vector<double> x(4, comm.rank() + 1);
       hocket::all_reduce(comm, x, x, hocket::operator_of<double>(function));
       return x == std::vector<double>(4, 12);
     }},
    {"it must outlive the call: give it a name",
     [](Communicator& comm) {
       const mends::Scaled scaled{2};
       std::vector<double> x(4, comm.rank() + 1);
       Work work = hocket::all_reduce_async(comm, x, x, hocket::operator_of<double>(scaled));
       work.wait();
       return x == std::vector<double>(4, 5);
     }},
    {"this is a temporary: give it a name",
     [](Communicator& comm) {
       SymmetricArray x = comm.symmetric().empty<float>(4, {.memory = MemoryKind::kHost});
       std::fill_n(x.data<float>(), 4, 1.0F);
       Work work = comm.all_reduce_async(x);
       work.wait();
       return x.data<float>()[3] == 2;
     }},
};

TEST(Mends, GiveTheRightResult) {
  run_threads(2, [](Communicator& comm) {
    for (const Row& row : kRows) {
      if (!row.works(comm)) throw std::runtime_error(row.message);
    }
  });
}

}  // namespace
}  // namespace hocket
