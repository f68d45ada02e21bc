#include "membership/rendezvous/store/request.h"

#include <fmt/format.h>

#include "membership/rendezvous/wire/wire.h"

namespace hocket::rendezvous {

std::string shown_name(std::string_view name) {
  return name.starts_with(kOwnNames) ? "the job" : fmt::format("\"{}\"", name);
}

namespace {

void write_fields(WireWriter& writer, const StoreRequest& request) {
  switch (request.op) {
    case Op::kGet:
      writer.i64(request.timeout.count());
      return;
    case Op::kSet:
      writer.blob(request.value);
      return;
    case Op::kWait:
      writer.i64(request.timeout.count());
      writer.u32(static_cast<std::uint32_t>(request.keys.size()));
      for (const auto& key : request.keys) writer.text(key);
      return;
    case Op::kAdd:
      writer.i64(request.amount);
      return;
    case Op::kCompareAndSet:
      writer.u8(request.expected ? 1 : 0);
      if (request.expected) writer.blob(*request.expected);
      writer.blob(request.value);
      return;
    case Op::kExchange:
    case Op::kBarrier:
    case Op::kWatch:
    case Op::kWithdraw:
      writer.i64(request.timeout.count());
      writer.u32(static_cast<std::uint32_t>(request.rank));
      writer.u32(static_cast<std::uint32_t>(request.size));
      writer.blob(request.value);
      return;
    case Op::kTryGet:
    case Op::kErase:
    case Op::kGoodbye:
      return;
  }
}

Bytes read_value(WireReader& reader) {
  const auto bytes = reader.blob(kMaxValueBytes);
  return Bytes(bytes.begin(), bytes.end());
}

void read_fields(WireReader& reader, StoreRequest& request) {
  switch (request.op) {
    case Op::kGet:
      request.timeout = Duration(reader.i64());
      return;
    case Op::kSet:
      request.value = read_value(reader);
      return;
    case Op::kWait: {
      request.timeout = Duration(reader.i64());
      const std::uint32_t count = reader.u32();
      for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
        request.keys.push_back(reader.text(kMaxKeyBytes));
      }
      return;
    }
    case Op::kAdd:
      request.amount = reader.i64();
      return;
    case Op::kCompareAndSet:
      if (reader.u8() != 0) request.expected = read_value(reader);
      request.value = read_value(reader);
      return;
    case Op::kExchange:
    case Op::kBarrier:
    case Op::kWatch:
    case Op::kWithdraw:
      request.timeout = Duration(reader.i64());
      request.rank = static_cast<int>(reader.u32());
      request.size = static_cast<int>(reader.u32());
      request.value = read_value(reader);
      return;
    case Op::kTryGet:
    case Op::kErase:
    case Op::kGoodbye:
      return;
  }
}

}  // namespace

Bytes encode_request(std::uint32_t id, const StoreRequest& request) {
  WireWriter writer;
  writer.u32(id);
  writer.u8(static_cast<std::uint8_t>(request.op));
  writer.text(request.key);
  write_fields(writer, request);
  return std::move(writer).frame();
}

std::optional<NumberedRequest> parse_request(std::span<const std::byte> payload) {
  WireReader reader(payload);
  NumberedRequest parsed;
  parsed.id = reader.u32();
  const std::uint8_t op = reader.u8();
  if (op < static_cast<std::uint8_t>(Op::kSet) || op > static_cast<std::uint8_t>(Op::kWithdraw)) {
    return std::nullopt;
  }
  parsed.request.op = static_cast<Op>(op);
  parsed.request.key = reader.text(kMaxKeyBytes);
  read_fields(reader, parsed.request);
  if (!reader.finished()) return std::nullopt;
  return parsed;
}

Bytes encode_reply(std::uint32_t id, const Reply& reply) {
  WireWriter writer;
  writer.u32(id);
  writer.u8(static_cast<std::uint8_t>(reply.code));
  writer.i64(reply.number);
  writer.text(reply.text);
  writer.u32(static_cast<std::uint32_t>(reply.missing.size()));
  for (const auto& each : reply.missing) writer.text(each);
  writer.u8(reply.value ? 1 : 0);
  return std::move(writer).frame(reply.value ? reply.value->size() : 0);
}

std::optional<NumberedReply> parse_reply(std::span<const std::byte> payload) {
  WireReader reader(payload);
  NumberedReply parsed;
  parsed.id = reader.u32();
  const std::uint8_t code = reader.u8();
  if (code > static_cast<std::uint8_t>(ReplyCode::kRefused)) return std::nullopt;
  parsed.reply.code = static_cast<ReplyCode>(code);
  parsed.reply.number = reader.i64();
  parsed.reply.text = reader.text(4 * kMaxKeyBytes);
  const std::uint32_t missing = reader.u32();
  if (missing > kMaxMissing) return std::nullopt;
  for (std::uint32_t i = 0; i < missing && reader.ok(); ++i) {
    parsed.reply.missing.push_back(reader.text(kMaxKeyBytes));
  }
  if (reader.u8() != 0) {
    const auto value = reader.rest();
    parsed.reply.value = std::make_shared<const Bytes>(value.begin(), value.end());
  }
  if (!reader.finished()) return std::nullopt;
  return parsed;
}

Bytes encode_parts(std::span<const std::span<const std::byte>> parts) {
  WireWriter writer;
  for (const auto& part : parts) writer.blob(part);
  return writer.payload();
}

std::optional<std::vector<Bytes>> parse_parts(std::span<const std::byte> value, std::size_t count) {
  WireReader reader(value);
  std::vector<Bytes> parts;
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    const auto part = reader.blob(kMaxValueBytes);
    parts.emplace_back(part.begin(), part.end());
  }
  if (!reader.finished()) return std::nullopt;
  return parts;
}

}  // namespace hocket::rendezvous
