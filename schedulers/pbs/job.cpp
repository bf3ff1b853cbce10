#include "schedulers/pbs/job.hpp"

#include "schedulers/hostfile/node_lists.hpp"
#include "schedulers/hostlist/hostlist.hpp"
#include "schedulers/query.hpp"
#include "schedulers/walltime.hpp"
#include "src/base/json.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

std::string text_at(const Json& object, const char* name) {
  const auto found = object.is_object() ? object.find(name) : object.end();
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

// "node1:ncpus=2:ngpus=1:mem=4gb"
Result<PbsChunk> read_chunk(std::string_view text) {
  const std::vector<std::string> parts = split(text, ':');
  PbsChunk out{.host = parts[0].substr(0, parts[0].find('['))};
  TRY(check_host_name(out.host));
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::string_view part = parts[i];
    const std::size_t equals = part.find('=');
    if (equals == part.npos) return fail(ErrorKind::allocation, "'{}' is not of the form NAME=VALUE", part);
    const std::string_view name = part.substr(0, equals);
    if (name != "ncpus" && name != "ngpus") continue;
    const auto count = TRY(parse_integer(part.substr(equals + 1), 0, kMaxSlots));
    if (name == "ncpus") out.cpus = static_cast<int>(count);
    if (name == "ngpus") out.gpus = static_cast<int>(count);
  }
  return out;
}

// With U+FFFD in the place of bytes that are not UTF-8.
std::string valid_utf8(std::string_view text) {
  const auto json = parse_json(to_text(Json(std::string(text))), "text");
  return json && json->is_string() ? json->get<std::string>() : std::string(text);
}

void take_job_end(const Json& job, PbsJob& out) {
  const auto resources = job.find("Resource_List");
  if (resources == job.end()) return;
  const std::string limit = text_at(*resources, "walltime");
  out.unlimited = limit.empty();
  const auto start = parse_calendar(text_at(job, "stime"), "%a %b %d %H:%M:%S %Y");
  const auto time = parse_pbs_walltime(limit);
  if (start && time && time->limit) out.end_time = *start + *time->limit;
  const auto used = job.find("resources_used");
  if (used == job.end() || !time || !time->limit) return;
  if (const auto so_far = parse_pbs_walltime(text_at(*used, "walltime")); so_far && so_far->limit)
    out.walltime_left = *time->limit - *so_far->limit;
}

}  // namespace

Result<std::vector<PbsChunk>> parse_exec_vnode(std::string_view text) {
  std::vector<PbsChunk> out;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find(')');
    if (rest.front() != '(' || end == rest.npos)
      return fail(error_with_caret(text, text.size() - rest.size(),
                                   "exec_vnode is not of the form (a:ncpus=1)+(b:ncpus=1)"));
    for (const std::string& part : split(rest.substr(1, end - 1), '+')) {
      auto chunk = read_chunk(part);
      if (!chunk)
        return fail(error_with_caret(text, text.size() - rest.size(),
                                     fmt::format("'{}': {}", part, chunk.error().what)));
      out.push_back(std::move(*chunk));
    }
    rest.remove_prefix(end + 1);
    if (rest.empty()) break;
    if (rest.front() != '+' || rest.size() == 1)
      return fail(error_with_caret(text, text.size() - rest.size(), "exec_vnode is truncated here"));
    rest.remove_prefix(1);
  }
  return out;
}

Result<PbsJob> parse_qstat(std::string_view text, std::string_view job_id) {
  // The job's variables are in it, byte for byte; what is not UTF-8 there is no JSON.
  const Json all = TRY(parse_json(valid_utf8(text), "qstat -f -F json"));
  const auto jobs = all.is_object() ? all.find("Jobs") : all.end();
  if (!all.is_object() || jobs == all.end() || !jobs->is_object() || !jobs->contains(std::string(job_id)))
    return fail(ErrorKind::allocation, "qstat does not list job {}", job_id);
  const Json& job = jobs->at(std::string(job_id));
  PbsJob out;
  if (!job.is_object()) return fail(ErrorKind::allocation, "job {} of qstat is not an object", job_id);
  out.chunks = TRY(parse_exec_vnode(text_at(job, "exec_vnode")));
  take_job_end(job, out);
  return out;
}

}  // namespace dlrun
