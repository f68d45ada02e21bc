#include "arrays/matmul/gpu_kernels.h"

#include <algorithm>

#include "arrays/matmul/axis.h"

namespace hocket::matmul {
namespace {

constexpr unsigned kThreads = 256;
constexpr std::size_t kMostColumns = 4096;  // blocks of threads along the columns

// Each thread has a row, and copies every n-th column, where n is the number of blocks along the
// columns.
constexpr const char* kCopy = R"(
.version 6.0
.target sm_60
.address_size 64
.visible .entry NAME(.param .u64 from, .param .u64 to, .param .u64 table,
  .param .u32 rows, .param .u32 columns, .param .u64 from_stride, .param .u64 to_stride)
{
  .reg .pred %is_over;
  .reg .u32 %i, %j, %rows, %columns, %at, %wide, %step;
  .reg .u64 %from, %to, %table, %from_stride, %to_stride, %address, %offset;
  REGISTERS
  ld.param.u64 %from, [from];
  ld.param.u64 %to, [to];
  ld.param.u64 %table, [table];
  ld.param.u32 %rows, [rows];
  ld.param.u32 %columns, [columns];
  ld.param.u64 %from_stride, [from_stride];
  ld.param.u64 %to_stride, [to_stride];
  cvta.to.global.u64 %from, %from;
  cvta.to.global.u64 %to, %to;
  cvta.to.global.u64 %table, %table;
  mul.lo.u64 %from_stride, %from_stride, FROM_SIZE;
  mul.lo.u64 %to_stride, %to_stride, TO_SIZE;
  mov.u32 %i, %ctaid.x;
  mov.u32 %wide, %ntid.x;
  mul.lo.u32 %i, %i, %wide;
  mov.u32 %at, %tid.x;
  add.u32 %i, %i, %at;
  setp.ge.u32 %is_over, %i, %rows;
  @%is_over bra done;
  mul.wide.u32 %address, %i, 4;
  add.u64 %address, %address, %table;
  ld.global.u32 %at, [%address];
  mul.wide.u32 %offset, %at, FROM_SIZE;
  add.u64 %from, %from, %offset;
  mul.wide.u32 %offset, %rows, 4;
  add.u64 %address, %address, %offset;
  ld.global.u32 %at, [%address];
  mul.wide.u32 %offset, %at, TO_SIZE;
  add.u64 %to, %to, %offset;
  mul.wide.u32 %offset, %rows, 8;
  add.u64 %table, %table, %offset;
  mov.u32 %j, %ctaid.y;
  mov.u32 %step, %nctaid.y;
again:
  setp.ge.u32 %is_over, %j, %columns;
  @%is_over bra done;
  mul.wide.u32 %address, %j, 4;
  add.u64 %address, %address, %table;
  ld.global.u32 %at, [%address];
  mul.wide.u32 %offset, %columns, 4;
  add.u64 %address, %address, %offset;
  cvt.u64.u32 %offset, %at;
  mul.lo.u64 %offset, %offset, %from_stride;
  add.u64 %offset, %offset, %from;
  ld.global.u32 %at, [%address];
  cvt.u64.u32 %address, %at;
  mul.lo.u64 %address, %address, %to_stride;
  add.u64 %address, %address, %to;
  MOVE
  add.u32 %j, %j, %step;
  bra again;
done:
  ret;
}
)";

// Converts an E4M3 in %x to a float16 in %y. It shifts the bits to the fields of a float16, and
// multiplies by 256, because the biases of the exponents are 7 and 15. NaN (0x7f) is set apart,
// because its bits would become a number.
constexpr const char* kFromE4M3 =
    "and.b16 %y, %x, 0x7f; setp.eq.u16 %is_nan, %y, 0x7f; shl.b16 %y, %y, 7; and.b16 %x, %x, 0x80; "
    "shl.b16 %x, %x, 8; or.b16 %y, %y, %x; mov.b16 %x, 0x5c00; mul.f16 %y, %y, %x; "
    "@%is_nan or.b16 %y, %y, 0x7fff;";

struct CopyText {
  const char *name, *from_size, *to_size, *registers, *move;
};
constexpr std::array<CopyText, 9> kElements{{
    {"hocket_copy_1",
     "1",
     "1",
     ".reg .b16 %x;",
     "ld.global.u8 %x, [%offset]; st.global.u8 [%address], %x;"},
    {"hocket_copy_2",
     "2",
     "2",
     ".reg .b16 %x;",
     "ld.global.b16 %x, [%offset]; st.global.b16 [%address], %x;"},
    {"hocket_copy_4",
     "4",
     "4",
     ".reg .b32 %x;",
     "ld.global.b32 %x, [%offset]; st.global.b32 [%address], %x;"},
    {"hocket_copy_8",
     "8",
     "8",
     ".reg .b64 %x;",
     "ld.global.b64 %x, [%offset]; st.global.b64 [%address], %x;"},
    {"hocket_copy_16",
     "16",
     "16",
     ".reg .b64 %x, %y;",
     "ld.global.v2.b64 {%x, %y}, [%offset]; st.global.v2.b64 [%address], {%x, %y};"},
    {"hocket_copy_conjugate_8",
     "8",
     "8",
     ".reg .f32 %x, %y;",
     "ld.global.v2.f32 {%x, %y}, [%offset]; neg.f32 %y, %y; st.global.v2.f32 [%address], {%x, "
     "%y};"},
    {"hocket_copy_conjugate_16",
     "16",
     "16",
     ".reg .f64 %x, %y;",
     "ld.global.v2.f64 {%x, %y}, [%offset]; neg.f64 %y, %y; st.global.v2.f64 [%address], {%x, "
     "%y};"},
    {"hocket_copy_e4m3_to_float16",
     "1",
     "2",
     ".reg .b16 %x, %y; .reg .pred %is_nan;",
     "ld.global.u8 %x, [%offset]; FROM_E4M3 st.global.b16 [%address], %y;"},
    {"hocket_copy_e5m2_to_float16",
     "1",
     "2",
     ".reg .b16 %x;",
     "ld.global.u8 %x, [%offset]; shl.b16 %x, %x, 8; st.global.b16 [%address], %x;"},
}};

// Each thread has one row, or four neighbouring rows. If `added` is null, it adds nothing.
constexpr const char* kFinish = R"(
.version 6.0
.target sm_60
.address_size 64
.visible .entry hocket_finish_NAME(.param .u64 sum, .param .u64 added, .param .u64 target,
  .param .u32 rows, .param .u32 columns, .param .u64 sum_stride, .param .u64 added_stride,
  .param .u64 target_stride, .param .f32 alpha, .param .f32 beta)
{
  .reg .pred %is_over, %is_alone, %is_nan, %is_small;
  .reg .u32 %i, %j, %rows, %columns, %at, %step, %bits, %odd, %sign;
  .reg .u64 %sum, %added, %target, %sum_stride, %added_stride, %target_stride, %address, %offset, %row, %column;
  .reg .f32 %alpha, %beta, %value<4>, %more;
  .reg .b16 %half<4>, %x, %y;
  ld.param.u64 %sum, [sum];
  ld.param.u64 %added, [added];
  ld.param.u64 %target, [target];
  ld.param.u32 %rows, [rows];
  ld.param.u32 %columns, [columns];
  ld.param.u64 %sum_stride, [sum_stride];
  ld.param.u64 %added_stride, [added_stride];
  ld.param.u64 %target_stride, [target_stride];
  ld.param.f32 %alpha, [alpha];
  ld.param.f32 %beta, [beta];
  setp.eq.u64 %is_alone, %added, 0;
  cvta.to.global.u64 %sum, %sum;
  cvta.to.global.u64 %target, %target;
  @!%is_alone cvta.to.global.u64 %added, %added;
  mov.u32 %i, %ctaid.x;
  mov.u32 %at, %ntid.x;
  mul.lo.u32 %i, %i, %at;
  mov.u32 %at, %tid.x;
  add.u32 %i, %i, %at;
  setp.ge.u32 %is_over, %i, %rows;
  @%is_over bra done;
  cvt.u64.u32 %row, %i;
  shl.b64 %row, %row, SHIFT;
  mov.u32 %j, %ctaid.y;
  mov.u32 %step, %nctaid.y;
again:
  setp.ge.u32 %is_over, %j, %columns;
  @%is_over bra done;
  cvt.u64.u32 %column, %j;
  mul.lo.u64 %offset, %column, %sum_stride;
  add.u64 %offset, %offset, %row;
  shl.b64 %offset, %offset, 2;
  add.u64 %address, %sum, %offset;
  ld.globalWIDE.f32 VALUES, [%address];
  mul.lo.u64 %offset, %column, %added_stride;
  add.u64 %offset, %offset, %row;
  mul.lo.u64 %offset, %offset, SIZE;
  add.u64 %address, %added, %offset;
  @!%is_alone ld.globalWIDE.BITS HALVES, [%address];
  EACH
  mul.lo.u64 %offset, %column, %target_stride;
  add.u64 %offset, %offset, %row;
  mul.lo.u64 %offset, %offset, SIZE;
  add.u64 %address, %target, %offset;
  st.globalWIDE.BITS [%address], HALVES;
  add.u32 %j, %j, %step;
  bra again;
done:
  ret;
}
)";
constexpr const char* kFinishOne = R"(
  mul.rn.f32 %valueNTH, %valueNTH, %alpha;
  @%is_alone bra narrowNTH;
  WIDEN
  mul.rn.f32 %more, %more, %beta;
  add.rn.f32 %valueNTH, %valueNTH, %more;
