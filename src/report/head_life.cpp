#include "src/report/head_life.hpp"

#include <algorithm>

#include "src/base/file.hpp"
#include "src/base/regular_file.hpp"

namespace dlrun::report {
namespace {

using job::HeadStatus;

constexpr Seconds kFresh{3 * job::kHeadStatusInterval}, kWatchStep{0.5};
// A shared file system may show a file some seconds late.
constexpr Seconds kWatch{4 * job::kHeadStatusInterval};

// The old number where the file is just not readable: that says nothing of its head.
std::uint64_t beats_now(const HeadSign& head) {
  const auto text = read_regular_file(head.run_directory / "status.json");
  const auto json = text ? parse_json(*text, "status.json") : Result<Json>(fail(Error{}));
  return json ? field<std::uint64_t>(*json, "beats", "status.json").value_or(head.status.beats)
              : head.status.beats;
}

}  // namespace

Life first_judgement(Life by_kernel, Seconds age) {
  if (by_kernel != Life::unknown) return by_kernel;
  return age >= Seconds(0) && age < kFresh ? Life::alive : Life::unknown;
}

std::vector<Life> lives_of(const std::vector<HeadSign>& heads, Instant now,
                           const std::function<void(Seconds)>& pause) {
  std::vector<Life> out;
  for (const HeadSign& head : heads)
    out.push_back(first_judgement(life_of(head.status.process), now - head.status.written));
  for (Seconds watched{0}; watched < kWatch; watched += kWatchStep) {
    if (std::find(out.begin(), out.end(), Life::unknown) == out.end()) break;
    pause(kWatchStep);
    for (std::size_t i = 0; i < heads.size(); ++i)
      if (out[i] == Life::unknown && beats_now(heads[i]) != heads[i].status.beats) out[i] = Life::alive;
  }
  return out;
}

Result<void> check_head_works_in(const HeadSign& head, const std::filesystem::path& planned,
                                 const std::function<void(Seconds)>& pause) {
  std::error_code problem;
  if (std::filesystem::equivalent(head.run_directory, planned, problem)) return {};
  for (Seconds watched{0}; watched < kWatch; watched += kWatchStep) {
    pause(kWatchStep);
    if (beats_now(head) != head.status.beats) return {};
  }
  const ProcessIdentity& process = head.status.process;
  return fail(Error{
      .kind = ErrorKind::lost,
      .what = fmt::format("process {} on {}, which leads the run, works in {} and not in {}: it was moved or "
                          "is a copy",
                          process.pid, process.host, planned.string(), head.run_directory.string()),
      .where = {},
      .hint = std::filesystem::exists(planned, problem)
                  ? "dlrun stop " + planned.string()
                  : fmt::format("on {}: kill -TERM {}", process.host, process.pid),
      .also = {}});
}

}  // namespace dlrun::report
