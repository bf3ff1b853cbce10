// Unpacker: unpacks an archive on this node while it comes, by the system's tar, so that the archive itself
// needs no place there. Names that are absolute or have "..", and links that lead out of the folder, are
// refused: what they name is not part of the copy. Only a link to a program may lead out, as a virtual
// environment has one to its interpreter.
#pragma once

#include <filesystem>
#include <string>

#include <sys/types.h>

#include "src/agent/stage_in/stage_control.hpp"
#include "src/agent/stage_in/stream_reader.hpp"
#include "src/base/environment.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::agent {

class Unpacker final : public EntrySink {
 public:
  /// `from`: the archive's name, for errors. `root`: the folder to be made. `log`: where tar's messages go.
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
  Result<void> finish();
  void end_tar();
  tl::unexpected<Error> refuse(const std::string& why) const;

  std::string from_;
  std::filesystem::path root_, log_;
  Environment environment_;
  const StageControl& control_;
  std::string beginning_;  // until tar can be told what it is
  UniqueFd input_;
  pid_t tar_ = 0;
};

/// The first link below `root` that leads out of it to what is no program: "a/b -> ../../c"; empty for none.
std::string link_that_leaves(const std::filesystem::path& root);

}  // namespace dlrun::agent
