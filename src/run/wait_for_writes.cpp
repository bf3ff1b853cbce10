#include "src/run/wait_for_writes.hpp"

#include <utility>

#include "src/base/file.hpp"
#include "src/base/units.hpp"

namespace dlrun::job {

void wait_until_written(FileWriter& writer, RunStatus& status) {
  constexpr Seconds tell_after{5}, forever{1e6};
  if (writer.drain(tell_after)) return;
  status.note(fmt::format("the run directory has not taken writes for {}: waiting for it",
                          format_duration(tell_after)));
  while (!writer.drain(forever)) {
  }
}

Result<void> write_at_end(const std::filesystem::path& path, std::string content, RunStatus& status) {
  FileWriter writer;
  Result<void> out;
  writer.run(
      [&path, content = std::move(content)]() -> Result<void> {
        return replace_file(path, content, Durability::synced);
      },
      [&out](const Result<void>& written) { out = written; });
  wait_until_written(writer, status);
  return out;
}

}  // namespace dlrun::job