narrowNTH:
  NARROW
)";
constexpr const char* kWidenFloat16 = "cvt.f32.f16 %more, %halfNTH;";
constexpr const char* kNarrowFloat16 = "cvt.rn.f16.f32 %halfNTH, %valueNTH;";
// A bfloat16 is the upper half of a float32, rounded to nearest even.
constexpr const char* kWidenBFloat16 =
    "cvt.u32.u16 %bits, %halfNTH; shl.b32 %bits, %bits, 16; mov.b32 %more, %bits;";
constexpr const char* kNarrowBFloat16 =
    "mov.b32 %bits, %valueNTH; shr.u32 %odd, %bits, 16; and.b32 %odd, %odd, 1; "
    "add.u32 %bits, %bits, 0x7fff; add.u32 %bits, %bits, %odd; shr.u32 %bits, %bits, 16; "
    "setp.nan.f32 %is_nan, %valueNTH, %valueNTH; @%is_nan mov.u32 %bits, 0x7fff; "
    "cvt.u16.u32 %halfNTH, %bits;";
constexpr const char* kWidenE4M3 = "mov.b16 %x, %halfNTH; FROM_E4M3 cvt.f32.f16 %more, %y;";
constexpr const char* kWidenE5M2 = "shl.b16 %y, %halfNTH, 8; cvt.f32.f16 %more, %y;";
// Does the same as SmallFormat::encode, except that numbers which are too large become the largest.
constexpr const char* kNarrowFloat8 =
    "mov.b32 %bits, %valueNTH; shr.u32 %sign, %bits, 24; and.b32 %sign, %sign, 0x80; "
    "abs.f32 %more, %valueNTH; setp.nan.f32 %is_nan, %more, %more; "
    "min.f32 %more, %more, 0fLARGEST; setp.lt.f32 %is_small, %more, 0fNORMAL; "
    "@%is_small add.rn.f32 %more, %more, 0fMAGIC; mov.b32 %bits, %more; "
    "shr.u32 %odd, %bits, PLACES; and.b32 %odd, %odd, 1; "
    "@%is_small sub.u32 %bits, %bits, 0xMAGIC; @!%is_small add.u32 %bits, %bits, %odd; "
    "@!%is_small add.u32 %bits, %bits, 0xROUNDING; @!%is_small shr.u32 %bits, %bits, PLACES; "
    "or.b32 %bits, %bits, %sign; @%is_nan or.b32 %bits, %bits, 0x7f; cvt.u16.u32 %halfNTH, %bits;";
