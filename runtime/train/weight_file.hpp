// A file of weights as this runtime sees it: tensors of ours by our names, whoever's names it has
// (weight_names.hpp); and an engine's weights as such a file.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/mapped_file.hpp"
#include "runtime/checkpoint/safetensors.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/graph/graph.hpp"
#include "runtime/train/weight_names.hpp"

namespace dlrun::runtime {

class WeightFile {
 public:
  static Result<WeightFile> open(const std::filesystem::path& path);
  std::string name() const { return file_.name(); }

  /// Why a tensor cannot be taken from the file; empty if it can.
  std::string obstacle(const TensorInfo& tensor) const;
  /// Its numbers in our order; obstacle() must be empty.
  Result<std::vector<float>> read(const TensorInfo& tensor);
  /// What nobody read and somebody might have meant.
  std::vector<std::string> left() const;

 private:
  explicit WeightFile(MappedFile file) : file_(std::move(file)) {}

  MappedFile file_;
  std::map<std::string, StoredTensor> stored_;
  WeightNaming naming_;
  std::set<std::string> taken_;
};

/// The weights of an engine with this graph as a file; a transformer's have Hugging Face's names.
Result<std::string> weight_file_of(const Engine& engine, const Graph& graph);

}  // namespace dlrun::runtime
