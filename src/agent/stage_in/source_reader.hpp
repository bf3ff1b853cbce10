// Reads what is staged, once, and writes it as a stream of blocks. A file that changes while it is read is an
// Error that names it: a copy that mixes two versions is worse than none.
#pragma once

#include <functional>

#include "src/agent/stage_in/block_queue.hpp"
#include "src/agent/stage_in/source_tree.hpp"

namespace dlrun::agent {

/// Where blocks go; false: nobody wants more.
using PutBlock = std::function<bool(Block)>;

/// Collects bytes into blocks.
class BlockWriter {
 public:
  explicit BlockWriter(PutBlock put) : put_(std::move(put)) {}
  bool add(std::string_view bytes);
  bool flush();

 private:
  PutBlock put_;
  std::string block_;
};

/// Item number `index` of the plan. An Error (unavailable) with the file that could not be read.
Result<void> read_source(const SourceTree& tree, int index, BlockWriter& out);
/// The end of the stream.
bool end_stream(BlockWriter& out);

}  // namespace dlrun::agent
