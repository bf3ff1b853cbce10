// Catalog: the checkpoints in a folder, and the one from which a run resumes: the newest that is complete and
// belongs to the same training. Every newer one is refused with its reason. The catalog never changes the
// folder.
#pragma once

#include <array>
#include <filesystem>
#include <optional>

#include "runtime/checkpoint/file_system.hpp"
#include "runtime/checkpoint/manifest.hpp"

namespace dlrun::runtime {

inline constexpr std::string_view manifest_name = "manifest.json";

struct CatalogEntry {
  std::string name;
  std::uint64_t step = 0;
};

enum class RefusalKind { unfinished, damaged, foreign };

struct Refusal {
  std::string name;
  RefusalKind kind = RefusalKind::damaged;
  std::string reason;
};

struct LoadedCheckpoint {
  std::string name;
  Manifest manifest;
  // As state_file_names; empty where ranks wrote it in parts: TensorReader reads these.
  std::array<HugeBuffer, 2> files;
};

struct Choice {
  std::optional<LoadedCheckpoint> newest;
  std::vector<Refusal> refused;  // those newer than `newest`, newest first
};

std::string checkpoint_name(std::uint64_t step);  // "step-00001200"

/// Finished checkpoints by name alone, newest (by number) first. Names that begin like that of a checkpoint
/// but are none go to `others`.
Result<std::vector<CatalogEntry>> list_checkpoints(FileSystem& files, const std::filesystem::path& folder,
                                                   std::vector<std::string>* others = nullptr);

/// The manifest of one checkpoint, with the lengths of its files compared but not their content.
Result<Manifest> read_manifest(FileSystem& files, const std::filesystem::path& folder,
                               const CatalogEntry& entry);

/// Verifies checkpoints from the newest down, and stops at the first complete one.
Result<Choice> choose_checkpoint(FileSystem& files, const std::filesystem::path& folder,
                                 const Identity& identity);

/// Refuses a folder that has checkpoints of which none can be used: a training that starts over there would
/// look like a resumed one. Succeeds if a start from the beginning is right.
Result<void> check_choice(const Choice& choice, const std::filesystem::path& folder);

}  // namespace dlrun::runtime
