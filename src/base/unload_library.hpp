// Unloading: what SharedLibrary never does by itself, as libraries may leave threads and exit handlers
// behind. For one that leaves none, and that serves a process only once.
#pragma once

#include <filesystem>

namespace dlrun {

/// Whether this process has it.
bool is_library_loaded(const std::filesystem::path& name);

/// Takes one SharedLibrary::open() of it back, and unloads it after the last one, with what it alone has
/// loaded. Nothing of it is used any more.
void unload_library(const std::filesystem::path& name);

}  // namespace dlrun
