#include "src/record/stacks_request.hpp"

#include "src/base/file.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::job {
namespace {

std::filesystem::path stacks_request_file(const std::filesystem::path& run_directory) {
  return run_directory / "stacks-request";
}

}  // namespace

Result<void> request_stacks(const std::filesystem::path& run_directory, const std::string& id) {
  return replace_file(stacks_request_file(run_directory), id + "\n", Durability::synced);
}

std::string requested_stacks(const std::filesystem::path& run_directory) {
  constexpr std::size_t longest = 64;
  const auto text = read_regular_file(stacks_request_file(run_directory), longest);
  return text ? std::string(trim(*text)) : std::string();
}

}  // namespace dlrun::job
