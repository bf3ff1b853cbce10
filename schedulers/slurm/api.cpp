#include "schedulers/slurm/api.hpp"

#include <ctime>

#include <fmt/core.h>

#include "src/base/shared_library.hpp"

namespace dlrun {
namespace {

// The name without a version is there only where Slurm's headers are installed.
Result<SharedLibrary> load_libslurm() {
  constexpr int newest = 60,
                oldest = 35;  // of the versions 20.02 (35), 22.05 (38), 25.05 (43), and room above
  auto library = SharedLibrary::open("libslurm.so", SharedLibrary::Symbols::seen_by_all);
  for (int version = newest; !library && version >= oldest; --version)
    library =
        SharedLibrary::open(fmt::format("libslurm.so.{}", version), SharedLibrary::Symbols::seen_by_all);
  if (!library) return fail(ErrorKind::unavailable, "no libslurm here");
  return library;
}

}  // namespace

Result<void> find_libslurm() {
  TRY(load_libslurm());
  return {};
}

Result<Instant> end_time_by_libslurm(std::uint32_t job_id) {
  const SharedLibrary library = TRY(load_libslurm());
  // Since 20.11 it wants to be set up; before, it set itself up.
  if (const auto init = library.symbol<void(const char*)>("slurm_init")) (*init)(nullptr);
  auto* end_time = TRY(library.symbol<int(std::uint32_t, std::time_t*)>("slurm_get_end_time"));
  std::time_t end = 0;
  if (end_time(job_id, &end) != 0 || end <= 0)
    return fail(ErrorKind::unavailable, "libslurm does not report the end of job {}", job_id);
  return Instant(std::chrono::seconds(end));
}

}  // namespace dlrun
