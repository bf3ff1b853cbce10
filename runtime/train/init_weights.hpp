// Weights to start from: a safetensors file with PyTorch's names, as torchvision's models have them and as a
// checkpoint here has, or with those of Hugging Face's transformers (weight_names.hpp). Every tensor of the
// model must be in the file in its shape, unless the job says that it is to be skipped, as the head for other
// classes: nothing is left out unsaid.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/comm/communicator.hpp"
#include "runtime/engine/engine.hpp"

namespace dlrun::runtime {

struct InitWeights {
  std::filesystem::path file;
  std::vector<std::string> skip = {};  // patterns of names that keep their first values
};

/// Puts the file's numbers into the engine; lines for people. An Error lists what is missing or has another
/// shape. What the file has beyond the model is told. `stages`: where the engine has one of several stages,
/// the ranks of the pipeline, which all call it; the lines are of the whole model.
Result<std::vector<std::string>> init_weights(Engine& engine, const InitWeights& from,
                                              Communicator* stages = nullptr);

}  // namespace dlrun::runtime
