#include "schedulers/gridengine/job.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "schedulers/hostfile/node_lists.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

// The texts of all elements of this name. Names in these answers never nest in themselves, and numbers need
// no unescaping.
std::vector<std::string_view> elements(std::string_view xml, std::string_view name) {
  const std::string open = fmt::format("<{}>", name), close = fmt::format("</{}>", name);
  std::vector<std::string_view> out;
  for (std::size_t at = xml.find(open); at != xml.npos; at = xml.find(open, at)) {
    at += open.size();
    const std::size_t end = xml.find(close, at);
    if (end == xml.npos) break;
    out.push_back(xml.substr(at, end - at));
  }
  return out;
}

std::string_view first_element(std::string_view xml, std::string_view name) {
  const auto texts = elements(xml, name);
  return texts.empty() ? std::string_view() : texts.front();
}

// Names in these refusals stand in quotes; nothing else in them needs escaping.
std::string without_entities(std::string_view text) {
  constexpr std::string_view quote = "&quot;";
  std::string out(text);
  for (std::size_t at = out.find(quote); at != out.npos; at = out.find(quote, at))
    out.replace(at, quote.size(), "\"");
  return out;
}

tl::unexpected<Error> not_told(std::string_view program, std::string_view what) {
  return fail(ErrorKind::allocation, "{} does not report the {}", program, what);
}

// The tasks' numbers and starts come in pairs. The only one is ours: a chain's job that stands for an element
// of an array has that element's number, and is no array.
Result<Instant> start_of(std::string_view xml, std::string_view task) {
  const std::string_view tasks = first_element(xml, "JB_ja_tasks");
  const auto numbers = elements(tasks, "JAT_task_number"), starts = elements(tasks, "JAT_start_time");
  const auto at = numbers.size() == 1 ? numbers.begin() : std::find(numbers.begin(), numbers.end(), task);
  if (numbers.size() != starts.size() || at == numbers.end()) return not_told("qstat", "start of the job");
  const auto start = parse_integer(std::string(starts[static_cast<std::size_t>(at - numbers.begin())]), 1,
                                   1000 * kLastSecond);
  if (!start) return not_told("qstat", "start of the job");
  // Univa's is in milliseconds.
  return *start > kLastSecond ? Instant(std::chrono::milliseconds(*start))
                              : Instant(std::chrono::seconds(*start));
}

bool is_limit(std::string_view name) {
  return name == "h_rt" || name == "s_rt";
}

Result<Walltime> asked_limit(std::string_view xml) {
  Walltime out;
  for (const std::string_view request :
       elements(first_element(xml, "JB_hard_resource_list"), "qstat_l_requests")) {
    if (!is_limit(first_element(request, "CE_name"))) continue;
    const std::string_view value = first_element(request, "CE_doubleval");
    const auto seconds = parse_integer(std::string(value.substr(0, value.find('.'))), 0, kLastSecond);
    if (!seconds) return not_told("qstat", "limit that is a number");
    out = sooner_of(out, Walltime{std::chrono::seconds(*seconds)});
  }
  return out;
}

}  // namespace

Result<GridEngineJob> parse_gridengine_job(std::string_view xml, std::string_view job_id,
                                           std::optional<int> task) {
  // Its refusals are answers, too: to hosts that may not submit jobs.
  if (const std::string_view refusal = first_element(xml, "AN_text"); !refusal.empty())
    return fail(ErrorKind::allocation, "qstat: {}", without_entities(refusal));
  if (first_element(xml, "JB_job_number") != job_id) return not_told("qstat", "such job");
  return GridEngineJob{.start = TRY(start_of(xml, std::to_string(task.value_or(1)))),
                       .limit = TRY(asked_limit(xml))};
}

Result<Walltime> parse_gridengine_queue(std::string_view lines) {
  Walltime out;
  int found = 0;
  for (const std::string& line : split(lines, '\n')) {
    const std::string_view text = trim(line);
    const std::size_t blank = text.find(' ');
    if (blank == text.npos || !is_limit(text.substr(0, blank))) continue;
    ++found;
    const std::string_view value = trim(text.substr(blank));
    if (value != "INFINITY") out = sooner_of(out, TRY(parse_pbs_walltime(value)));  // the same forms
  }
  if (found != 2) return not_told("qconf", "h_rt and s_rt of the queue");
  return out;
}

Walltime sooner_of(const Walltime& a, const Walltime& b) {
  if (!a.limit || !b.limit) return a.limit ? a : b;
  return Walltime{std::min(*a.limit, *b.limit)};
}

}  // namespace dlrun
