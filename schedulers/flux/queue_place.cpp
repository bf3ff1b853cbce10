#include "schedulers/flux/queue_place.hpp"

#include <algorithm>
#include <charconv>

#include "src/base/strings.hpp"

namespace dlrun {
namespace {

constexpr std::size_t kFields = 4;  // id, queue, expected start, state

// "ƒ2ix9Wv" and "f2ix9Wv" are one job.
std::string_view without_mark(std::string_view id) {
  for (const std::string_view mark : {std::string_view("ƒ"), std::string_view("f")})
    if (id.starts_with(mark)) return id.substr(mark.size());
  return id;
}

// Seconds since 1970; empty or 0 where none is expected.
std::optional<Instant> start_time(std::string_view text) {
  double seconds = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (problem != std::errc() || end != text.data() + text.size() || !(seconds > 0 && seconds < 1e11))
    return std::nullopt;
  return Instant(std::chrono::duration_cast<Instant::duration>(Seconds(seconds)));
}

}  // namespace

Argv flux_queue_command() {
  return {"flux", "jobs", "-n",      "-A", "-c",
          "0",    "-f",   "pending", "-o", "{id.f58}|{queue}|{annotations.sched.t_estimate}|{state}"};
}

std::optional<QueuePlace> flux_queue_place(std::string_view printed, std::string_view job_id) {
  std::vector<std::string> queues;
  for (const std::string& line : split(printed, '\n')) {
    const std::vector<std::string> job = split(trim(line), '|');
    if (job.size() != kFields) continue;
    if (without_mark(job[0]) == without_mark(job_id))
      return QueuePlace{.position = static_cast<int>(std::count(queues.begin(), queues.end(), job[1])) + 1,
                        .start = start_time(trim(job[2])),
                        .reason = job[3]};
    queues.push_back(job[1]);
  }
  return std::nullopt;
}

}  // namespace dlrun
