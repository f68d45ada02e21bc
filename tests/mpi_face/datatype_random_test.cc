// Random nested datatypes against the standard's definition of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "interfaces/mpi/types/datatype.h"
#include "tests/mpi_face/datatype_model.h"

namespace hocket::mpi {
namespace {

struct Pair {
  DatatypePtr type;
  model::TypeMap map;
  std::string text;  // how it was made, for a failure's message
};

// Whatever it makes is small enough to be walked by the model.
class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }

  Pair make(int depth) {
    if (depth == 0) {
      const Kind kind = static_cast<Kind>(between(0, kKindCount - 1));
      return {predefined(kind), model::TypeMap::of(kind), std::string(facts_of(kind).name)};
    }
    for (;;) {
      Pair made = derived(make(static_cast<int>(between(0, depth - 1))));
      const std::int64_t spread = made.map.true_ub() - made.map.true_lb();
      if (made.map.entries.size() <= 300 && spread < 100'000 &&
          std::abs(made.map.extent()) < 100'000) {
        return made;
      }
    }
  }

 private:
  Pair derived(const Pair& old) {
    switch (between(0, 9)) {
      case 0:
        return strided(old, true);
      case 1:
        return strided(old, false);
      case 2:
        return by_displacements(old, true);
      case 3:
        return by_displacements(old, false);
      case 4:
        return blocks(old, true);
      case 5:
        return blocks(old, false);
      case 6:
        return of_several(old);
      case 7:
        return with_bounds(old);
      case 8:
        return sub_array(old);
      default:
        return distributed_array(old);
    }
  }

  std::vector<std::int64_t> numbers(std::int64_t count, std::int64_t low, std::int64_t high) {
    std::vector<std::int64_t> made;
    for (std::int64_t i = 0; i < count; ++i) made.push_back(between(low, high));
    return made;
  }

  Pair strided(const Pair& old, bool in_bytes) {
    const std::int64_t count = between(0, 4), blocklength = between(0, 3);
    const std::int64_t stride = in_bytes ? between(-60, 60) : between(-4, 5);
    Pair made;
    made.type = (in_bytes ? hvector(count, blocklength, stride, old.type)
                          : vector(count, blocklength, stride, old.type))
                    .take();
    for (std::int64_t i = 0; i < count; ++i) {
      made.map.append(old.map, blocklength, i * stride * (in_bytes ? 1 : old.map.extent()));
    }
    made.text = "vector(" + std::to_string(count) + ", " + std::to_string(blocklength) + ", " +
                std::to_string(stride) + ", " + old.text + ")";
    return made;
  }

