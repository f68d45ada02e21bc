// Must compile: every way in which an array may be passed, and every type of element.
#include <hocket/hocket.h>

#include <array>
#include <complex>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

using hocket::ArrayView;
using hocket::ConstArrayView;

// What cannot be written to is no output.
static_assert(std::is_convertible_v<std::vector<float>&, ArrayView>);
static_assert(std::is_convertible_v<std::span<float>, ArrayView>);
static_assert(!std::is_convertible_v<const std::vector<float>&, ArrayView>);
static_assert(!std::is_convertible_v<std::span<const float>, ArrayView>);
static_assert(!std::is_convertible_v<ConstArrayView, ArrayView>);
static_assert(std::is_convertible_v<const std::vector<float>&, ConstArrayView>);
static_assert(std::is_convertible_v<ArrayView, ConstArrayView>);

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
