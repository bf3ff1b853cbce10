#include "src/chain/chain.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "src/base/enum_names.hpp"
#include "src/base/exit_code.hpp"
#include "src/base/strings.hpp"

namespace dlrun::job {
namespace {

constexpr auto kEnds = enum_names<LinkEnd>({{LinkEnd::running, "running"},
                                            {LinkEnd::done, "done"},
                                            {LinkEnd::again, "again"},
                                            {LinkEnd::interrupted, "interrupted"},
                                            {LinkEnd::lost, "lost"},
                                            {LinkEnd::failed, "failed"}});
constexpr auto kStates = enum_names<ChainState>({{ChainState::queued, "queued"},
                                                 {ChainState::running, "running"},
                                                 {ChainState::done, "done"},
                                                 {ChainState::stopped, "stopped"},
                                                 {ChainState::failed, "failed"}});
constexpr auto kModes = enum_names<ChainMode>({{ChainMode::resubmit, "resubmit"},
                                               {ChainMode::requeue, "requeue"},
                                               {ChainMode::presubmit, "presubmit"}});
constexpr const char* kSchema = "dlrun.chain/1";

template <class Enum, std::size_t N>
Result<Enum> read_name(const std::string& text, const EnumNames<Enum, N>& names, const std::string& where) {
  if (const auto value = names.value(text)) return *value;
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("unknown value '{}'", text),
                    .where = where,
                    .hint = did_you_mean(text, names.names())});
}

// A chain that an older dlrun began has the key's old name and value.
Result<ChainMode> mode_from(const Json& json, const std::string& where) {
  if (json.contains("mode")) return read_name(TRY(field<std::string>(json, "mode", where)), kModes, where);
  const auto mode = TRY(field<std::string>(json, "way", where));
  return read_name(mode == "ahead" ? "presubmit" : mode, kModes, where);
}

// A ledger that somebody edited is read as strictly as a job file.
Result<int> count_from(const Json& json, const char* name, int low, const std::string& where) {
  constexpr int high = 1'000'000;
  const auto number = TRY(field<double>(json, name, where));
  if (number < low || number > high || number != std::floor(number))
    return fail(ErrorKind::input, "{0}: '{1}' must be a whole number in [{3}, {4}], not {2}", where, name,
                number, low, high);
  return static_cast<int>(number);
}

std::optional<std::int64_t> number_of(const Json& progress, const char* name) {
  const auto value = field<std::int64_t>(progress, name, "progress");
  return value ? std::optional(*value) : std::nullopt;
}

// Whether the link came further than all before it.
bool made_progress(const Chain& chain, std::size_t index) {
  const Link& link = chain.links[index];
  const auto step = number_of(link.progress, "step");
  if (!step) return link.saved || (link.end == LinkEnd::again && chain.checkpoint_files.empty());
  for (std::size_t i = 0; i < index; ++i)
    if (const auto before = number_of(chain.links[i].progress, "step"); before && *before >= *step)
      return false;
  return true;
}

// Faults of the job, its files and folders are the same in every link.
bool is_permanent(int code) {
  for (const ExitCode own :
       {ExitCode::usage, ExitCode::input, ExitCode::allocation, ExitCode::internal, ExitCode::io})
    if (code == to_int(own)) return true;
  return false;
}

Json to_json(const Link& link) {
  return {
      {"number", link.number},      {"job_id", link.job_id},       {"run_directory", link.run_directory},
      {"end", word_of(link.end)},   {"exit_code", link.exit_code}, {"reason", link.reason},
      {"began", link.began},        {"ended", link.ended},         {"seconds", link.seconds},
      {"time", to_json(link.time)}, {"progress", link.progress},   {"checkpoint_mark", link.checkpoint_mark},
      {"saved", link.saved}};
}

Result<Link> link_from_json(const Json& json, const std::string& where) {
  Link out;
  out.number = TRY(field<int>(json, "number", where));
  out.job_id = TRY(field<std::string>(json, "job_id", where));
  out.run_directory = TRY(field<std::string>(json, "run_directory", where));
  const auto end = TRY(field<std::string>(json, "end", where));
  out.end = TRY(read_name(end == "vanished" ? "lost" : end, kEnds, where));  // "vanished": of an older dlrun
  out.exit_code = TRY(field<int>(json, "exit_code", where));
  out.reason = TRY(field<std::string>(json, "reason", where));
  out.began = TRY(field<std::string>(json, "began", where));
  out.ended = TRY(field<std::string>(json, "ended", where));
  out.seconds = TRY(field<double>(json, "seconds", where));
  out.time = TRY(time_parts_from_json(TRY(field<Json>(json, "time", where)), where));
  out.progress = TRY(field<Json>(json, "progress", where));
  out.checkpoint_mark = TRY(field<std::string>(json, "checkpoint_mark", where));
  out.saved = TRY(field<bool>(json, "saved", where));
  return out;
}

}  // namespace

