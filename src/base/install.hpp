// Where this installation keeps its parts: found from the running program's own path (PREFIX/bin/X), the same
// way in the build tree and when installed, so a tree can be moved. Nothing is compiled in.
#pragma once

#include <filesystem>
#include <string>

#include "src/base/result.hpp"

namespace dlrun {

struct Installation {
  std::filesystem::path bin;      // programs
  std::filesystem::path data;     // PREFIX/share/dlrun: frameworks/ templates/
  std::filesystem::path plugins;  // PREFIX/lib/dlrun (or lib/TRIPLET/dlrun): libdlrun-*.so

  std::string agent() const { return (bin / "dlrun-agent").string(); }  // what launchers start on a node
};

// From /proc/self/exe; an Error where that cannot be read.
Result<Installation> this_installation();

}  // namespace dlrun
