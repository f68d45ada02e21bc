#include <cstring>

#include "arrays/matmul/local.h"

namespace hocket::matmul {
namespace {

class HostLocal final : public Local {
 public:
  HostLocal() : blas_(find_blas()) {}

  const cuda::DeviceContext* device() const noexcept override { return nullptr; }
  const std::string& library() const noexcept override { return blas_->name(); }
  MemoryKind memory() const noexcept override { return MemoryKind::kHost; }
  DType factor_dtype(DType dtype) const noexcept override {
    return size_of(dtype) < size_of(DType::kFloat32) ? DType::kFloat32 : dtype;
  }
  bool multiplies(DType, DType) override { return false; }
  bool multiplies_afar() const noexcept override { return true; }
  std::size_t panel() const noexcept override { return 512; }  // few enough elements for the caches
  std::size_t panel_bytes() const noexcept override { return std::size_t{4} << 20; }

  Room room(std::size_t bytes) const override {
    if (bytes == 0) return {};
    auto memory = std::make_shared_for_overwrite<std::byte[]>(bytes);
    std::byte* const data = memory.get();
    return {std::move(memory), data, bytes};
  }
  ArrayView view(std::byte* at, std::size_t count, DType dtype) const override {
    return {at, count, dtype};
  }
  void prepare(Patch&, Change) const override {}

  void begin(std::optional<StreamRef>) override {}
  void end() override {}

  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void copy(const Patch& patch,
            Columns<const std::byte> from,
            Columns<std::byte> to,
            DType dtype,
            Change change) override {
    copy_block(patch.rows, patch.columns, from, to, dtype, change);
  }
  void clear(std::byte* at, std::size_t bytes) override {
    if (bytes > 0) std::memset(at, 0, bytes);
  }
  void multiply(const LocalProduct& product) override { blas_->multiply(product); }
  void finish(const Finish& finish) override { matmul::finish(finish); }

  std::size_t rooms() const noexcept override { return 1; }
  void begin_fill(std::size_t) override {}
  void end_fill(std::size_t) override {}
  void begin_use(std::size_t) override {}
  void end_use(std::size_t) override {}

  std::optional<StreamRef> aside() override { return {}; }
  void join(Work& work) override { work.wait(); }

 private:
  const std::shared_ptr<Blas> blas_;
};

}  // namespace

std::unique_ptr<Local> host_local() { return std::make_unique<HostLocal>(); }

}  // namespace hocket::matmul
