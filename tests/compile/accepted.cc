// Must compile: every way in which an array may be passed, and every type of element.
#include <hocket/hocket.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstdint>
#include <functional>
#include <span>
#include <type_traits>
#include <vector>

using hocket::ArrayView;
using hocket::ConstArrayView;

// An array that cannot be written is no output.
static_assert(std::is_convertible_v<std::vector<float>&, ArrayView>);
static_assert(std::is_convertible_v<std::span<float>, ArrayView>);
static_assert(!std::is_convertible_v<const std::vector<float>&, ArrayView>);
static_assert(!std::is_convertible_v<std::span<const float>, ArrayView>);
static_assert(!std::is_convertible_v<ConstArrayView, ArrayView>);
static_assert(std::is_convertible_v<const std::vector<float>&, ConstArrayView>);
static_assert(std::is_convertible_v<ArrayView, ConstArrayView>);
// Templates that ask hear the same of types that are no arrays.
static_assert(!std::is_convertible_v<float*, ConstArrayView>);
static_assert(!std::is_convertible_v<std::vector<bool>&, ConstArrayView>);
static_assert(!std::is_convertible_v<double, ConstArrayView>);
static_assert(!std::is_convertible_v<hocket::SymmetricArray, ConstArrayView>);
static_assert(std::is_convertible_v<hocket::SymmetricArray&, hocket::BorrowedView>);

// Owners move, and do not copy.
static_assert(!std::is_copy_constructible_v<hocket::Communicator>);
static_assert(!std::is_copy_constructible_v<hocket::Work>);
static_assert(!std::is_copy_constructible_v<hocket::World>);
static_assert(std::is_nothrow_move_constructible_v<hocket::Communicator>);
static_assert(std::is_nothrow_move_constructible_v<hocket::Work>);

template <typename T>
void one(hocket::Communicator& comm) {
  std::array<T, 3> array{};
  comm.all_reduce(array);
}

template <typename... Ts>
void every(hocket::Communicator& comm) {
  (one<Ts>(comm), ...);
}

void call(hocket::Communicator& comm) {
  every<bool,
        std::int8_t,
        std::int16_t,
        std::int32_t,
        std::int64_t,
        std::uint8_t,
        std::uint16_t,
        std::uint32_t,
        std::uint64_t,
        long long,
        std::size_t,
        std::byte,
        hocket::float16,
        hocket::bfloat16,
        hocket::float8_e4m3,
        hocket::float8_e5m2,
        float,
        double,
        std::complex<float>,
        std::complex<double>>(comm);

  const std::vector<double> in(8);
  std::vector<double> out(8);
  double plain[4] = {};
  struct {
    float x, y;
  } particles[2] = {};
  comm.all_reduce(in, out);
  comm.all_reduce(plain);
  comm.all_reduce(std::span(out).first(3), {.op = hocket::ReduceOp::kMin});
  comm.broadcast(std::as_writable_bytes(std::span(particles)));
}

// Calls that go on take whatever has a name, and views that have none.
void go_on(hocket::Communicator& comm, ArrayView view, ConstArrayView read, float* device) {
  const std::vector<double> in(8);
  std::vector<double> out(8);
  const auto list = {1.0, 2.0};
  hocket::SymmetricArray shared = comm.symmetric().empty<double>(8);
  hocket::Work work = comm.send_async(std::span(in).first(3), 1);
  work = comm.send_async(in, 1);
  work = comm.send_async(list, 1);
  work = comm.send_async(read, 1);
  work = comm.send_async({device, 4, hocket::DType::kFloat32, hocket::MemoryKind::kCuda}, 1);
  work = comm.recv_async(std::span(out).subspan(1), 1);
  work = comm.all_reduce_async(hocket::cuda_array(device, 4));
  work = comm.all_reduce_async(shared, std::as_writable_bytes(std::span(out)));
  hocket::Prepared prepared = comm.prepare_all_gather(view.slice(0, 1), view);
  // Blocking calls read what is gone afterwards.
  comm.send(std::vector<float>(4), 1);
  comm.all_reduce(std::array{1.0, 2.0}, out);
}

// `{}` are options where an array can be written to, else an output that is absent.
void braces(hocket::Communicator& comm, hocket::Matmul& matmul) {
  const std::vector<double> in(8);
  std::vector<double> out(8);
  comm.all_reduce(out, {});
  comm.reduce(ArrayView(out), {});
  comm.reduce(in, {});
  comm.gather(in, {}, {.root = 1});
  comm.broadcast(out, {1});
  hocket::Work work = comm.all_reduce_async(out, {});
  work = comm.gather_async(ConstArrayView(in), {});
  hocket::Prepared prepared = comm.prepare_scatter(out, {});
  matmul(in, in, out, {1.0, 2.0});
  matmul(in, in, in, out, {});
}

double larger(double a, double b) { return a > b ? a : b; }

void operators(hocket::Communicator& comm) {
  using hocket::operator_of;
  std::vector<double> x(8);
  double factor = 2;
  const auto scaled = [&factor](double a, double b) { return a + factor * b; };
  const std::function<double(double, double)> wrapped = larger;
  for (const hocket::Operator& op : {operator_of<double>(larger),
                                     operator_of<double>(&larger),
                                     operator_of<double>(std::fmax),
                                     operator_of<double>(std::max<double>),
                                     operator_of<double>(std::plus<>{}),
                                     operator_of<double>([](double a, double b) { return a * b; }),
                                     operator_of<double>(scaled),
                                     operator_of<double>(wrapped)}) {
    hocket::all_reduce(comm, x, x, op);
  }
}
