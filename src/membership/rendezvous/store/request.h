// Requests of clients to a store, its replies, and the encoding of both.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hocket/store.h"

namespace hocket::rendezvous {

enum class Op : std::uint8_t {
  kSet = 1,
  kGet,
  kTryGet,
  kWait,
  kAdd,
  kCompareAndSet,
  kErase,
  kExchange,
  kBarrier,
  kGoodbye,   // this client's claim of its rank ends; answered by closing
  kWatch,     // refused as soon as one of `size` ranks is known not to come
  kWithdraw,  // `rank` of `size` will not come, for the reason in `value`
};

// A value. `op` determines which fields count.
struct StoreRequest {
  Op op = Op::kSet;
  Duration timeout{};  // get, wait, exchange, barrier, watch: from its arrival on
  std::string key;     // or the name of an exchange or barrier
  Bytes value;
  std::optional<Bytes> expected;
  std::int64_t amount = 0;
  int rank = 0;
  int size = 0;
  std::vector<std::string> keys;
};

enum class ReplyCode : std::uint8_t {
  kDone,     // with the value, where there is one to give
  kAbsent,   // there is no such key
  kTimeout,  // `missing` had not come
  kRefused,  // for the reason in `text`
};

// A value. The bytes may be shared by many replies and by the store itself.
struct Reply {
  ReplyCode code = ReplyCode::kDone;
  std::int64_t number = 0;           // of an addition; of all that was missing
  std::vector<std::string> missing;  // keys, or ranks; the first kMaxMissing
  std::string text;
  std::shared_ptr<const Bytes> value;  // of an exchange: a blob for each rank
};

inline constexpr std::size_t kMaxMissing = 64;
// Names of exchanges and barriers by which hocket's own ranks join; users do not know them.
inline constexpr std::string_view kOwnNames = "hocket/";
// Room for both values of a compare-and-set.
inline constexpr std::size_t kMaxPayload = 2 * kMaxValueBytes + 8 * kMaxKeyBytes;

// A request as a frame. `id` returns with the reply.
Bytes encode_request(std::uint32_t id, const StoreRequest& request);

struct NumberedRequest {
  std::uint32_t id = 0;
  StoreRequest request;
};
// Absent if the bytes are no request, or exceed a limit.
std::optional<NumberedRequest> parse_request(std::span<const std::byte> payload);

// A reply as a frame without its value, whose bytes have to follow.
Bytes encode_reply(std::uint32_t id, const Reply& reply);

struct NumberedReply {
  std::uint32_t id = 0;
  Reply reply;
};
std::optional<NumberedReply> parse_reply(std::span<const std::byte> payload);

// The value of an exchange's reply.
Bytes encode_parts(std::span<const std::span<const std::byte>> parts);
std::optional<std::vector<Bytes>> parse_parts(std::span<const std::byte> value, std::size_t count);

}  // namespace hocket::rendezvous
