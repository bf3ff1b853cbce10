// Snapshot: a model's state at a step boundary as two file images in memory (model.safetensors: parameters
// and statistics; optimizer.safetensors: momentum). The memory is laid out once and used again, so that
// taking one is a copy and nothing else.
#pragma once

#include <array>

#include "runtime/base/huge_buffer.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/checkpoint/safetensors.hpp"
#include "runtime/engine/engine.hpp"

namespace dlrun::runtime {

inline constexpr std::array<std::string_view, 2> state_file_names = {"model.safetensors",
                                                                     "optimizer.safetensors"};

inline constexpr const char* tokenizer_file_name = "tokenizer.json";  // beside them, of a language model

class Snapshot {
 public:
  static Result<Snapshot> make(const Engine& engine);
  /// Copies the engine's state in.
  Result<void> take(const Engine& engine);
  std::span<const std::byte> file(std::size_t index) const { return images_[index].bytes(); }

 private:
  std::array<SafetensorsLayout, 2> layouts_;
  std::array<HugeBuffer, 2> images_;
};

/// Puts the state of two file images into the engine. Names and shapes must be the engine's, all of them.
Result<void> restore(Engine& engine, const std::array<std::span<const std::byte>, 2>& files);

/// A checksum over the names and shapes of all tensors.
std::uint64_t tensors_checksum(const Engine& engine);

}  // namespace dlrun::runtime
