// Products of small matrices of f32 that lie in a cache. The second one's rows lie side by side in whole
// vectors; the first may be turned. It splits nothing over threads: its callers do.
#pragma once

#include <cstdint>

namespace dlrun::runtime::kernels {

/// A matrix by its first element: element (i, j) is at i * row + j * column.
struct BlockView {
  const float* data;
  std::int64_t row, column = 1;
  BlockView turned() const { return {data, column, row}; }
};

struct BlockOut {
  float* data;
  std::int64_t row;
};

enum class Sum { anew, onto };

struct BlockSize {
  std::int64_t rows, columns, terms;  // columns: a multiple of 16
};

/// out = left x right, or out += left x right; right's columns lie side by side.
void block_product(const BlockOut& out, const BlockView& left, const BlockView& right, const BlockSize& size,
                   Sum sum);

}  // namespace dlrun::runtime::kernels
