// Requests of clients to a store, the store's replies, and the encoding of both.
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
  kGoodbye,   // the client gives up its rank; answered by closing the connection
  kWatch,     // refused as soon as one of `size` ranks certainly will not come
  kWithdraw,  // `rank` of `size` will not come, for the reason in `value`
};

// A request. A value. `op` determines which fields count.
struct StoreRequest {
  Op op = Op::kSet;
  Duration timeout{};  // get, wait, exchange, barrier, watch: from the arrival on
  std::string key;     // or the name of an exchange or barrier
  Bytes value;
  std::optional<Bytes> expected;
  std::int64_t amount = 0;
  int rank = 0;
  int size = 0;
  std::vector<std::string> keys;
};

enum class ReplyCode : std::uint8_t {
  kDone,     // with the value, if there is one
  kAbsent,   // there is no such key
  kTimeout,  // `missing` has the keys or ranks that had not come
  kRefused,  // `text` has the reason
};

// A reply. A value. Many replies, and the store itself, may share the bytes.
struct Reply {
  ReplyCode code = ReplyCode::kDone;
  std::int64_t number = 0;  // the sum of an addition; or how many keys or ranks were missing
  std::vector<std::string> missing;  // the first kMaxMissing keys or ranks
  std::string text;
  std::shared_ptr<const Bytes> value;  // for an exchange: a blob for each rank
};

inline constexpr std::size_t kMaxMissing = 64;
// The prefix of the exchanges and barriers by which hocket's own ranks join. Users do not know
// these names.
inline constexpr std::string_view kOwnNames = "hocket/";
// Returns a name as texts show it: in quotes, or "the job" for hocket's own names.
std::string shown_name(std::string_view name);
// The largest number of ranks that can meet.
inline constexpr int kMostRanks = 1 << 20;
// The largest payload. It has room for both values of a compare-and-set.
inline constexpr std::size_t kMaxPayload = 2 * kMaxValueBytes + 8 * kMaxKeyBytes;

// Encodes a request as a frame. The reply has the same `id`.
Bytes encode_request(std::uint32_t id, const StoreRequest& request);

struct NumberedRequest {
  std::uint32_t id = 0;
  StoreRequest request;
};
// Decodes a request. Absent if the bytes are no request, or exceed a limit.
std::optional<NumberedRequest> parse_request(std::span<const std::byte> payload);

// Encodes a reply as a frame without its value. The sender must send the bytes of the value behind
// it.
Bytes encode_reply(std::uint32_t id, const Reply& reply);

struct NumberedReply {
  std::uint32_t id = 0;
  Reply reply;
};
std::optional<NumberedReply> parse_reply(std::span<const std::byte> payload);

// Encode and decode the value of the reply to an exchange: one blob for each rank.
Bytes encode_parts(std::span<const std::span<const std::byte>> parts);
std::optional<std::vector<Bytes>> parse_parts(std::span<const std::byte> value, std::size_t count);

}  // namespace hocket::rendezvous
