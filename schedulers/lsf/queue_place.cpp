#include "schedulers/lsf/queue_place.hpp"

#include <algorithm>

#include "schedulers/query.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

constexpr std::size_t kFields = 4;  // id, queue, expected start, reason

// "Nov 29 20:15" of the year that brings it nearest to now; with a year where the site has times show it.
std::optional<Instant> start_time(const std::string& text, Instant now) {
  for (const char* format : {"%b %d %H:%M:%S %Y", "%b %d %H:%M %Y", "%a %b %d %H:%M:%S %Y"})
    if (const auto time = parse_calendar(text, format)) return time;
  const int year = static_cast<int>(parse_integer(format_utc(now).substr(0, 4), 1970, 9999).value_or(1970));
  std::optional<Instant> out;
  const auto distance = [&](Instant time) { return time > now ? time - now : now - time; };
  for (const int of : {year, year + 1, year - 1})
    if (const auto time = parse_calendar(fmt::format("{} {}", text, of), "%b %d %H:%M %Y"))
      if (!out || distance(*time) < distance(*out)) out = time;
  return out;
}

}  // namespace

// An older bjobs knows no estimated start and refuses the whole question. No start is "-", as it is for newer
// ones where a job has none.
Argv lsf_queue_command() {
  return {
      "sh", "-c",
      "bjobs -u all -p -noheader -o \"jobid queue esstart_time pend_reason delimiter='|'\" 2>/dev/null || "
      "bjobs -u all -p -noheader -o \"jobid queue exit_code pend_reason delimiter='|'\""};
}

std::optional<QueuePlace> lsf_queue_place(std::string_view printed, std::string_view job_id, Instant now) {
  std::vector<std::string> queues;
  for (const std::string& line : split(printed, '\n')) {
    const std::vector<std::string> job = split(trim(line), '|');
    if (job.size() < kFields) continue;
    if (trim(job[0]) != job_id) {
      queues.push_back(job[1]);
      continue;
    }
    const auto before = std::count(queues.begin(), queues.end(), job[1]);
    const std::string reason(trim(job[3]));
    return QueuePlace{.position = static_cast<int>(before) + 1,
                      .start = start_time(std::string(trim(job[2])), now),
                      .reason = reason == "-" ? std::string() : reason};
  }
  return std::nullopt;
}

}  // namespace dlrun
