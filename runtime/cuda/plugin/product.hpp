// A product of matrices over cuBLASLt, which is what each pass of a convolution of one pixel and stride 1
// comes to. Only algorithms that repeat their bits: a sum that is split is put together in its own step and
// in f32, never by atomics or in bf16. It owns no array.
#pragma once

#include "runtime/cuda/plugin/device.hpp"

namespace dlrun::cuda {

inline void check(cublasStatus_t status, const std::string& what) {
  if (status != CUBLAS_STATUS_SUCCESS) throw Failure(what + " failed: " + cublasLtGetStatusString(status));
}

class Product {
 public:
  enum class Lies { plain, turned };
  enum class Result { as_operands, f32 };
  // What is done with d before it is written. row_bias: a number is added to each row. gelu: that, then GELU
  // by tanh, and what it is of is written too. gelu_back: times the derivative there.
  enum class Also { nothing, row_bias, gelu, gelu_back };
  // d (m x n) = a (m x k) times b (k x n). Numbers of a column lie together; of a row, in a turned matrix.
  // Columns of b and d, or rows of a turned b, lie so many numbers apart; 0: one behind the other.
  struct Size {
    std::int64_t m, n, k;
    Lies a = Lies::plain, b = Lies::plain;
    std::int64_t step_b = 0, step_d = 0;
    Result result = Result::as_operands;
    Also also = Also::nothing;
  };
  struct Matrices {
    const void *a, *b;
    void* d;
    const void* c = nullptr;        // what is added, as `prior` says; null: d
    const void* numbers = nullptr;  // one per row, as the operands are
    void* inner = nullptr;          // what GELU is of, as d lies
  };
  static constexpr std::size_t kAlignment = 32;  // bytes, of all matrices, where their columns allow it
  static constexpr std::size_t kWorkspace = std::size_t{32} << 20;

  Product(const Device& device, const Size& size, const std::string& name);
  Product(const Product&) = delete;
  Product& operator=(const Product&) = delete;
  ~Product();

  static constexpr int kCandidates = 6;  // each costs milliseconds at the start
  // What the library expects to be fastest, best first: a function of the shapes and the card alone. None
  // where it has no form.
  std::vector<cublasLtMatmulHeuristicResult_t> candidates(const Stream& stream, int most = kCandidates) const;
  // `prior`: what counts of what is in d.
  cublasStatus_t run(const Stream& stream, const cublasLtMatmulAlgo_t& algorithm, const Matrices& matrices,
                     const float& prior) const;

 private:
  void describe_also(const Size& size) const;
  template <class T>
  void set(cublasLtMatmulDescAttributes_t what, const T& value) const;

  std::string name_;
  std::uint32_t alignment_ = kAlignment;
  Also also_;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
};

}  // namespace dlrun::cuda
