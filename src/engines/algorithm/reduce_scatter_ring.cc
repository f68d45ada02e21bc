#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "engines/algorithm/algorithms.h"
#include "engines/algorithm/partial.h"
#include "engines/algorithm/scratch.h"

namespace hocket::algorithm {
namespace {

// Returns whether the result at `out` would overwrite parts of `in` that belong to other ranks.
// `own` is this rank's part.
bool overwrites(const ConstArray& in, int n, const Range& own, const std::byte* out) noexcept {
  if (out == in.data + own.first) return false;
  std::size_t end = 0;
  for (int i = 0; i < n; ++i) end = std::max(end, in.parts.of(i).end());
  const std::less<const std::byte*> before;
  return before(out, in.data + end) && before(in.data, out + own.length);
}

// Combines the bytes of a message with this rank's data as they arrive, and writes the result. The
// arriving bytes may be unaligned, so they pass through a buffer, which stays in the first-level
// cache.
class FoldedAsItComes final : public engine::Taker {
 public:
  FoldedAsItComes(const Partial& partial,
                  std::size_t element,
                  std::byte* out,
                  const std::byte* ours)
      : partial_(partial), element_(element), out_(out), ours_(ours) {}

  void take(std::size_t offset, std::span<const std::byte> bytes) noexcept override {
    alignas(64) std::byte stretch[kStretch];
    while (!bytes.empty()) {
      const std::size_t length = std::min(kStretch, bytes.size());
      std::memcpy(stretch, bytes.data(), length);
      const std::size_t at = offset / partial_.element() * element_;
      partial_.finish_fold(out_ + at, stretch, ours_ + at, length / partial_.element());
      offset += length;
      bytes = bytes.subspan(length);
    }
  }

 private:
  static constexpr std::size_t kStretch = 8192;
  const Partial& partial_;
  const std::size_t element_;
  std::byte* const out_;
  const std::byte* const ours_;
};

}  // namespace

// There are n - 1 steps. In step s a rank sends the part of the rank s + 1 behind to the next rank.
// It receives the part of the rank s + 2 behind. Two buffers alternate: a step sends from one
// buffer what the previous step received there, and receives into the other. A receive is posted
// when the earlier sends from its buffer are complete. These sends depend only on earlier steps of
// the next rank, so the ranks never wait for each other in a circle.
engine::Task ring_reduce_scatter(Endpoint at, Reduction reduction, ConstArray in, std::byte* out) {
  const int n = at.size();
  const Partial partial(reduction);
  const Endpoint partly = at.as(partial.dtype());
  const Range own = in.parts.of(at.rank());
  if (n == 1) {
    const void* const source = in.data + own.first;
    reduction(out, {&source, 1}, own.length);
    co_return;
  }
  const std::size_t chunk =
      whole_elements(reduction.chunk_bytes, partial.element()) / partial.element();
  const std::size_t room = longest(in.parts, n) / at.element() * partial.element();
  const Scratch memory(2 * room);
  std::byte* buffers[2] = {memory.get(), memory.get() + room};
  struct Coming {
    Message message;
    bool folded = false;  // FoldedAsItComes combines it while it arrives
  };
  std::deque<FoldedAsItComes> folding;  // a deque, because elements must not move
  std::vector<Coming> coming;
  std::vector<Message> going[2];

  const auto send_chunk = [&](std::vector<Message>& list,
                              const std::byte* part,
                              const Range& range) {
    list.push_back(partly.send(
        at.ahead(1), {part + range.first * partial.element(), range.length * partial.element()}));
  };
  {
    const Range first = in.parts.of(at.behind(1));
    const std::size_t count = first.length / at.element();
    const std::byte* part = in.data + first.first;
    if (!partial.is_plain()) {
      partial.load(buffers[1], part, count);
      part = buffers[1];
    }
    for (std::size_t i = 0; i < pieces(count, chunk); ++i) {
      send_chunk(going[1], part, piece({0, count}, chunk, i));
    }
  }
  for (int step = 0; step < n - 1; ++step) {
    const bool last = step == n - 2;
    const Range bytes = in.parts.of(wrap(at.rank() - step - 2 + n, n));
    const std::size_t count = bytes.length / at.element();
    std::byte* here = buffers[step % 2];
    co_await partly.completed(going[step % 2]);
    coming.clear();
    folding.clear();
    const bool overwriting = last && overwrites(in, n, own, out);
    for (std::size_t i = 0; i < pieces(count, chunk); ++i) {
      const Range range = piece({0, count}, chunk, i);
      const std::size_t from = range.first * partial.element();
      const std::size_t length = range.length * partial.element();
      std::optional<Message> taken;
      if (last && !overwriting) {
        const std::size_t at_in = range.first * at.element();
        folding.emplace_back(partial, at.element(), out + at_in, in.data + bytes.first + at_in);
        taken = partly.recv_to(at.behind(1), length, folding.back());
      }
      const bool folds = taken.has_value();
      coming.push_back(
          {folds ? std::move(*taken) : partly.recv(at.behind(1), {here + from, length}), folds});
    }
    // If the result overwrites parts of `in`, wait until they have been sent.
    if (overwriting) co_await partly.completed(going[1 - step % 2]);
    for (std::size_t i = 0; i < coming.size(); ++i) {
      const Range range = piece({0, count}, chunk, i);
      std::byte* theirs = here + range.first * partial.element();
      const std::byte* ours = in.data + bytes.first + range.first * at.element();
      co_await partly.completed(coming[i].message);
      if (coming[i].folded) continue;
      if (last) {
        partial.finish_fold(out + range.first * at.element(), theirs, ours, range.length);
      } else {
        partial.fold_in(theirs, ours, range.length);
        send_chunk(going[step % 2], here, range);
      }
    }
  }
  co_await partly.completed(going[0]);
  co_await partly.completed(going[1]);
}

}  // namespace hocket::algorithm
