// Which texts become which token files: the files of a folder in the order of their names, cut into ranges of
// about so many bytes. Pure but for the list of files: where exactly a range begins is decided by the text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/base/result.hpp"

namespace dlrun::runtime {

struct TextFile {
  std::filesystem::path path;
  std::string name;  // within the folder
  std::uint64_t bytes = 0;
  std::int64_t changed = 0;  // when, for people who go on with what was begun
};

/// The files that end in .txt, in all folders below; or one file, whatever its name. Those that are empty or
/// hidden are left out; a link to a file that is not there is an Error.
Result<std::vector<TextFile>> find_texts(const std::filesystem::path& from);

/// Whether its name, or that of its folder, is val, valid, validation or test.
bool is_for_validation(const TextFile& text);

struct TextRange {
  std::size_t file = 0;
  std::uint64_t begin = 0, end = 0;  // moved to where no word changes
};
/// Of one token file.
struct TextShard {
  std::string name;
  std::vector<TextRange> ranges;
  std::uint64_t bytes = 0;
};

/// Files or folders called val, valid, validation or test are for validation; where there are none, the last
/// `validation` of all bytes is.
std::vector<TextShard> plan_text_shards(const std::vector<TextFile>& texts, double validation,
                                        std::uint64_t shard_bytes);

}  // namespace dlrun::runtime
