// Plans and executes products.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <complex>

#include "arrays/distribution/same_plan.h"
#include "arrays/matmul/agreement.h"
#include "arrays/matmul/forms.h"
#include "calls/call/request.h"
#include "calls/world/array_calls.h"
#include "foundation/base/hash.h"
#include "foundation/cuda/memory.h"
#include "hocket/error.h"
#include "hocket/gpu.h"

namespace hocket {

using namespace matmul;

namespace {

template <typename A, typename B>
bool overlap(const A& a, const B& b) {
  const auto x = reinterpret_cast<std::uintptr_t>(a.data()),
             y = reinterpret_cast<std::uintptr_t>(b.data());
  return a.bytes() > 0 && b.bytes() > 0 && x < y + b.bytes() && y < x + a.bytes();
}

void require_part(const ConstArrayView& array,
                  const char* name,
                  DType dtype,
                  std::size_t rows,
                  std::size_t columns,
                  const Local& local) {
  call::require_array(array, name);
  if (array.memory() != local.memory()) {
    throw InvalidArgument(
        local.memory() == MemoryKind::kHost
            ? fmt::format(
                  "{} is in a GPU's memory, and the plan is for the host's; give the plan a "
                  "gpu, or copy the array",
                  name)
            : fmt::format("{} is in the host's memory, and the plan is for GPU {}",
                          name,
                          local.device()->ordinal()));
  }
  if (array.dtype() != dtype || array.count() != rows * columns) {
    throw InvalidArgument(fmt::format("{} is {}[{}], expected {}[{}]: {} x {} of the plan",
                                      name,
                                      name_of(array.dtype()),
                                      array.count(),
                                      name_of(dtype),
                                      rows * columns,
                                      rows,
                                      columns));
  }
  if (local.device() == nullptr || array.count() == 0) return;
  const int gpu = cuda::gpu_of(local.device()->driver(), array, name);
  if (gpu == local.device()->ordinal()) return;
  throw InvalidArgument(fmt::format(
      "{} lies on GPU {}, and the plan is for GPU {}", name, gpu, local.device()->ordinal()));
}

void require_scale(MatmulFactor scale, const char* name, DType dtype) {
  if (scale.imag == 0 || dtype == DType::kComplex64 || dtype == DType::kComplex128) return;
  throw InvalidArgument(
      fmt::format("{} is complex, and the matrices are {}", name, name_of(dtype)));
}

void require_aligned(const ConstArrayView& array, const char* name) {
  if (reinterpret_cast<std::uintptr_t>(array.data()) % kFloat8Unit == 0) return;
  throw InvalidArgument(
      fmt::format("{} does not begin at a multiple of {} bytes, which products of 8-bit floats by "
                  "cuBLASLt ask for; copy it",
                  name,
                  kFloat8Unit));
}

std::uint64_t mix_scale(std::uint64_t hash, MatmulFactor scale) {
  hash = base::mix(hash, std::bit_cast<std::uint64_t>(scale.real));
  return base::mix(hash, std::bit_cast<std::uint64_t>(scale.imag));
}

}  // namespace

struct Matmul::Plan {
  Plan(Communicator& c,
       const MatmulSize& size,
       const MatmulOperand& a,
       const MatmulOperand& b,
       const MatmulOperand& d,
       const MatmulOptions& o)
      : comm(c.impl()), options(o) {
    const auto mark = reinterpret_cast<std::uintptr_t>(this);
    token = agree(c, size, a, b, d, o, mark, problem);
    shapes = {local_shape(a.spread, shape_of(a.op, size.m, size.k), c.rank(), c.size()),
              local_shape(b.spread, shape_of(b.op, size.k, size.n), c.rank(), c.size()),
              local_shape(d.spread, {size.m, size.n}, c.rank(), c.size())};
    // If this fails on a rank, that rank refuses the barrier that follows.
    before_call([&] {
      if (o.gpu) device = Gpu(*o.gpu).context();
    });
    meet(0);
    const Here here(*this);
    before_call([&] {
      local = device ? gpu_local(device, o.library_folders) : host_local();
      // The library is asked here, where a failure is reported to all ranks.
      if (is_float8(problem->left.dtype)) {
        local->multiplies(problem->left.dtype, problem->right.dtype);
      }
      choice = choose(*problem, o.form, c.size());
    });
    meet(0);
    const FormParts parts{comm, *problem, *local, o.deadline};
    form = choice.form == MatmulForm::kReduced ? reduced_form(parts, choice.share)
                                               : gathered_form(parts);
    library = local->library();
    if (form->is_narrow()) library.insert(library.find(' '), "Lt");
    before_call([&] { form->reserve(); });
    meet(0);
  }
  ~Plan() {
    const Here here(*this);
    form.reset();
    local.reset();
  }

  // Makes the GPU's context current until the end of the scope; does nothing on the host.
  class Here {
   public:
    explicit Here(const Plan& plan) {
      if (plan.device) guard_.emplace(*plan.device);
    }

