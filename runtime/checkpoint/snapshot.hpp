// Snapshot: a model's state at a step boundary as two file images in memory (model.safetensors: parameters
// and statistics; optimizer.safetensors: momentum). The memory is laid out once and used again, so that
// taking one is a copy and nothing else. Where ranks write a checkpoint together, each has a snapshot of its
// part: model-00001-of-00004.safetensors and so on.
#pragma once

#include <array>

#include "runtime/base/huge_buffer.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/checkpoint/safetensors.hpp"
#include "runtime/checkpoint/tensor_reader.hpp"
#include "runtime/engine/engine.hpp"

namespace dlrun::runtime {

inline constexpr std::array<std::string_view, 2> state_file_names = {"model.safetensors",
                                                                     "optimizer.safetensors"};

inline constexpr const char* tokenizer_file_name = "tokenizer.json";  // beside them, of a language model

/// Which files a checkpoint is written into: of `parts` ranks that write it together, this one is `part`. 0
/// parts: one rank writes it alone. The writers are so many stages of a pipeline one after another, each of
/// whole tensor groups of so many ranks, in which the tensor rank varies fastest.
struct CheckpointPart {
  int part = 0, parts = 0;
  int tensor_ranks = 1, stages = 1;
  /// Among the writers of the same stage.
  int stage_part() const { return part % stage_parts(); }
  int stage_parts() const { return parts / stages; }
  int tensor_rank() const { return part % tensor_ranks; }
  /// Among those that have the same tensor rank, too.
  int data_rank() const { return stage_part() / tensor_ranks; }
  int data_ranks() const { return stage_parts() / tensor_ranks; }
};

/// The names of the files of a part.
std::array<std::string, 2> state_files_of(const CheckpointPart& part);

/// Whether ranks have parts of the state, and write checkpoints together.
bool is_divided(const Engine& engine);

/// What a rank writes: boxes of tensors, by their number in the engine.
struct SnapshotPiece {
  std::size_t tensor = 0;
  TensorBox box;
};
/// All that the engine has.
std::vector<SnapshotPiece> all_pieces(const Engine& engine);
/// What this rank alone has, and its part of what is equal on several of the ranks, by rows: as even as they
/// allow. Running statistics, which are not, are the first rank's, as in a checkpoint of one file. What an
/// earlier stage has, too, is that one's.
std::vector<SnapshotPiece> pieces_of(const Engine& engine, const CheckpointPart& part);

class Snapshot {
 public:
  static Result<Snapshot> make(const Engine& engine) { return make(engine, all_pieces(engine)); }
  /// Each piece lies in one of the boxes that the engine has.
  static Result<Snapshot> make(const Engine& engine, std::vector<SnapshotPiece> pieces);
  /// Copies the engine's state in.
  Result<void> take(const Engine& engine);
  std::span<const std::byte> file(std::size_t index) const { return images_[index].bytes(); }

 private:
  std::vector<SnapshotPiece> pieces_;  // of one tensor, they follow each other
  std::array<SafetensorsLayout, 2> layouts_;
  std::array<HugeBuffer, 2> images_;
  std::vector<float> numbers_;  // of a tensor of which pieces are taken
};

/// The two files that one rank would have written, with all of each tensor.
Result<std::array<HugeBuffer, 2>> whole_files(const Engine& engine, const TensorReader& from);

/// Puts what the engine has of each tensor into it, from whatever files. Names and shapes must be the
/// engine's, all of them.
Result<void> restore(Engine& engine, const TensorReader& from);

/// Puts the state of two file images into the engine. Names and shapes must be the engine's, all of them.
Result<void> restore(Engine& engine, const std::array<std::span<const std::byte>, 2>& files);

/// A checksum over the names and shapes of all tensors.
std::uint64_t tensors_checksum(const Engine& engine);

/// What it is of, as texts: of parameters, of statistics, and of each slot of the optimizer's state. Without
/// what an earlier stage has, too: a text of the whole model is those of all stages one after another.
std::vector<std::string> tensor_texts(const Engine& engine);
std::uint64_t tensors_checksum(const std::vector<std::string>& texts);

}  // namespace dlrun::runtime
