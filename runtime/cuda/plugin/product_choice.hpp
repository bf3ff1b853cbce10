// Which of a library's forms of a product is taken: the one that is expected to be fastest, or another that
// gave the same bits for the same numbers and took less time. So a choice by time changes no result. Small
// products, and those of shards, are not timed.
#pragma once

#include "runtime/cuda/plugin/product.hpp"

namespace dlrun::cuda {

// `prior`: as run() will have it. None where the library has no form.
std::optional<cublasLtMatmulAlgo_t> choose_product(Device& device, const Product& product,
                                                   const Product::Size& size, float prior);

}  // namespace dlrun::cuda
