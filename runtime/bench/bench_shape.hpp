// The input that each of our models is usually measured with: for the benchmarks of engines.
#pragma once

#include <string_view>

#include "runtime/models/models.hpp"

namespace dlrun::runtime {

// One sample's shape and classes or vocabulary, by the model's name.
inline InputShape bench_shape(std::string_view model) {
  if (model == "mnist-cnn") return {};
  if (model == "cosmogan") return {1, 256, 256, 10};
  if (model == "dcgan") return {3, 64, 64, 10};
  if (model == "inception-v3") return {3, 299, 299, 1000};
  if (model == "cosmoflow")
    return {.channels = 4, .height = 128, .width = 128, .classes = 4, .depth = 128, .targets = 4};
  if (model == "caffenet") return {3, 227, 227, 1000};
  if (model.starts_with("gpt2")) return token_sequences(1024, 50257);
  if (model.find("cifar") != std::string_view::npos) return {3, 32, 32, 10};
  return {3, 224, 224, 1000};
}

}  // namespace dlrun::runtime