   private:
    std::optional<cuda::DeviceGuard> guard_;
  };

  static Extents shape_of(MatrixOp op, std::size_t rows, std::size_t columns) {
    return op == MatrixOp::kNone ? Extents{rows, columns} : Extents{columns, rows};
  }

  template <typename F>
  void before_call(F&& part) {
    world::before_call(comm, engine::Kind::kMatmul, part);
  }

  std::uint64_t digest_of(std::uint64_t step) const noexcept { return base::mix(token, step); }
  // Waits until all ranks have come to this step of the same plan, with the same scales.
  void meet(std::uint64_t step, std::optional<StreamRef> stream = {}) {
    world::barrier(comm, digest_of(step), options.deadline, stream);
  }

  void check(ConstArrayView a,
             ConstArrayView b,
             const ConstArrayView* c,
             ArrayView d,
             const MatmulScale& scale) const {
    const DType in = options.dtype, out = problem->result_dtype;
    require_part(a, "a", in, shapes[0][0], shapes[0][1], *local);
    require_part(b, "b", options.dtype_b.value_or(in), shapes[1][0], shapes[1][1], *local);
    if (c != nullptr) require_part(*c, "c", out, shapes[2][0], shapes[2][1], *local);
    require_part(d, "d", out, shapes[2][0], shapes[2][1], *local);
    require_scale(scale.alpha, "alpha", in);
    require_scale(scale.beta, "beta", in);
    if (overlap(d, a) || overlap(d, b)) {
      throw InvalidArgument("d overlaps a or b, which are read while it is written");
    }
    if (c != nullptr && c->data() != d.data() && overlap(d, *c)) {
      throw InvalidArgument("c and d overlap, and do not begin at one address");
    }
    if (!form->is_narrow()) return;
    require_aligned(a, "a");
    require_aligned(b, "b");
    require_aligned(d, "d");
  }

  void execute(ConstArrayView a,
               ConstArrayView b,
               const ConstArrayView* c,
               ArrayView d,
               const MatmulScale& scale,
               std::optional<StreamRef> stream) {
    const Here here(*this);
    if (device && !stream) stream = StreamRef();
    const auto prepare = [&] {
      if (stream && !device)
        throw InvalidArgument("stream is of GPUs, and the plan is for the host");
      check(a, b, c, d, scale);
      local->begin(stream);
    };
    const bool adds = c != nullptr && (scale.beta.real != 0 || scale.beta.imag != 0);
    Operands operands{.left = a.data(),
                      .right = b.data(),
                      .added = adds ? c->data() : nullptr,
                      .target = d.data(),
                      .alpha = {scale.alpha.real, scale.alpha.imag},
                      .beta = {scale.beta.real, scale.beta.imag}};
    if (problem->is_swapped) std::swap(operands.left, operands.right);
    const std::uint64_t step = mix_scale(mix_scale(adds ? 2 : 1, scale.alpha), scale.beta);
    if (device) {  // on GPUs ranks do not wait for each other on the host
      before_call(prepare);
    } else {
      same.before_executing(options.deadline, prepare, [&] { return digest_of(step); });
    }
    form->run(operands, [&] { meet(step, stream); });
    local->end();
  }

  Communicator comm;  // another handle of the given communicator
  const MatmulOptions options;
  std::optional<Problem> problem;
  std::uint64_t token = 0;
  distribution::SamePlan same{comm, engine::Kind::kMatmul};
  std::array<Extents, 3> shapes;                      // shapes of this rank's A, B and D
  std::shared_ptr<const cuda::DeviceContext> device;  // set for a plan for GPUs
  std::unique_ptr<Local> local;
  std::string library;
  Choice choice;
  std::unique_ptr<ProductForm> form;
};

Matmul::Matmul(Communicator& comm,
               const MatmulSize& size,
               const MatmulOperand& a,
               const MatmulOperand& b,
               const MatmulOperand& d,
               const MatmulOptions& options)
    : plan_(std::make_unique<Plan>(comm, size, a, b, d, options)) {}

Matmul::Matmul(Matmul&&) noexcept = default;
Matmul& Matmul::operator=(Matmul&&) noexcept = default;
Matmul::~Matmul() = default;

void Matmul::operator()(ConstArrayView a,
                        ConstArrayView b,
                        ArrayView d,
                        MatmulFactor alpha,
                        std::optional<StreamRef> stream) {
  plan_->execute(a, b, nullptr, d, {.alpha = alpha, .beta = 0}, stream);
}

void Matmul::operator()(ConstArrayView a,
                        ConstArrayView b,
                        ConstArrayView c,
                        detail::TypedArrayView d,
                        const MatmulScale& scale,
                        std::optional<StreamRef> stream) {
  plan_->execute(a, b, &c, d, scale, stream);
}

const std::string& Matmul::library() const { return plan_->library; }
MatmulForm Matmul::form() const { return plan_->choice.form; }
bool Matmul::is_shared() const { return plan_->form->is_shared(); }

}  // namespace hocket
