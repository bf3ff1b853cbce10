#include "src/base/lease_folder.hpp"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReleased = ".released";
constexpr int kMaxNumber = 1'000'000;
constexpr int kKept = 3;  // another host may still see an older state of the folder

Result<std::vector<int>> lease_numbers(const fs::path& folder) {
  std::vector<int> out;
  std::error_code problem;
  for (const auto& entry : fs::directory_iterator(folder, problem))
    if (const auto number = parse_integer(entry.path().filename().string(), 1, kMaxNumber))
      out.push_back(static_cast<int>(*number));
  if (problem) return fail(ErrorKind::io, "cannot read {}: {}", folder.string(), problem.message());
  return out;
}

}  // namespace

LeaseOwner owner_in(const std::string& content) {
  LeaseOwner out;
  const auto json = parse_json(content, "lease");
  if (!json || !json->is_object()) {
    out.job = content.find('{') == std::string::npos ? std::string(trim(content)) : std::string();
    return out;
  }
  out.process = process_identity_from_json(*json, "lease").value_or(ProcessIdentity{});
  out.job = field<std::string>(*json, "job", "lease").value_or("");
  out.run = field<std::string>(*json, "run", "lease").value_or("");
  return out;
}

std::string text_of(const LeaseOwner& owner) {
  std::string out = owner.run.empty() ? "another run" : "run " + owner.run;
  if (!owner.job.empty())
    out = owner.run.empty() ? "job " + owner.job : fmt::format("{} (job {})", out, owner.job);
  if (!owner.process.host.empty())
    out += fmt::format(" on {}, process {}", owner.process.host, owner.process.pid);
  return out;
}

std::string lease_text(const LeaseOwner& owner, std::uint64_t renewal) {
  Json json = to_json(owner.process);
  json["job"] = owner.job;
  json["run"] = owner.run;
  json["renewals"] = fmt::format("{:010}", renewal % 10'000'000'000);
  return to_text(json) + "\n";
}

fs::path LeaseFolder::file_of(int number) const {
  return folder_ / fmt::format("{:04}", number);
}

Result<void> LeaseFolder::create() const {
  return make_directories(folder_, Access::shared);
}

Result<int> LeaseFolder::newest_number() const {
  const std::vector<int> numbers = TRY(lease_numbers(folder_));
  return numbers.empty() ? 0 : *std::max_element(numbers.begin(), numbers.end());
}

Result<LeaseFile> LeaseFolder::newest() const {
  LeaseFile out;
  out.number = TRY(newest_number());
  if (out.number == 0) return out;
  const fs::path file = file_of(out.number);
  out.content = TRY(read_file(file));
  out.owner = owner_in(out.content);
  std::error_code problem;
  out.released = fs::exists(file.string() + kReleased, problem);
  return out;
}

// On a full disk nothing of it is left: an empty one would belong to nobody.
Result<std::optional<UniqueFd>> LeaseFolder::make(int number, const LeaseOwner& owner) const {
  const fs::path file = file_of(number);
  UniqueFd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!fd && errno == EEXIST) return std::optional<UniqueFd>();
  if (!fd) return fail(ErrorKind::io, "cannot create {}: {}", file.string(), system_reason(errno));
  auto written = write_all(fd.get(), lease_text(owner, 0), file);
  if (written && ::fsync(fd.get()) != 0 && errno != EINVAL)
    written = fail(ErrorKind::io, "cannot write {}: {}", file.string(), system_reason(errno));
  if (written) return std::optional<UniqueFd>(std::move(fd));
  ::unlink(file.c_str());
  return tl::unexpected(std::move(written).error());
}

Result<void> LeaseFolder::release(int number) const {
  return replace_file(file_of(number).string() + kReleased, "", Durability::synced);
}

void LeaseFolder::remove_old(int number) const {
  const auto numbers = lease_numbers(folder_);
  if (!numbers) return;
  for (const int each : *numbers) {
    if (each > number - kKept) continue;
    std::error_code ignored;
    fs::remove(file_of(each), ignored);
    fs::remove(file_of(each).string() + kReleased, ignored);
  }
}

}  // namespace dlrun
