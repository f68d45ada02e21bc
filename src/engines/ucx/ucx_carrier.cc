#include "engines/ucx/ucx_carrier.h"

#include <fmt/format.h>

namespace hocket::engines::ucx {
namespace {

using engine::Fate;

// The least bytes of a direct message if the user forces direct transport (HOCKET_UCX_BULK).
constexpr std::size_t kForcedFrom = 64 * 1024;

}  // namespace

UcxCarrier::UcxCarrier(std::shared_ptr<const UcxLibrary> library,
                       ListenOptions listening,
                       Bulk bulk)
    : library_(std::move(library)),
      listening_(std::move(listening)),
      fabric_(std::make_shared<Fabric>(library_, options(bulk))),
      gpu_fabrics_([this](const auto& device) { return make_gpu_fabric(device); }) {}

FabricOptions UcxCarrier::options(Bulk bulk) const {
  FabricOptions options{.listening = listening_};
  options.wake = [this] {
    if (attached_) links_.wake();
  };
  options.help = [this] {
    if (attached_) links_.help();
  };
  options.fate = [this](int rank) { return fate(rank); };
  options.bulk = bulk;
  if (bulk == Bulk::kDirect) options.direct_from = kForcedFrom;
  return options;
}

std::shared_ptr<Fabric> UcxCarrier::make_gpu_fabric(const DeviceFabrics::Device& device) const {
  FabricOptions options{.listening = listening_};
  options.fate = [this](int rank) { return fate(rank); };
  options.gpus = true;
  options.device = device;
  return std::make_shared<Fabric>(library_, std::move(options));
}

void UcxCarrier::attach(engine::CarrierLinks links) {
  links_ = std::move(links);
  attached_ = true;
}

engine::Fate UcxCarrier::fate(int rank) const {
  return attached_ ? links_.fate(rank) : Fate::kHere;
}

engine::ClosedWay UcxCarrier::why_unreachable(int rank) {
  engine::ClosedWay way;
  way.text = fabric_->why_unreachable(rank);
  if (way.text.empty() && fabric_->is_on_trial(rank)) {
    way = {.text = "no trial message has come from there", .is_awaited = true};
  }
  if (way.text.empty()) return way;
  way.text = fmt::format(
      "by UCX: {}; see that its interfaces are up (`hocket doctor`), that no firewall keeps the "
      "hosts apart (HOCKET_PORTS), and UCX_TLS, UCX_NET_DEVICES and HOCKET_INTERFACE",
      way.text);
  return way;
}

bool UcxCarrier::flush(base::Deadline deadline) noexcept {
  const bool done = fabric_->flush(deadline);
  return gpu_fabrics_.flush(deadline) && done;
}

void UcxCarrier::retire() noexcept {
  fabric_->retire();
  gpu_fabrics_.retire();
}

}  // namespace hocket::engines::ucx