std::string_view word_of(LinkEnd end) {
  return kEnds.name(end);
}
std::string_view word_of(ChainMode mode) {
  return kModes.name(mode);
}
Result<ChainMode> chain_mode(const std::string& name) {
  return read_name(name, kModes, "chain.mode");
}
std::string_view word_of(ChainState state) {
  return kStates.name(state);
}

Json to_json(const Chain& chain) {
  Json links = Json::array();
  for (const Link& link : chain.links) links.push_back(to_json(link));
  return {{"schema", kSchema},
          {"name", chain.name},
          {"scheduler", chain.scheduler},
          {"mode", word_of(chain.mode)},
          {"max_links", chain.max_links},
          {"retries", chain.retries},
          {"state", word_of(chain.state)},
          {"reason", chain.reason},
          {"script", chain.script},
          {"search_path", chain.search_path},
          {"queued_job", chain.queued_job},
          {"checkpoint_files", chain.checkpoint_files},
          {"links", std::move(links)}};
}

Result<Chain> chain_from_json(const Json& json, const std::string& where) {
  if (const auto schema = TRY(field<std::string>(json, "schema", where)); schema != kSchema)
    return fail(ErrorKind::input, "{}: schema '{}' is not {}", where, schema, kSchema);
  Chain out;
  out.name = TRY(field<std::string>(json, "name", where));
  out.scheduler = TRY(field<std::string>(json, "scheduler", where));
  out.mode = TRY(mode_from(json, where));
  out.max_links = TRY(count_from(json, "max_links", 1, where));
  out.retries = TRY(count_from(json, "retries", 0, where));
  out.state = TRY(read_name(TRY(field<std::string>(json, "state", where)), kStates, where));
  out.reason = TRY(field<std::string>(json, "reason", where));
  out.script = TRY(field<std::string>(json, "script", where));
  out.search_path = TRY(field<std::string>(json, "search_path", where));
  out.queued_job = TRY(field<std::string>(json, "queued_job", where));
  if (json.contains("checkpoint_files"))
    out.checkpoint_files = TRY(field<std::string>(json, "checkpoint_files", where));
  const Json links = TRY(field<Json>(json, "links", where));
  if (!links.is_array()) return fail(ErrorKind::input, "{}: 'links' is not a list", where);
  for (const Json& link : links) out.links.push_back(TRY(link_from_json(link, where)));
  return out;
}

std::size_t jobs_used(const Chain& chain) {
  std::set<std::string> jobs;
  for (const Link& link : chain.links) jobs.insert(link.job_id);
  return jobs.size();
}

// A job that the scheduler started again (preempted, its node died) is one job; one that asked for it itself
// has used a link each time.
std::size_t links_used(const Chain& chain) {
  if (chain.mode != ChainMode::requeue) return jobs_used(chain);
  return static_cast<std::size_t>(std::count_if(chain.links.begin(), chain.links.end(), [](const Link& link) {
    return link.end != LinkEnd::lost && link.end != LinkEnd::interrupted;
  }));
}

std::optional<ChainProgress> progress_of(const Chain& chain) {
  std::optional<ChainProgress> out;
  for (const Link& link : chain.links) {
    const auto step = number_of(link.progress, "step");
    if (!step) continue;
    out = ChainProgress{std::max(*step, out ? out->step : 0), number_of(link.progress, "steps").value_or(0)};
  }
  return out;
}

Verdict judge(const Chain& chain, StopRequest request) {
  if (chain.links.empty()) return {};
  const Link& last = chain.links.back();
  if (last.end == LinkEnd::done) return {ChainState::done, "done"};
  if (request == StopRequest::stop) return {ChainState::stopped, "dlrun chain stop"};
  const std::string what = fmt::format("link {} (job {}): {}", last.number, last.job_id, last.reason);
  if (last.end == LinkEnd::failed) {
    if (is_permanent(last.exit_code)) return {ChainState::failed, what};
    const auto failures = std::count_if(chain.links.begin(), chain.links.end(),
                                        [](const Link& link) { return link.end == LinkEnd::failed; });
    if (failures > chain.retries)
      return {ChainState::failed,
              fmt::format("{} failure(s), and chain.retries is {}; {}", failures, chain.retries, what)};
  }
  const std::size_t count = chain.links.size();
  if (count >= 2 && !made_progress(chain, count - 1) && !made_progress(chain, count - 2))
    return {ChainState::stopped, "two links in a row made no progress; " + what};
  return {ChainState::queued, {}};
}

Verdict judge_next(const Chain& chain, StopRequest request) {
  Verdict verdict = judge(chain, request);
  if (is_over(verdict.state) || links_used(chain) < static_cast<std::size_t>(chain.max_links)) return verdict;
  return {ChainState::stopped, fmt::format("all {} links are used; the last one: {}; to continue, submit "
                                           "again with a new --chain: it resumes from the checkpoint",
                                           chain.max_links, chain.links.back().reason)};
}

}  // namespace dlrun::job
