// TreeWriter: writes the entries of one item below a folder of this node: as they were, but for their owner.
// Links are made at the end, so nothing is written through one; folders get their modes then, so that also
// one that may not be written to can be filled. It refuses to write over anything.
#pragma once

#include <filesystem>
#include <set>
#include <vector>

#include "src/agent/stage_in/stream_reader.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::agent {

class TreeWriter final : public EntrySink {
 public:
  /// `root`: what the item becomes, which is not there yet.
  explicit TreeWriter(std::filesystem::path root) : root_(std::move(root)) {}
  Result<void> entry(const StageEntry& entry) override;
  Result<void> bytes(std::string_view bytes) override;
  Result<void> file_end() override;
  Result<void> item_end() override;

 private:
  std::filesystem::path place(const StageEntry& entry) const;
  Result<void> make_folder(const StageEntry& entry);
  Result<void> open_file(const StageEntry& entry);

  std::filesystem::path root_;
  std::set<std::string> paths_;  // of folders
  std::vector<StageEntry> folders_, links_;
  StageEntry entry_;  // of the file
  UniqueFd file_;
};

}  // namespace dlrun::agent
