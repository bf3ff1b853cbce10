// SourceTree: what there is to stage of one item, as the first node sees it: every folder, file and link with
// its size and time, and a fingerprint of all of them. Contents are not read here. Sockets, devices and pipes
// are refused by name, and so is what may not be read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/agent/stage_in/stage_entry.hpp"
#include "src/plan/stage_in.hpp"

namespace dlrun::agent {

struct SourceTree {
  std::string from;
  std::vector<StageEntry> entries;  // a folder before what is in it; the first is the item itself
  std::uint64_t bytes = 0;          // of all files
  std::size_t files = 0;
  std::string fingerprint;  // of the names, sizes, modes and times, not of the contents
};

/// An Error (unavailable) that names the path which is missing, may not be read or is no file or folder.
Result<SourceTree> survey_source(const plan::StageIn& item);

/// What unpacks an archive: tar, as it comes, with an option for what compresses it; or unzip, once all of it
/// is there.
struct ArchiveKind {
  enum class Program { tar, unzip };
  Program program = Program::tar;
  std::string option = {};
};

/// Of an archive that begins so; an Error where it is none that is known.
Result<ArchiveKind> archive_kind(std::string_view beginning, const std::string& path);

}  // namespace dlrun::agent
