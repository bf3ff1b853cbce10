// Unpacker: unpacks an archive on this node: a tar archive by the system's tar while it comes, so that the
// archive itself needs no place there; a zip archive, whose directory is at its end, by the system's unzip
// from a file beside, which is removed. Names that are absolute or have "..", and links that lead out of the
// folder, are refused: what they name is not part of the copy. Only a link to a program may lead out, as a
// virtual environment has one to its interpreter.
#pragma once

#include <filesystem>
#include <string>

#include <sys/types.h>

#include "src/agent/stage_in/source_tree.hpp"
#include "src/agent/stage_in/stage_control.hpp"
#include "src/agent/stage_in/stream_reader.hpp"
#include "src/base/environment.hpp"
#include "src/base/unique_fd.hpp"
#include "src/process/child.hpp"

namespace dlrun::agent {

class Unpacker final : public EntrySink {
 public:
  /// `from`: the archive's name, for errors. `root`: the folder to be made. `log`: where the program's
  /// messages go.
  Unpacker(std::string from, std::filesystem::path root, std::filesystem::path log, Environment environment,
           const StageControl& control);
  ~Unpacker() override;
  Result<void> entry(const StageEntry& entry) override;
  Result<void> bytes(std::string_view bytes) override;
  Result<void> file_end() override;
  Result<void> item_end() override { return {}; }

 private:
  Result<void> start();
  Result<void> give(std::string_view bytes);
  Result<void> run(Argv argv, int input);
  Result<void> unzip();
  Result<void> finish();
  void end_program();
  bool is_zip() const { return kind_ && kind_->program == ArchiveKind::Program::unzip; }
  const char* program_name() const { return is_zip() ? "unzip" : "tar"; }
  tl::unexpected<Error> refuse(const std::string& why) const;

  std::string from_;
  std::filesystem::path root_, log_;
  Environment environment_;
  const StageControl& control_;
  std::string beginning_;            // until it is known what the archive is
  std::optional<ArchiveKind> kind_;  // then
  UniqueFd input_;                   // of tar, or the file that unzip reads
  pid_t program_ = 0;
};

/// The first link below `root` that leads out of it to what is no program: "a/b -> ../../c"; empty for none.
std::string link_that_leaves(const std::filesystem::path& root);

}  // namespace dlrun::agent