constexpr unsigned kTogether = 4;

struct FinishText {
  std::array<const char*, 2> names;  // for one row, and for four
  const char *size, *bits, *widen, *narrow;
  const char *largest = "", *normal = "", *magic = "", *places = "", *rounding = "";  // for 8 bits
};
constexpr std::array<FinishText, 4> kFinishes{
    {{.names = {"hocket_finish_float16", "hocket_finish_float16_by_4"},
      .size = "2",
      .bits = "b16",
      .widen = kWidenFloat16,
      .narrow = kNarrowFloat16},
     {.names = {"hocket_finish_bfloat16", "hocket_finish_bfloat16_by_4"},
      .size = "2",
      .bits = "b16",
      .widen = kWidenBFloat16,
      .narrow = kNarrowBFloat16},
     {.names = {"hocket_finish_e4m3", "hocket_finish_e4m3_by_4"},
      .size = "1",
      .bits = "u8",
      .widen = kWidenE4M3,
      .narrow = kNarrowFloat8,
      .largest = "43E00000",
      .normal = "3C800000",
      .magic = "46800000",
      .places = "20",
      .rounding = "C407FFFF"},
     {.names = {"hocket_finish_e5m2", "hocket_finish_e5m2_by_4"},
      .size = "1",
      .bits = "u8",
      .widen = kWidenE5M2,
      .narrow = kNarrowFloat8,
      .largest = "47600000",
      .normal = "38800000",
      .magic = "43000000",
      .places = "21",
      .rounding = "C80FFFFF"}}};

