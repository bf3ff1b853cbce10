// SavedModel: a model out of a checkpoint, ready to classify, or to continue texts, on the CPU, without the
// job that trained it. The manifest tells what it is, what pixels mean to it, and what its classes are
// called; the file beside it, how a text becomes tokens.
#pragma once

#include <filesystem>
#include <memory>

#include "runtime/checkpoint/manifest.hpp"
#include "runtime/data/batch_filler.hpp"
#include "runtime/data/text/tokenizer.hpp"
#include "runtime/engine/engine.hpp"
#include "runtime/graph/graph.hpp"

namespace dlrun::runtime {

struct SavedModel {
  std::filesystem::path folder;  // of the checkpoint
  Manifest manifest;
  Conversion conversion;
  Evaluation evaluation;
  Graph graph;

  /// A checkpoint, or a folder of checkpoints, of which the newest is taken. Its files are verified.
  static Result<SavedModel> open(const std::filesystem::path& folder);
  /// Compiled for batches of so many rows, with its weights.
  Result<std::unique_ptr<Engine>> make_engine(std::int64_t batch) const;
  bool is_language() const { return manifest.identity.shape.kind == SampleKind::tokens; }
  /// Whether its samples are arrays of numbers, and not images.
  bool reads_numbers() const { return manifest.settings.contains("data.scale"); }
  /// Images of 16 bits per channel, which are numbers.
  bool reads_deep_images() const { return manifest.settings.contains("data.bit-depth"); }
  bool is_gan() const;
  /// The same for sequences of so many positions at most, where the model takes shorter ones than it was
  /// trained on: they cost less.
  Result<std::unique_ptr<Engine>> make_language_engine(std::int64_t batch, std::int64_t positions) const;
  /// An Error where the tokens that it was trained on had none.
  Result<Tokenizer> tokenizer() const;
  std::string class_name(std::size_t number) const;

 private:
  Result<std::unique_ptr<Engine>> engine_of(const Graph& of, std::int64_t batch) const;
};

}  // namespace dlrun::runtime
