// A product of matrices by oneDNN whose memory is named at each call: for operators that work through a value
// in pieces. Sizes and layouts are fixed when it is made.
#pragma once

#include <vector>

#include "runtime/cpu/plan.hpp"

namespace dlrun::runtime {

/// Rows behind each other, or columns: a matrix that is read turned.
enum class MatrixOrder { rows, columns };
/// Whether the product takes the place of what is there, or is added to it.
enum class ProductSum { anew, onto };

struct MatrixForm {
  DataType type;
  MatrixOrder order = MatrixOrder::rows;
};

class MatrixProduct {
 public:
  struct Size {
    std::int64_t rows, terms, columns;
  };
  MatrixProduct() = default;
  /// out[rows][columns] = left[rows][terms] x right[terms][columns].
  MatrixProduct(Plan& plan, const Size& size, const MatrixForm& left, const MatrixForm& right, DataType out,
                ProductSum sum);

  void run(const dnnl::stream& stream, const void* left, const void* right, void* out) const;
  std::string description() const { return description_; }

 private:
  Desc left_, right_, out_, scratch_desc_;
  Buffer* scratch_ = nullptr;
  dnnl::primitive primitive_;
  std::string description_;
};

}  // namespace dlrun::runtime
