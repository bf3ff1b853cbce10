// Texts into token files. Workers write a file each; a file that is there is complete, so that a run that was
// ended goes on where it was. The folder gets its name when it is complete.
#pragma once

#include <functional>
#include <memory>

#include "runtime/data/text/tokenizer.hpp"

namespace dlrun::runtime {

struct TextJob {
  std::filesystem::path from;  // a folder of texts, or one
  std::filesystem::path into;  // must not be there
  std::shared_ptr<const Tokenizer> tokenizer;
  double validation = 0.05;  // of the bytes, where no text is for validation by its name
  std::uint64_t shard_bytes = std::uint64_t{16} << 20;  // of text in a token file
  unsigned workers = 1;
  std::function<void(std::uint64_t done, std::uint64_t all)> progress = {};  // bytes of text
};
struct Tokenized {
  std::uint64_t train = 0, validation = 0;       // tokens
  std::uint64_t texts = 0, files = 0, kept = 0;  // kept: token files of an earlier run
  std::vector<std::string> notes;                // texts that could not be cut near the asked place
};
Result<Tokenized> tokenize_texts(const TextJob& job);

}  // namespace dlrun::runtime
