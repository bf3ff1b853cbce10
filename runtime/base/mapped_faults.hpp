// Faults of mapped files. A file that becomes shorter while it is mapped, or whose file system fails, is
// noticed by a signal (SIGBUS) where its bytes are read, and not by an error. For the files that are known
// here, the process then ends with a line that names the file and the exit code of malformed input; any other
// SIGBUS is left to whoever handled it before.
#pragma once

#include <cstddef>
#include <filesystem>

namespace dlrun::runtime {

struct MappedRange;
/// Until it is forgotten, a fault inside these bytes names `path`.
MappedRange* know_mapped_file(const void* begin, std::size_t size, const std::filesystem::path& path);
void forget_mapped_file(MappedRange* range);

/// Sets the handler; again after libraries that set their own (an MPI does when it starts).
void handle_mapped_faults();

}  // namespace dlrun::runtime