std::size_t finish_number(DType dtype) {
  return dtype == DType::kFloat16      ? 0
         : dtype == DType::kBFloat16   ? 1
         : dtype == DType::kFloat8E4M3 ? 2
                                       : 3;
}

std::string finish_text(const FinishText& words, bool is_wide) {
  std::string each;
  for (unsigned i = 0; i < (is_wide ? kTogether : 1); ++i) {
    each += cuda::with_words(kFinishOne,
                             {{"WIDEN", words.widen},
                              {"NARROW", words.narrow},
                              {"NTH", std::to_string(i)},
                              {"FROM_E4M3", kFromE4M3},
                              {"LARGEST", words.largest},
                              {"NORMAL", words.normal},
                              {"MAGIC", words.magic},
                              {"PLACES", words.places},
                              {"ROUNDING", words.rounding}});
  }
  const std::string name = words.names[is_wide];
  return cuda::with_words(kFinish,
                          {{"hocket_finish_NAME", name},
                           {"VALUES", is_wide ? "{%value0, %value1, %value2, %value3}" : "%value0"},
                           {"HALVES", is_wide ? "{%half0, %half1, %half2, %half3}" : "%half0"},
                           {"SHIFT", is_wide ? "2" : "0"},
                           {"WIDE", is_wide ? ".v4" : ""},
                           {"SIZE", words.size},
                           {"BITS", words.bits},
                           {"EACH", each}});
}

// Returns whether four neighbouring rows can be read or written by one access.
bool is_even(const void* at, std::size_t stride, std::size_t element) {
  const std::size_t bytes = kTogether * element;
  return reinterpret_cast<std::uintptr_t>(at) % bytes == 0 && stride % kTogether == 0;
}

cuda::LaunchConfig config_of(std::size_t rows, std::size_t columns, cuda::Stream stream) {
  return {.grid_x = static_cast<unsigned>((rows + kThreads - 1) / kThreads),
          .grid_y = static_cast<unsigned>(std::min(columns, kMostColumns)),
          .block_x = kThreads,
          .stream = stream};
}

}  // namespace

