#include "src/report/rank_logs.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/strings.hpp"
#include "src/base/unique_fd.hpp"
#include "src/base/units.hpp"
#include "src/base/utc.hpp"
#include "src/plan/job_spec.hpp"
#include "src/plan/run_directory.hpp"

namespace dlrun::report {
namespace {

struct Range {
  std::int64_t first = 0, last = 0;
};

Result<std::vector<Range>> ranges_of(const std::string& text) {
  std::vector<Range> out;
  for (const std::string& item : split(text, ',')) {
    const std::size_t dash = item.find('-');
    const auto first = parse_integer(trim(item.substr(0, dash)), 0, std::numeric_limits<int>::max());
    const auto last = dash == std::string::npos
                          ? first
                          : parse_integer(trim(item.substr(dash + 1)), 0, std::numeric_limits<int>::max());
    if (!first || !last || *last < *first)
      return fail({.kind = ErrorKind::usage,
                   .what = fmt::format("--rank: '{}' names no ranks", item),
                   .hint = "write 0-3,7"});
    out.push_back({*first, *last});
  }
  return out;
}

// A line of the times: "2026-11-29T20:00:10Z 100".
struct Mark {
  Instant when;
  std::uint64_t offset = 0;
};

std::optional<Mark> mark_of(std::string_view line) {
  const std::size_t blank = line.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto when = parse_utc(std::string(line.substr(0, blank)));
  const auto offset = parse_integer(line.substr(blank + 1), 0, std::numeric_limits<std::int64_t>::max());
  if (!when || !offset) return std::nullopt;
  return Mark{*when, static_cast<std::uint64_t>(*offset)};
}

Error no_such(const char* flag, const std::string& value, std::vector<std::string> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  constexpr std::size_t few = 8;
  std::string hint = did_you_mean(value, names);
  if (names.size() > few && hint.starts_with("valid")) hint = "dlrun status shows the nodes of the run";
  return Error{.kind = ErrorKind::usage,
               .what = fmt::format("{}: the run has none named '{}'", flag, value),
               .where = {},
               .hint = std::move(hint),
               .also = {}};
}

Result<std::vector<RankLog>> all_logs(const RunFolder& run) {
  const std::string where = (run.path / "plan.json").string();
  if (run.plan.is_null())
    return fail(ErrorKind::input, "{} is not there or does not read: the ranks are not known", where);
  const Json nodes = TRY(field<Json>(run.plan, "nodes", where));
  std::vector<std::string> hosts;
  for (const Json& node : nodes) hosts.push_back(TRY(field<std::string>(node, "host", where)));
  std::vector<RankLog> out;
  const auto ranks = run.plan.find("ranks");
  if (ranks == run.plan.end()) return fail(ErrorKind::input, "{}: field 'ranks' is missing", where);
  for (const Json& rank : *ranks) {
    RankLog log{.rank = TRY(field<int>(rank, "rank", where)),
                .role = TRY(field<std::string>(rank, "role", where)),
                .task = TRY(field<int>(rank, "task_index", where)),
                .host = {},
                .file = {},
                .times = {}};
    const auto node = TRY(field<std::size_t>(rank, "node", where));
    if (node >= hosts.size()) return fail(ErrorKind::input, "{}: there is no node {}", where, node);
    log.host = hosts[node];
    log.file =
        run.path / "logs" / fmt::format("{:04}-{}-{}.log", log.rank, plan::as_job_name(log.role), log.task);
    log.times = plan::rank_log_times_path(log.file);
    out.push_back(std::move(log));
  }
  return out;
}

template <class Name>
Result<void> keep_named(std::vector<RankLog>& logs, const char* flag, const std::string& wanted, Name name) {
  if (wanted.empty()) return {};
  std::vector<std::string> names;
  for (const RankLog& log : logs) names.push_back(name(log));
  if (std::find(names.begin(), names.end(), wanted) == names.end())
    return fail(no_such(flag, wanted, std::move(names)));
  std::erase_if(logs, [&](const RankLog& log) { return name(log) != wanted; });
  return {};
}

}  // namespace

Result<std::vector<RankLog>> logs_of(const RunFolder& run, const LogChoice& choice) {
  std::vector<RankLog> logs = TRY(all_logs(run));
  const std::size_t ranks = logs.size();
  TRY(keep_named(logs, "--role", choice.role, [](const RankLog& log) { return log.role; }));
  TRY(keep_named(logs, "--host", choice.host, [](const RankLog& log) { return log.host; }));
  if (choice.ranks.empty()) return logs;
  const std::vector<Range> ranges = TRY(ranges_of(choice.ranks));
  std::erase_if(logs, [&](const RankLog& log) {
    return std::none_of(ranges.begin(), ranges.end(), [&](const Range& range) {
      return log.rank >= range.first && log.rank <= range.last;
    });
  });
  if (!logs.empty()) return logs;
  return fail({.kind = ErrorKind::usage,
               .what = fmt::format("--rank {}: no such rank is left to show", choice.ranks),
               .where = {},
               .hint = fmt::format("the run has ranks 0 to {}", ranks - 1),
               .also = {}});
}

MissingLogs missing_logs(const RunFolder& run, const std::vector<RankLog>& logs) {
  const Json attempts = field<Json>(run.record, "attempts", "record").value_or(Json());
  const Json ended = attempts.is_array() && !attempts.empty()
                         ? field<Json>(attempts.back(), "ranks", "record").value_or(Json())
                         : Json();
  const auto never_started = [&](int rank) {
    return std::any_of(ended.begin(), ended.end(), [&](const Json& one) {
      return one.is_object() && one.value("rank", Json()) == rank && one.value("end", Json()).is_null() &&
             !one.contains("told_to_end");
    });
  };
  MissingLogs out;
  std::error_code problem;
  for (const RankLog& log : logs) {
    if (std::filesystem::exists(log.file, problem) || problem) continue;
    if (never_started(log.rank))
      out.never_started.push_back(log.rank);
    else
      out.gone.push_back(log);
  }
  return out;
}

// Of the last line's interval only so much is known that it is over; the next output has a line again.
std::optional<std::uint64_t> offset_since(const RankLog& log, Instant since) {
  std::error_code problem;
  const std::uint64_t end = std::filesystem::file_size(log.file, problem);
  if (problem) return std::nullopt;
  if (end == 0) return 0;  // it printed nothing, at no time
  std::optional<std::uint64_t> out;
  bool any = false;
  const auto read = for_each_line(log.times, [&](std::string_view line) {
    const auto mark = mark_of(line);
    any = any || mark;
    if (mark && !out && mark->when + plan::kLogTimesInterval > since) out = mark->offset;
  });
  if (!read || !any) return std::nullopt;
  return std::min(out.value_or(end), end);
}

Result<Instant> since_of(const std::string& text, Instant now) {
  if (const auto when = parse_utc(text)) return *when;
  if (const auto ago = parse_duration(text)) return now - std::chrono::duration_cast<Milliseconds>(*ago);
  return fail({.kind = ErrorKind::usage,
               .what = fmt::format("--since: '{}' is not a time", text),
               .where = {},
               .hint = "write how long ago, 10min, or a time in UTC, 2026-11-29T20:00:00Z",
               .also = {}});
}

void LogReader::begin_again_if_new(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return;
  const std::pair<dev_t, ino_t> id(status.st_dev, status.st_ino);
  if (id_ && *id_ != id) {
    offset_ = 0;
    begun_ = {};
  }
  id_ = id;
}

Result<void> LogReader::read(Until until, const std::function<void(std::string_view)>& take) {
  const UniqueFd fd(::open(file_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd && errno != ENOENT)
    return fail(ErrorKind::io, "cannot read {}: {}", file_.string(), system_reason(errno));
  if (fd) begin_again_if_new(fd.get());
  constexpr std::size_t piece_size = std::size_t{1} << 16;
  std::array<char, piece_size> piece;
  while (fd) {
    const ssize_t got = ::pread(fd.get(), piece.data(), piece.size(), static_cast<off_t>(offset_));
    if (got < 0) return fail(ErrorKind::io, "cannot read {}: {}", file_.string(), system_reason(errno));
    if (got == 0) break;
    offset_ += static_cast<std::uint64_t>(got);
    for (const std::string& line : begun_.add({piece.data(), static_cast<std::size_t>(got)})) take(line);
  }
  if (until == Until::end)
    for (const std::string& line : begun_.finish()) take(line);
  return {};
}

}  // namespace dlrun::report
