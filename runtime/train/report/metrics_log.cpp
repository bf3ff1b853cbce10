// See metrics_log.hpp.
#include "runtime/train/report/metrics_log.hpp"

#include <cerrno>

#include <fcntl.h>

#include "src/base/file.hpp"
#include "src/base/json.hpp"

namespace dlrun::runtime {
namespace {

// The whole lines whose step lies at or before `last`.
std::string kept_lines(std::string_view content, std::uint64_t last) {
  std::string out;
  for (std::size_t end = content.find('\n'); end != std::string_view::npos; end = content.find('\n')) {
    const std::string_view line = content.substr(0, end + 1);
    content.remove_prefix(end + 1);
    const auto json = parse_json(line, "metrics.jsonl");
    if (!json) continue;
    const auto step = field<std::uint64_t>(*json, "step", "metrics.jsonl");
    if (step && *step <= last) out += line;
  }
  return out;
}

}  // namespace

Result<MetricsLog> MetricsLog::open(const std::filesystem::path& folder, std::uint64_t resumed_at) {
  MetricsLog out;
  out.path_ = folder / "metrics.jsonl";
  std::error_code problem;
  if (std::filesystem::exists(out.path_, problem)) {
    const std::string before = TRY(read_file(out.path_));
    const std::string kept = resumed_at > 0 ? kept_lines(before, resumed_at) : std::string();
    if (kept != before) TRY(replace_file(out.path_, kept, Durability::none));
  }
  out.fd_.reset(::open(out.path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!out.fd_) return fail(ErrorKind::io, "cannot create {}: {}", out.path_.string(), system_reason(errno));
  return out;
}

Result<void> MetricsLog::write(const Json& line) {
  return write_all(fd_.get(), dlrun::to_text(line) + "\n", path_);
}

}  // namespace dlrun::runtime
