// SPDX-License-Identifier: Apache-2.0
#include "nn/kernels/cpu/f32_products.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/whole.h"
#include "nn/kernels/cpu/tile_products.h"
#include "nn/kernels/cpu/tiled_products.h"

namespace penstock::nn::kernels {
namespace {

// A tile of the result has kRows by kColumns. A tile of b (kInner by kColumns) stays in the L2 cache while
// the rows of a group are multiplied by it; packing it takes a small part of that time.
constexpr std::int64_t kRows = 96, kColumns = 128, kInner = 512, kRowsOfGroup = 1024;

struct Range {
  std::int64_t begin, end;
  std::int64_t size() const { return end - begin; }
};

// A matrix whose rows are contiguous, or whose columns are: then `data` has its transpose.
struct Matrix {
  const float* data;
  std::int64_t stride;
  bool transposed;

  explicit Matrix(const at::Tensor& matrix)
      : data(matrix.const_data_ptr<float>()),
        stride(matrix.stride(1) == 1 ? matrix.stride(0) : matrix.stride(1)),
        transposed(matrix.stride(1) != 1) {
    PENSTOCK_CHECK(matrix.stride(1) == 1 || matrix.stride(0) == 1, "tiles are read by rows or by columns");
  }
  const float* at(std::int64_t row, std::int64_t column) const {
    return transposed ? data + column * stride + row : data + row * stride + column;
  }
};

// Blocks of rows and of columns for one task.
struct Task {
  Range rows, columns;
};

// Groups of rows, since each packs b; each in as many parts by columns as give all threads the same number of
// tasks.
std::vector<Task> tasks_of(std::int64_t rows, std::int64_t columns) {
  const std::int64_t threads = at::get_num_threads();
  const std::int64_t of_group = kRows * ceil_div(ceil_div(rows, kRows), ceil_div(rows, kRowsOfGroup));
  const std::int64_t groups = ceil_div(rows, of_group), column_blocks = ceil_div(columns, kColumns);
  std::int64_t parts = 1;
  while (groups * parts % threads != 0 && parts < column_blocks) ++parts;
  const std::int64_t of_part = kColumns * ceil_div(column_blocks, parts);
  std::vector<Task> tasks;
  for (std::int64_t row = 0; row < rows; row += of_group) {
    for (std::int64_t column = 0; column < columns; column += of_part)
      tasks.push_back({{row, std::min(row + of_group, rows)}, {column, std::min(column + of_part, columns)}});
  }
  return tasks;
}

class Multiplier {
 public:
  Multiplier(const Matrix& a, const Matrix& b, float* result, std::int64_t stride)
      : a_(a), b_(b), result_(result), stride_(stride), of_b_(kInner * kColumns) {}

  // Multiplies by the terms of one block of K.
  void operator()(const Task& task, Range terms, bool adds) {
    if (a_.transposed) pack_rows_of_a(task.rows, terms);
    for (std::int64_t column = task.columns.begin; column < task.columns.end; column += kColumns) {
      const std::int64_t width = std::min(kColumns, task.columns.end - column);
      pack_tile_of_b(terms, column, width);
      for (std::int64_t row = task.rows.begin; row < task.rows.end; row += kRows) {
        const bool packed = a_.transposed;
        const float* left =
            packed ? of_a_.data() + (row - task.rows.begin) * kInner : a_.at(row, terms.begin);
        TileProduct<float>{std::min(kRows, task.rows.end - row),
                           width,
                           terms.size(),
                           packed ? kInner : a_.stride,
                           width,
                           stride_,
                           adds}(left, of_b_.data(), result_ + row * stride_ + column);
      }
    }
  }

 private:
  void pack_rows_of_a(Range rows, Range terms) {
    of_a_.resize(static_cast<std::size_t>(rows.size() * kInner));
    transpose_rows(a_.at(rows.begin, terms.begin), a_.stride, terms.size(), rows.size(), kInner,
                   of_a_.data());
  }
  void pack_tile_of_b(Range terms, std::int64_t column, std::int64_t width) {
    const float* from = b_.at(terms.begin, column);
    if (b_.transposed) {
      pack_transposed(from, b_.stride, width, terms.size(), width, of_b_.data());
    } else {
      for (std::int64_t k = 0; k < terms.size(); ++k)
        std::copy_n(from + k * b_.stride, width, of_b_.data() + k * width);
    }
  }

  Matrix a_, b_;
  float* result_;
  std::int64_t stride_;
  std::vector<float> of_a_, of_b_;
};

}  // namespace

bool f32_is_faster_by_tiles() {
  static const bool faster = [] {
    __builtin_cpu_init();
    return __builtin_cpu_is("amd") && __builtin_cpu_supports("avx512vp2intersect") &&
           has_tile_products(at::kFloat);
  }();
  return faster;
}

void multiply_by_tiles(at::Tensor& result, const at::Tensor& a, const at::Tensor& b, bool adds) {
  PENSTOCK_CHECK(result.stride(1) == 1, "results have contiguous rows");
  const std::int64_t inner = a.size(1);
  if (result.numel() == 0) return;
  if (inner == 0 && !adds) result.zero_();
  const Matrix left(a), right(b);
  const std::vector<Task> tasks = tasks_of(a.size(0), b.size(1));
  float* sums = result.data_ptr<float>();
  at::parallel_for(0, std::ssize(tasks), 1, [&](std::int64_t begin, std::int64_t end) {
    Multiplier multiply(left, right, sums, result.stride(0));
    for (std::int64_t task = begin; task < end; ++task) {
      for (std::int64_t k = 0; k < inner; k += kInner)
        multiply(tasks[task], {k, std::min(k + kInner, inner)}, adds || k > 0);
    }
    release_products<float>();
  });
}

}  // namespace penstock::nn::kernels
