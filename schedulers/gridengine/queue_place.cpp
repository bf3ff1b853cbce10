#include "schedulers/gridengine/queue_place.hpp"

#include "src/base/strings.hpp"

namespace dlrun {
namespace {

// "3 0.50500 name user qw 11/29/2026 20:00:00 1": what begins with no number is the header.
std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> out;
  for (const std::string& word : split(line, ' '))
    if (!word.empty()) out.push_back(word);
  constexpr std::size_t state = 4;
  if (out.size() <= state || !is_digit(out[0].front())) out.clear();
  return out;
}

}  // namespace

Argv gridengine_queue_command() {
  return {"qstat", "-s", "p", "-u", "*"};
}

std::optional<QueuePlace> gridengine_queue_place(std::string_view printed, std::string_view job_id) {
  const std::string_view number = job_id.substr(0, job_id.find('.'));  // elements of an array are one line
  int position = 0;
  for (const std::string& line : split(printed, '\n')) {
    const std::vector<std::string> job = words_of(line);
    if (job.empty()) continue;
    ++position;
    if (job[0] == number) return QueuePlace{.position = position, .start = std::nullopt, .reason = job[4]};
  }
  return std::nullopt;
}

}  // namespace dlrun
