// A job's segment with any contents, as an onlooker reads it (`hocket top`). All values that are
// read must be within their bounds. An input is a list of changes to a good segment, of four bytes
// each: the part, the position in it (two bytes), and the new byte.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "foundation/os/segment.h"
#include "membership/control/group.h"
#include "membership/control/host/host.h"
#include "membership/control/onlooker.h"
#include "monitoring/live/blame.h"
#include "monitoring/live/position.h"
#include "monitoring/live/sampler.h"
#include "monitoring/live/status_board.h"

namespace {

using namespace hocket;

constexpr std::array kPlaces{0, 1, 2};

void require(bool holds) {
  if (!holds) std::abort();
}

// Two ranks here and one elsewhere, in one group; the first is in its fortieth call. A resource.
struct GoodSegment {
  GoodSegment() {
    const control::HostShape shape{.ranks = 2, .remote = 1, .stripe_bytes = 1 << 20};
    const std::size_t bytes = control::HostControl::segment_bytes(shape);
    segment = std::make_shared<os::Segment>(os::Segment::create_private(bytes));
    control::HostControl::format(*segment, shape);
    host = std::make_unique<control::HostControl>(segment, 0);
    live::lay_out_board(host->memory);
    host->arrive(0);
    const std::uint64_t block =
        host->memory.allocate(control::GroupControl::bytes(3), std::array{0, 1});
    control::GroupControl::format(host->memory.at(block), kPlaces);
    control::GroupControl group(*host, host->memory.at(block), 0, kPlaces);
    for (std::uint64_t call = 1; call <= 40; ++call) {
      group.record(call, call, {.kind = engine::Kind::kAllReduce, .count = call});
      if (call < 40) group.finish(call, true);
    }
    group.show_wait("recv of float32[3] from rank 1 tag 0");
    live::show_group(host->memory, block, 0, "world");
    const std::uint64_t board = host->memory.first_block(0);
    live::ToldPosition told{.moves = 79, .text = {}};
    told.text = "train.py:42 in load";
    reinterpret_cast<live::BoardLayout*>(host->memory.at(board))->place.write(1, told);
    parts = {{0, 512},
             {4096, 3 * sizeof(control::RankLine)},
             {block, control::GroupControl::bytes(3)},
             {board, sizeof(live::BoardLayout)}};
  }
  std::shared_ptr<os::Segment> segment;
  std::unique_ptr<control::HostControl> host;
  std::vector<std::pair<std::size_t, std::size_t>> parts;  // where, how long
};

void look(const os::Segment& segment) {
  const control::Onlooker onlooker({segment.data(), segment.size()});
  if (onlooker.known() != control::Onlooker::Known::kYes) return;
  live::Sampler sampler(onlooker);
  sampler.look();
  sampler.look();
  const live::Glance& glance = sampler.glance();
  require(glance.ranks.size() == static_cast<std::size_t>(onlooker.places()));
  for (int place = 0; place < onlooker.places(); ++place) {
    const live::GlancedRank& rank = glance.ranks[static_cast<std::size_t>(place)];
    require(rank.doing < static_cast<int>(rank.groups.size()));
    require(live::place_of(onlooker, place).size() <= live::kPositionBytes);
    const int blamed = live::blamed_by(glance, place, [](int other) { return other == 1; });
    require(blamed >= -1 && blamed < onlooker.places());
    for (const int missing : live::missing_from(glance, place)) {
      require(missing >= 0 && missing < onlooker.places());
    }
    for (const live::ShownGroup& group : rank.groups) {
      require(group.index < onlooker.size_of_group(group.block));
      static_cast<void>(onlooker.wait(group.block, group.index).size());
      if (const auto failure = onlooker.failure(group.block)) {
        require(failure->text.size() <= control::Failure::kTextBytes);
      }
      const auto* const member = glance.member_of(group);
      if (member == nullptr) continue;
      if (const auto record = onlooker.record(group.block, group.index, member->last)) {
        require(!engine::describe(record->signature).empty());
      }
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static GoodSegment* const good = new GoodSegment;
  std::vector<std::pair<std::byte*, std::byte>> before;
  for (std::size_t i = 0; i + 4 <= size; i += 4) {
    const auto [begin, length] = good->parts[data[i] % good->parts.size()];
    const std::size_t offset = (data[i + 1] | std::size_t{data[i + 2]} << 8) % length;
    std::byte* const at = good->segment->data() + begin + offset;
    before.emplace_back(at, *at);
    *at = static_cast<std::byte>(data[i + 3]);
  }
  look(*good->segment);
  for (auto each = before.rbegin(); each != before.rend(); ++each) *each->first = each->second;
  return 0;
}