  Pair by_displacements(const Pair& old, bool in_bytes) {
    const std::int64_t count = between(0, 5);
    const auto lengths = numbers(count, 0, 3);
    const auto places = in_bytes ? numbers(count, -80, 80) : numbers(count, -8, 8);
    Pair made;
    made.type =
        (in_bytes ? hindexed(lengths, places, old.type) : indexed(lengths, places, old.type))
            .take();
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      made.map.append(old.map, lengths[i], places[i] * (in_bytes ? 1 : old.map.extent()));
    }
    made.text = "indexed(" + std::to_string(count) + ", " + old.text + ")";
    return made;
  }

  Pair blocks(const Pair& old, bool in_bytes) {
    const std::int64_t length = between(0, 3);
    auto places = numbers(between(0, 5), -8, 8);
    if (between(0, 1) == 0) std::ranges::sort(places);
    if (in_bytes) {
      for (std::int64_t& place : places) place *= 4;
    }
    Pair made;
    made.type = (in_bytes ? hindexed_block(length, places, old.type)
                          : indexed_block(length, places, old.type))
                    .take();
    for (const std::int64_t place : places) {
      made.map.append(old.map, length, place * (in_bytes ? 1 : old.map.extent()));
    }
    made.text = "indexed_block(" + std::to_string(length) + ", " + old.text + ")";
    return made;
  }

  Pair of_several(const Pair& old) {
    const Pair other = make(static_cast<int>(between(0, 1)));
    const std::int64_t count = between(1, 4);
    const auto lengths = numbers(count, 0, 2);
    Pair made;
    std::vector<std::int64_t> places;
    std::vector<DatatypePtr> types;
    made.text = "struct(";
    for (std::int64_t i = 0, next = 0; i < count; ++i) {
      const Pair& part = between(0, 1) == 0 ? old : other;
      const auto at = static_cast<std::size_t>(i);
      // Often apart, as structs are, and sometimes anywhere.
      places.push_back(between(0, 3) == 0 ? between(-50, 50)
                                          : next - part.map.true_lb() + between(0, 8));
      types.push_back(part.type);
      made.map.append(part.map, lengths[at], places[at]);
      next = made.map.true_ub();
      made.text += part.text + ", ";
    }
    made.type = structure(lengths, places, types).take();
    made.text += ")";
    return made;
  }

  Pair with_bounds(const Pair& old) {
    Pair made = old;
    const std::int64_t lb = between(-20, 20), extent = between(-10, 100);
    if (between(0, 2) == 0) {
      made.type = dup(old.type).take();
    } else {
      made.type = resized(old.type, lb, extent).take();
      made.map.resize(lb, extent);
      made.text =
          "resized(" + std::to_string(lb) + ", " + std::to_string(extent) + ", " + old.text + ")";
    }
    return made;
  }

  Pair sub_array(const Pair& old) {
    const std::int64_t ndims = between(1, 3);
    const auto sizes = numbers(ndims, 1, 5);
    std::vector<std::int64_t> subsizes, starts;
    for (const std::int64_t size : sizes) {
      subsizes.push_back(between(1, size));
      starts.push_back(between(0, size - subsizes.back()));
    }
    const Order order = between(0, 1) == 0 ? Order::kC : Order::kFortran;
    Pair made;
    made.type = subarray({sizes, subsizes, starts, order}, old.type).take();
    made.map = model::array_part(
        sizes, order == Order::kFortran, old.map, [&](const std::vector<std::int64_t>& indices) {
          for (std::size_t i = 0; i < indices.size(); ++i) {
            if (indices[i] < starts[i] || indices[i] >= starts[i] + subsizes[i]) return false;
          }
          return true;
        });
    made.text = "subarray(" + std::to_string(ndims) + ", " + old.text + ")";
    return made;
  }

  Pair distributed_array(const Pair& old) {
    const std::int64_t ndims = between(1, 3);
    const auto gsizes = numbers(ndims, 1, 6);
    std::vector<std::int64_t> dargs, psizes, blocks;
    std::vector<Distribution> distribs;
    std::int64_t size = 1;
    for (const std::int64_t gsize : gsizes) {
      const std::int64_t kind = between(0, 2);
      psizes.push_back(kind == 0 ? 1 : between(1, 3));
      const std::int64_t least = (gsize + psizes.back() - 1) / psizes.back();
      const bool is_default = between(0, 1) == 0;
      if (kind == 0) {
        distribs.push_back(Distribution::kNone);
        blocks.push_back(gsize);
      } else if (kind == 1) {
        distribs.push_back(Distribution::kBlock);
        blocks.push_back(is_default ? least : least + between(0, 2));
      } else {
        distribs.push_back(Distribution::kCyclic);
        blocks.push_back(is_default ? 1 : between(1, 7));
      }
      dargs.push_back(is_default ? kDefaultDarg : blocks.back());
      size *= psizes.back();
    }
    const std::int64_t rank = between(0, size - 1);
    const Order order = between(0, 1) == 0 ? Order::kC : Order::kFortran;
    Pair made;
    made.type = darray({size, rank, gsizes, distribs, dargs, psizes, order}, old.type).take();
    made.map = model::array_part(
        gsizes, order == Order::kFortran, old.map, [&](const std::vector<std::int64_t>& indices) {
          std::int64_t owner = 0;
          for (std::size_t i = 0; i < indices.size(); ++i) {
            owner = owner * psizes[i] + indices[i] / blocks[i] % psizes[i];
          }
          return owner == rank;
        });
    made.text = "darray(" + std::to_string(ndims) + ", " + old.text + ")";
    return made;
  }

  std::mt19937 random_;
};

// A buffer that `count` elements of a type lie in, with a margin.
struct Buffer {
  static constexpr std::int64_t kMargin = 64;
  std::vector<std::byte> bytes;
  std::int64_t lead = 0;  // where the first element begins

  Buffer(const model::TypeMap& map, std::int64_t count) {
    const std::int64_t last = (count - 1) * map.extent();
    lead = kMargin - map.true_lb() - std::min<std::int64_t>(last, 0);
    const std::int64_t end = map.true_ub() + std::max<std::int64_t>(last, 0);
    bytes.resize(static_cast<std::size_t>(lead + end + kMargin));
  }
  std::byte* user() { return bytes.data() + lead; }
  void fill(Maker& maker) {
    const auto start = static_cast<unsigned>(maker.between(0, 255));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>((start + i * 7 + i / 256 * 13) & 0xff);
    }
  }
};

void expect_facts(const Pair& made) {
  EXPECT_EQ(made.type->size(), made.map.size());
  EXPECT_EQ(made.type->lb(), made.map.lb());
  EXPECT_EQ(made.type->extent(), made.map.extent());
  EXPECT_EQ(made.type->true_lb(), made.map.true_lb());
  EXPECT_EQ(made.type->true_extent(), made.map.true_ub() - made.map.true_lb());
  if (made.type->is_contiguous()) {
    // Whatever it says is true; that it says so is tested elsewhere.
    EXPECT_TRUE(made.map.entries.empty() || made.map.size() == made.map.extent());
  }
}

