// The products of a matrix of weights (outputs x inputs) with the rows of a sequence: forward, gradient of
// the weights in f32, gradient of the rows. The form of each is what cuBLASLt expects to be fastest, or a
// faster one of the same bits: these are a function of shapes and card. On main alone: each fills the card.
#pragma once

#include "runtime/cuda/plugin/column_sums.hpp"
#include "runtime/cuda/plugin/product_choice.hpp"

namespace dlrun::cuda {

class SequenceProduct {
 public:
  struct Size {
    std::int64_t rows, inputs, outputs;
    std::int64_t learned = 0;  // outputs that have weights of their own, the others' are 0; 0: all
    runtime::Bias bias = runtime::Bias::none;        // whose gradient is computed
    runtime::Bias added_bias = runtime::Bias::none;  // that forward adds
    // gelu: forward writes GELU by tanh of its result, and the result itself as `inner`.
    enum class Then { nothing, gelu } then = Then::nothing;
    // gelu: x is GELU of something, and data() gives the gradient of that where it has a form for it.
    Then before = Then::nothing;
    bool adds = false;  // what forward adds is there
  };
  SequenceProduct(Device& device, const Size& size, const std::string& name);

  struct Forward {
    const void *x, *w;
    void* y;
    const void* bias = nullptr;   // of the plan's type
    const void* added = nullptr;  // rows as y's that are added
    void* inner = nullptr;
  };
  // y = x w^T + bias + added
  void forward(Device& device, const Forward& arrays) const;
  // dw (+)= dy^T x; the gradient of the bias is the sum of the rows of dy, which may be in sums() already.
  enum class Rows { to_be_summed, summed };
  void weights(Device& device, const void* x, const void* dy, float* dw, float* of_bias, bool adds,
               Rows rows = Rows::to_be_summed) const;
  const ColumnSums* sums() const { return sums_ ? &*sums_ : nullptr; }
  // dx (+)= dy w; where gives_inner(), the gradient of what x is GELU of.
  void data(Device& device, const void* w, const void* dy, void* dx, bool adds, void* inner = nullptr) const;
  bool gives_inner() const { return inner_.has_value(); }

 private:
  // A product with its algorithm; none where the library has no form of it.
  class Pass {
   public:
    Pass(Device& device, const Product::Size& size, const std::string& name, float prior)
        : product_(std::make_unique<Product>(device, size, name)),
          algorithm_(choose_product(device, *product_, size, prior)) {}
    bool exists() const { return algorithm_.has_value(); }
    void run(Device& device, const Product::Matrices& matrices, float prior) const;

   private:
    std::unique_ptr<Product> product_;
    std::optional<cublasLtMatmulAlgo_t> algorithm_;
  };
  // The rest of the weights, where there is one.
  void rest_of_weights(Device& device, const void* x, const void* dy, float* dw, bool adds) const;
  static Pass required(Device& device, const Product::Size& size, const std::string& name, float prior = 0);
  static std::optional<Pass> if_there(Device& device, const Product::Size& size, const std::string& name);

  Size size_;
  Pass forward_, weights_, data_;
  std::optional<Pass> activated_, inner_;
  std::optional<Pass> rest_;  // weights behind the last whole kWhole outputs
  float* rest_weights_ = nullptr;
  std::optional<ColumnSums> sums_;  // a pass of its own: the library is slower at summing beside the product
};

}  // namespace dlrun::cuda