std::vector<std::uint32_t> table_of(const std::vector<Run>& rows, const std::vector<Run>& columns) {
  std::vector<std::uint32_t> table;
  table.reserve(2 * (total(rows) + total(columns)));
  for (const auto* runs : {&rows, &columns}) {
    for (const auto end : {&Run::from, &Run::to}) {
      for (const Run& run : *runs) {
        for (std::size_t i = 0; i < run.length; ++i) {
          table.push_back(static_cast<std::uint32_t>(run.*end + i));
        }
      }
    }
  }
  return table;
}

GpuKernels::Element GpuKernels::element_of(DType dtype, Change change) {
  if (change == Change::kConjugate) {
    return dtype == DType::kComplex64 ? Element::kComplex64 : Element::kComplex128;
  }
  if (change == Change::kToFloat16) {
    return dtype == DType::kFloat8E4M3 ? Element::kFloat8E4M3 : Element::kFloat8E5M2;
  }
  const std::size_t bytes = size_of(dtype);
  return bytes == 1   ? Element::k1
         : bytes == 2 ? Element::k2
         : bytes == 4 ? Element::k4
         : bytes == 8 ? Element::k8
                      : Element::k16;
}

const cuda::TextKernel& GpuKernels::copier(Element element) {
  const auto i = static_cast<std::size_t>(element);
  const CopyText& words = kElements[i];
  if (!copiers_[i]) {
    copiers_[i].emplace(device_,
                        cuda::with_words(kCopy,
                                         {{"NAME", words.name},
                                          {"FROM_SIZE", words.from_size},
                                          {"TO_SIZE", words.to_size},
                                          {"REGISTERS", words.registers},
                                          {"MOVE", words.move},
                                          {"FROM_E4M3", kFromE4M3}}),
                        words.name);
  }
  return *copiers_[i];
}

const cuda::TextKernel& GpuKernels::finisher(DType dtype, bool is_wide) {
  const std::size_t i = finish_number(dtype);
  auto& kernel = finishers_[i][is_wide];
  if (!kernel) {
    kernel.emplace(device_, finish_text(kFinishes[i], is_wide), kFinishes[i].names[is_wide]);
  }
  return *kernel;
}

void GpuKernels::copy(const void* table,
                      std::size_t rows,
                      std::size_t columns,
                      Columns<const std::byte> from,
                      Columns<std::byte> to,
                      DType dtype,
                      Change change,
                      cuda::Stream stream) {
  if (rows == 0 || columns == 0) return;
  auto row_count = static_cast<std::uint32_t>(rows),
       column_count = static_cast<std::uint32_t>(columns);
  void* arguments[] = {
      &from.at, &to.at, &table, &row_count, &column_count, &from.stride, &to.stride};
  copier(element_of(dtype, change)).launch(config_of(rows, columns, stream), arguments);
}

void GpuKernels::finish(const Finish& finish, cuda::Stream stream) {
  Finish f = finish;
  const bool is_wide = f.rows % kTogether == 0 && is_even(f.sum.at, f.sum.stride, sizeof(float)) &&
                       is_even(f.added.at, f.added.stride, size_of(f.dtype)) &&
                       is_even(f.target.at, f.target.stride, size_of(f.dtype));
  const std::size_t parts = is_wide ? f.rows / kTogether : f.rows;
  auto rows = static_cast<std::uint32_t>(parts), columns = static_cast<std::uint32_t>(f.columns);
  auto alpha = static_cast<float>(f.alpha.real()), beta = static_cast<float>(f.beta.real());
  void* arguments[] = {&f.sum.at,
                       &f.added.at,
                       &f.target.at,
                       &rows,
                       &columns,
                       &f.sum.stride,
                       &f.added.stride,
                       &f.target.stride,
                       &alpha,
                       &beta};
  finisher(f.dtype, is_wide).launch(config_of(parts, f.columns, stream), arguments);
}

}  // namespace hocket::matmul
