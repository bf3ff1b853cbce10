// What a model is fed with: the shape of one sample and what the bytes of a pixel mean. Data sets make it,
// models and engines take it. Read by CUDA code too: C++17.
#pragma once

#include <cstdint>
#include <vector>

namespace dlrun::runtime {

// image: numbers of pixels, and one label a sample. tokens: whole numbers below the vocabulary, one a
// position, each with the one that follows it as its label.
enum class SampleKind { image, tokens };

struct InputShape {
  std::int64_t channels = 1, height = 28, width = 28, classes = 10;
  SampleKind kind = SampleKind::image;
  std::int64_t depth = 0;    // of a volume; 0: an image
  std::int64_t targets = 0;  // numbers to be told of a sample; 0: its class

  /// The numbers that a model gives for a sample.
  std::int64_t outputs() const { return targets > 0 ? targets : classes; }
  std::int64_t numbers() const { return channels * (depth > 0 ? depth : 1) * height * width; }
  std::int64_t labels_per_sample() const { return kind == SampleKind::tokens ? height : 1; }
};

/// Sequences of so many tokens; the classes are the words of the vocabulary.
inline InputShape token_sequences(std::int64_t positions, std::int64_t vocabulary) {
  return {1, positions, 1, vocabulary, SampleKind::tokens};
}

// How a byte of a pixel becomes a number: byte * scale + shift, with one scale and shift per channel.
struct InputScaling {
  std::vector<float> scale, shift;
};

}  // namespace dlrun::runtime
