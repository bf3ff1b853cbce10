#include "src/record/stop_request.hpp"

#include "src/base/file.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::job {
namespace {

std::filesystem::path file_in(const std::filesystem::path& run_directory) {
  return run_directory / "stop-request";
}

}  // namespace

Result<void> request_stop(const std::filesystem::path& run_directory, RunStop asked) {
  if (asked <= requested_stop(run_directory)) return {};
  return replace_file(file_in(run_directory), asked == RunStop::now ? "now\n" : "save\n", Durability::synced);
}

// A file that cannot be read is none: the head looks again.
RunStop requested_stop(const std::filesystem::path& run_directory) {
  constexpr std::size_t longest = 64;
  const auto text = read_regular_file(file_in(run_directory), longest);
  if (!text) return RunStop::none;
  return trim(*text) == "now" ? RunStop::now : RunStop::save;
}

}  // namespace dlrun::job
