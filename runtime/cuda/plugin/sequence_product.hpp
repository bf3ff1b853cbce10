// The products of a matrix of weights (outputs x inputs) with the rows of a sequence: forward, gradient of
// the weights in f32, gradient of the rows. The form of each is what cuBLASLt expects to be fastest: a
// function of shapes and card. On main alone: each fills the card.
#pragma once

#include "runtime/cuda/plugin/product.hpp"

namespace dlrun::cuda {

class SequenceProduct {
 public:
  struct Size {
    std::int64_t rows, inputs, outputs;
    std::int64_t step = 0;  // numbers between two rows of outputs; 0: as many as there are outputs
  };
  SequenceProduct(Device& device, const Size& size, const std::string& name);

  // y = x w^T, plus `bias` of the plan's type where there is one.
  void forward(Device& device, const void* x, const void* w, void* y, const void* bias = nullptr);
  // dw (+)= dy^T x
  void weights(Device& device, const void* x, const void* dy, float* dw, bool adds) const;
  // dx (+)= dy w
  void data(Device& device, const void* w, const void* dy, void* dx, bool adds) const;

 private:
  struct Pass {
    Pass(Device& device, const Product::Size& size, const std::string& name)
        : product(device, size, name), algorithm(product.expected(device.main)) {}
    void run(Device& device, const Product::Matrices& matrices, bool adds) const;
    Product product;
    cublasLtMatmulAlgo_t algorithm;
  };

  Pass forward_, weights_, data_;
};

}  // namespace dlrun::cuda
