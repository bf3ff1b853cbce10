// Writes an LMDB database from beginning to end, in the order of its keys: leaves full one after another,
// values that are too long for a page on pages of their own, and the levels of the tree above them. liblmdb
// reads it and may go on writing it: one unnamed table, pages of 4096 bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dlrun::runtime {

class LmdbWriter {
 public:
  /// Keys come in order, each once, and have 1 to 511 bytes.
  void add(std::string_view key, std::string_view value);
  std::size_t bytes() const { return file_.size(); }
  /// The content of data.mdb.
  std::string finish() &&;

 private:
  struct Page {  // of the tree, with the lowest key in it
    std::string key;
    std::uint64_t number;
  };
  std::uint64_t next_page() const;
  std::uint64_t add_long_value(std::string_view value);
  void end_leaf();
  std::vector<Page> level_above(const std::vector<Page>& below);
  void write_headers(std::uint64_t root, std::uint64_t depth);

  std::string file_ = std::string(2 * 4096, '\0');  // begins with the two headers
  std::vector<std::string> nodes_;                  // of the leaf that is being filled
  std::string first_key_;
  std::vector<Page> leaves_;
  std::uint64_t entries_ = 0, branches_ = 0, long_pages_ = 0;
};

}  // namespace dlrun::runtime
