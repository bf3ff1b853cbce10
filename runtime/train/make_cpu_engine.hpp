// make_cpu_engine(): from the name of a model to an Engine on this machine's processors.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/input_shape.hpp"
#include "runtime/engine/engine.hpp"

namespace dlrun::runtime {

/// Builds the named model ("mnist-cnn", "resnet18-cifar") for the CPU. An Error for an unknown name (with the
/// nearest one) or a shape that the model cannot take.
Result<std::unique_ptr<Engine>> make_cpu_engine(const std::string& model, const InputShape& input,
                                                const EngineOptions& options);

}  // namespace dlrun::runtime