void expect_packed(const Pair& made, Maker& maker) {
  const std::int64_t count = maker.between(1, 3);
  Buffer buffer(made.map, count);
  buffer.fill(maker);
  const auto expected = made.map.pack(buffer.user(), count);
  std::vector<std::byte> packed(expected.size() + 1, std::byte{0x5a});
  made.type->pack(buffer.user(), count, packed.data());
  ASSERT_TRUE(std::equal(expected.begin(), expected.end(), packed.begin()));
  ASSERT_EQ(packed.back(), std::byte{0x5a});

  Buffer copy(made.map, count), reference = copy;
  made.map.unpack(expected, count, reference.user());
  made.type->unpack(expected.data(), count, copy.user());
  ASSERT_EQ(copy.bytes, reference.bytes);

  // The same in parts of any length.
  Buffer again(made.map, count);
  std::vector<std::byte> parts(expected.size());
  for (std::int64_t begin = 0, all = made.type->size() * count; begin < all;) {
    const std::int64_t end = std::min(all, begin + maker.between(1, 1 + all / 3));
    made.type->pack_part(buffer.user(), begin, end, parts.data() + begin);
    made.type->unpack_part(expected.data() + begin, begin, end, again.user());
    begin = end;
  }
  ASSERT_EQ(parts, expected);
  ASSERT_EQ(again.bytes, reference.bytes);
}

void expect_elements(const Pair& made, Maker& maker) {
  for (int i = 0; i < 4; ++i) {
    const std::int64_t bytes = maker.between(0, 3 * made.type->size());
    EXPECT_EQ(made.type->elements_in(bytes), made.map.elements_in(bytes)) << bytes << " bytes";
  }
}

// Each basic element is a number that its external form holds.
void expect_external32(const Pair& made, Maker& maker) {
  std::int64_t size = 0;
  for (const model::Entry& entry : made.map.entries) {
    size += facts_of(entry.kind).numbers * facts_of(entry.kind).external_bytes;
  }
  ASSERT_EQ(made.type->external32_size(2).value(), 2 * size);
  ASSERT_EQ(in_external32(made.type).value()->size(), size);
  if (made.map.overlaps()) return;
  Buffer buffer(made.map, 1);
  for (const model::Entry& entry : made.map.entries) {
    std::byte* at = buffer.user() + entry.displacement;
    const KindFacts& facts = facts_of(entry.kind);
    for (int i = 0; i < facts.numbers; ++i, at += size_of(facts.number)) {
      if (facts.number == Number::kLongDouble) {
        const auto value = static_cast<long double>(maker.between(-1'000'000, 1'000'000)) / 3;
        std::memset(at, 0, sizeof value);
        std::memcpy(at, &value, 10);
      } else {
        at[0] = static_cast<std::byte>(maker.between(0, 127));
        if (size_of(facts.number) > 1) at[1] = static_cast<std::byte>(maker.between(0, 127));
      }
    }
  }
  std::vector<std::byte> external(static_cast<std::size_t>(size));
  const auto refusal = made.type->pack_external32(buffer.user(), 1, external.data());
  ASSERT_FALSE(refusal) << refusal->text;
  Buffer back(made.map, 1);
  made.type->unpack_external32(external.data(), 1, back.user());
  const auto ours = made.map.pack(back.user(), 1), theirs = made.map.pack(buffer.user(), 1);
  ASSERT_EQ(ours, theirs);

  // A part has the elements that are whole in it.
  const std::int64_t cut = maker.between(0, size);
  std::int64_t place = 0, whole = 0;
  for (const model::Entry& entry : made.map.entries) {
    place += facts_of(entry.kind).numbers * facts_of(entry.kind).external_bytes;
    if (place > cut) break;
    whole += size_of(entry.kind);
  }
  Buffer part(made.map, 1);
  ASSERT_EQ(made.type->unpack_external32_part(external.data(), cut, 1, part.user()), whole);
  const auto packed = made.map.pack(part.user(), 1);
  ASSERT_TRUE(std::equal(packed.begin(), packed.begin() + whole, theirs.begin()));
}

TEST(MpiDatatype, RandomTypesAreAsTheStandardDefinesThem) {
  for (unsigned seed = 0; seed < 6000; ++seed) {
    Maker maker(seed);
    const Pair made = maker.make(static_cast<int>(maker.between(1, 4)));
    SCOPED_TRACE(std::to_string(seed) + ": " + made.text);
    expect_facts(made);
    expect_packed(made, maker);
    expect_elements(made, maker);
    expect_external32(made, maker);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace hocket::mpi
