// ItemFolders: the folders of one node for all items of a run, from the look at what is there to the end:
// which items the node lacks, where each is written, and the folder of links by which ranks find them. It
// blocks, and is used by one thread at a time.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/agent/stage_in/cleanup_list.hpp"
#include "src/agent/stage_in/copy_folder.hpp"
#include "src/agent/stage_in/stage_control.hpp"
#include "src/plan/plan.hpp"

namespace dlrun::agent {

/// What the first node found of an item.
struct SourceSummary {
  std::string fingerprint;
  std::uint64_t bytes = 0;
};
/// An Error (internal) where the list is not one for so many items.
Result<std::vector<SourceSummary>> read_sources(const Json& sources, std::size_t items);

class ItemFolders {
 public:
  /// `node_local`: the folder for items that go to "node-local". `cleanup` must outlive it.
  ItemFolders(plan::Stage stage, std::string run, std::string node_local, CleanupList& cleanup);

  /// The items that this node lacks and is to write. An Error (io) where a folder cannot be made or has too
  /// little space.
  Result<std::vector<int>> claim(const std::vector<SourceSummary>& sources);
  /// Where these are written.
  std::map<int, std::filesystem::path> to_write() const;
  /// They are there. Waits for those that another agent of this machine writes, and links all.
  Result<void> complete(const StageControl& control);
  /// Removes what is not kept; what is left is told.
  std::vector<std::string> release();

 private:
  std::filesystem::path root_of(const plan::StageIn& item) const;
  Result<CopyFolder> take(const plan::StageIn& item, const SourceSummary& source);
  Result<CopyFolder> take_at(const std::filesystem::path& path, CopyFolder::Lifetime lifetime);
  Result<void> await(CopyFolder& folder, const StageControl& control);
  Result<void> link_all();

  plan::Stage stage_;
  std::string run_, node_local_, host_;
  CleanupList& cleanup_;
  std::vector<CopyFolder> folders_;  // by item
  std::optional<CopyFolder> links_;
};

}  // namespace dlrun::agent
