// Manifest: what a checkpoint is and what its files must be, written last. It carries its own checksum, so
// that a flipped digit is found too. What makes two checkpoints belong to the same training is Identity.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/input_shape.hpp"
#include "runtime/base/tensor_info.hpp"
#include "src/base/result.hpp"

namespace dlrun::runtime {

// The position of a run, at a step boundary. `seen` samples of epoch `epoch` (from 0) have been used.
struct Position {
  std::uint64_t step = 0, epoch = 0, seen = 0;
  friend bool operator==(const Position&, const Position&) = default;
};

// What must be equal for a run to resume from a checkpoint. The number of ranks, the batch, the learning rate
// and the precision may change.
struct Identity {
  std::string model;
  InputShape shape;
  std::uint64_t seed = 0;     // decides the order of samples
  std::uint64_t samples = 0;  // of an epoch
  std::uint64_t data = 0;     // fingerprint of the training data
  std::uint64_t tensors = 0;  // checksum of names and shapes
  // Its name, and whether it keeps an average of the weights; empty in checkpoints of older versions. Another
  // one may have the same tensors, whose numbers mean something else.
  std::string optimizer = {};
};
/// What follows the name of an optimizer that keeps an average of the weights.
inline constexpr const char* kWithAverage = " with ema";
/// The difference, for people ("model: resnet18-cifar there, mnist-cnn here"); empty if there is none.
std::string difference(const Identity& there, const Identity& here);

// The settings of the training, as the job file has them; empty in checkpoints of older versions.
using Settings = std::map<std::string, std::string>;

// What the trainer has summed over the steps of an epoch, for the figures at its end (epoch_sums.hpp).
using EpochSums = std::array<double, 9>;

struct ManifestFile {
  std::string name;
  std::uint64_t bytes = 0, checksum = 0;
};

struct Manifest {
  Position position;
  std::optional<EpochSums> epoch_sums = {};  // up to there; unset at its beginning, and in older versions
  Identity identity;
  int world = 1;
  std::optional<int> shards = {};  // of the global batch, where the job sets them
  std::int64_t batch = 0;
  std::string precision;
  std::uint64_t plan_hash = 0;
  std::string program;  // who wrote it
  std::string written;  // UTC
  Settings settings = {};
  Settings computed_with = {};  // processor, threads and library versions: the last bits rest on them
  std::vector<std::string> classes = {};  // their names, where they have some
  std::string layers = {};                // a model of the user's own: its list, as JSON
  // Of a language model, the text of its tokenizer's file, which is a file beside the manifest.
  std::string tokenizer = {};
  std::uint64_t tokenizer_checksum = 0;  // 0: there is none
  int parts = 0;                         // ranks that wrote files of their own; 0: one wrote all
  std::vector<ManifestFile> files;
};

std::string to_text(const Manifest& manifest);
/// An Error says what is wrong with the text: not JSON, a field missing, the checksum.
Result<Manifest> parse_manifest(std::string_view text, const std::string& name);

}  // namespace dlrun::runtime
