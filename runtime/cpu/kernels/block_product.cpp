// Tiles of 6 rows x 4 vectors stay in registers over all terms; what is left over goes in smaller tiles.
#include "runtime/cpu/kernels/block_product.hpp"

#include "runtime/cpu/kernels/lanes.hpp"

namespace dlrun::runtime::kernels {

namespace {

template <int Rows, int Vectors>
DLRUN_INLINE void tile(const BlockOut& out, const BlockView& left, const BlockView& right, std::int64_t terms,
                       Sum sum) {
  Floats16 sums[Rows][Vectors];
  DLRUN_UNROLL
  for (int i = 0; i < Rows; ++i) DLRUN_UNROLL
  for (int j = 0; j < Vectors; ++j) {
    sums[i][j] = Floats16{};
    if (sum == Sum::onto) load(sums[i][j], out.data + i * out.row + j * kVector);
  }
  for (std::int64_t term = 0; term < terms; ++term) {
    Floats16 across[Vectors];
    DLRUN_UNROLL
    for (int j = 0; j < Vectors; ++j) load(across[j], right.data + term * right.row + j * kVector);
    DLRUN_UNROLL
    for (int i = 0; i < Rows; ++i) {
      const float down = left.data[i * left.row + term * left.column];
      DLRUN_UNROLL
      for (int j = 0; j < Vectors; ++j) sums[i][j] += across[j] * down;
    }
  }
  DLRUN_UNROLL
  for (int i = 0; i < Rows; ++i) DLRUN_UNROLL
  for (int j = 0; j < Vectors; ++j) store(out.data + i * out.row + j * kVector, sums[i][j]);
}

template <int Vectors>
DLRUN_INLINE void strip(const BlockOut& out, const BlockView& left, const BlockView& right,
                        const BlockSize& size, Sum sum) {
  std::int64_t row = 0;
  const auto at = [&](std::int64_t i) DLRUN_LAMBDA { return BlockOut{out.data + i * out.row, out.row}; };
  const auto from = [&](std::int64_t i) DLRUN_LAMBDA {
    return BlockView{left.data + i * left.row, left.row, left.column};
  };
  for (; row + 6 <= size.rows; row += 6) tile<6, Vectors>(at(row), from(row), right, size.terms, sum);
  for (; row + 2 <= size.rows; row += 2) tile<2, Vectors>(at(row), from(row), right, size.terms, sum);
  for (; row < size.rows; ++row) tile<1, Vectors>(at(row), from(row), right, size.terms, sum);
}

}  // namespace

DLRUN_VERSIONS void block_product(const BlockOut& out, const BlockView& left, const BlockView& right,
                                  const BlockSize& size, Sum sum) {
  std::int64_t column = 0;
  for (; column + 4 * kVector <= size.columns; column += 4 * kVector)
    strip<4>({out.data + column, out.row}, left, {right.data + column, right.row}, size, sum);
  for (; column + 2 * kVector <= size.columns; column += 2 * kVector)
    strip<2>({out.data + column, out.row}, left, {right.data + column, right.row}, size, sum);
  for (; column < size.columns; column += kVector)
    strip<1>({out.data + column, out.row}, left, {right.data + column, right.row}, size, sum);
}

}  // namespace dlrun::runtime::kernels
