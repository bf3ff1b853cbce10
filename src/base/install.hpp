// Where this installation keeps its parts: found from the running program's own path (PREFIX/bin/X), the same
// way in the build tree and when installed, so a tree can be moved. Nothing is compiled in.
#pragma once

#include <array>
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

// The MPICH family has one binary interface and two names of its library: Debian's is libmpich.so.12; that of
// MPICH elsewhere, Intel MPI and Cray MPICH is libmpi.so.12. So there are two plug-ins, tried in this order.
inline constexpr std::array kMpichPlugins = {"libdlrun-mpi-mpich.so", "libdlrun-mpi-mpich-abi.so"};
inline constexpr const char* kOpenMpiPlugin = "libdlrun-mpi-openmpi.so";
// Below the plug-ins: libraries that an installation brings for its programs (the portable tarball's).
inline constexpr const char* kBesideFolder = "beside";

// From /proc/self/exe; an Error where that cannot be read.
Result<Installation> this_installation();

}  // namespace dlrun
