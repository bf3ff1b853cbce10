#include "src/cli/run_lines.hpp"

#include <algorithm>

#include "schedulers/scheduler.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/cli/rate_text.hpp"
#include "src/cli/terminal_text.hpp"

namespace dlrun::cli {
namespace {

using report::RunState;
using report::RunView;

constexpr std::size_t kHostsShown = 64;

std::optional<double> number(const Json& report, const char* name) {
  const auto found = field<double>(report, name, "report");
  return found ? std::optional(*found) : std::nullopt;
}

// "step 120 of 600 (20 %)"
std::string step_text(const RunView& view) {
  if (view.chain)
    if (const auto progress = job::progress_of(view.chain->chain); progress && view.progress.is_null())
      return fmt::format("step {} of {}", progress->step, progress->steps);
  const auto step = number(view.progress, "step"), steps = number(view.progress, "steps");
  if (!step) return "";
  if (!steps || *steps <= 0) return fmt::format("step {:.0f}", *step);
  return fmt::format("step {:.0f} of {:.0f} ({:.0f} %)", *step, *steps, 100 * *step / *steps);
}

std::string progress_text(const RunView& view) {
  std::vector<std::string> parts;
  if (std::string step = step_text(view); !step.empty()) parts.push_back(std::move(step));
  const auto epoch = number(view.progress, "epoch"), epochs = number(view.progress, "epochs");
  if (epoch && epochs) parts.push_back(fmt::format("epoch {:.0f} of {:.0f}", *epoch, *epochs));
  for (const char* name : {"loss", "loss_d", "loss_g"})
    if (const auto loss = number(view.progress, name)) parts.push_back(fmt::format("{} {:.4g}", name, *loss));
  if (const auto accuracy = number(view.progress, "accuracy"))
    parts.push_back(fmt::format("accuracy {:.1f} %", 100 * *accuracy));
  if (std::string rate = rate_text(view.progress); !rate.empty()) parts.push_back(std::move(rate));
  return join(parts, ", ");
}

std::string time_text(Instant when) {
  return format_utc(std::chrono::floor<std::chrono::seconds>(when));
}

std::string elapsed_text(const RunView& view, Instant now) {
  const bool on = !is_over(view.standing.state);
  if (!view.began || (!on && !view.ended)) return "";
  return format_duration(Seconds(view.ended.value_or(now) - *view.began));
}

std::string state_text(const RunView& view) {
  std::string out(word_of(view.standing.state));
  if (view.standing.state == RunState::running && view.head && !view.head->phase.empty())
    out += ": " + view.head->phase;
  if (view.standing.exit_code && *view.standing.exit_code != 0)
    out += fmt::format(" (exit code {})", *view.standing.exit_code);
  return plain_text(out);
}

std::string job_text(const RunView& view) {
  if (!view.scheduler_job) return "";
  return fmt::format("{} job {}", scheduler_title(view.scheduler), *view.scheduler_job);
}

std::string queue_text(const RunView& view) {
  if (view.standing.state != RunState::queued) return "";
  const QueuePlace& place = view.job.place;
  std::vector<std::string> parts;
  if (place.position) parts.push_back(fmt::format("position {}", *place.position));
  if (place.start) parts.push_back("expected start " + time_text(*place.start));
  if (!place.reason.empty()) parts.push_back("reason " + place.reason);
  return parts.empty() ? "the scheduler does not report the position" : join(parts, ", ");
}

std::string when_text(const RunView& view, Instant now) {
  if (!view.began) return "";
  std::string out = "began " + time_text(*view.began);
  if (const std::string elapsed = elapsed_text(view, now); !elapsed.empty())
    out += (view.ended ? ", took " : ", for ") + elapsed;
  if (is_over(view.standing.state) || !view.head) return out;
  if (const auto left = view.head->left)
    out += fmt::format("; done in about {} ({})", format_duration(*left),
                       time_text(now + std::chrono::duration_cast<Milliseconds>(*left)));
  return out;
}

std::string walltime_text(const RunView& view, Instant now) {
  if (is_over(view.standing.state) || !view.head || !view.head->walltime_end) return "";
  const Seconds left = *view.head->walltime_end - now;
  std::string out = fmt::format("ends {} ({})", time_text(*view.head->walltime_end),
                                left.count() > 0 ? "in " + format_duration(left) : "it is over");
  if (view.head->left && *view.head->left > left) out += "; the training will not be done by then";
  return out;
}

// " (8 worker, 2 ps)"
std::string roles_text(const RunView& view) {
  std::vector<std::string> out;
  for (const auto& [role, tasks] : view.roles) out.push_back(fmt::format("{} {}", tasks, role));
  return out.empty() ? "" : fmt::format(" ({})", join(out, ", "));
}

std::string slowest_text(const RunView& view) {
  if (is_over(view.standing.state) || !view.head || !view.head->slowest) return "";
  const job::SlowestRank& slow = *view.head->slowest;
  return fmt::format("rank {} on {}: step {}, {} behind the fastest", slow.rank, slow.host, slow.step,
                     slow.behind);
}

void add(std::vector<std::string>& lines, std::string_view title, const std::string& text) {
  if (!text.empty()) lines.push_back(fmt::format("{:<10} {}", title, plain_text(text, Newlines::kept)));
}

void add_stragglers(std::vector<std::string>& lines, const RunView& view) {
  if (is_over(view.standing.state) || !view.head || !view.head->stragglers.is_array()) return;
  for (std::size_t i = 0; i < std::min(kHostsShown, view.head->stragglers.size()); ++i) {
    const Json& each = view.head->stragglers[i];
    add(lines, "slow",
        fmt::format("rank {} on {}: {}", field<int>(each, "rank", "").value_or(-1),
                    field<std::string>(each, "host", "").value_or("?"),
                    field<std::string>(each, "text", "").value_or("")));
  }
}

// Of the run as it is, or as it ended.
void add_losses(std::vector<std::string>& lines, const RunView& view) {
  if (!view.head || !view.head->losses.is_array()) return;
  for (std::size_t i = 0; i < std::min(kHostsShown, view.head->losses.size()); ++i) {
    const Json& each = view.head->losses[i];
    const auto after = field<double>(each, "went_on_after", "");
    add(lines, field<bool>(each, "on_request", "").value_or(false) ? "left" : "lost",
        fmt::format("ranks {} on {}: {}{}", to_text(field<Json>(each, "ranks", "").value_or(Json())),
                    field<std::string>(each, "host", "").value_or("?"),
                    field<std::string>(each, "reason", "").value_or("?"),
                    after ? fmt::format("; continued after {}", format_duration(Seconds(*after))) : ""));
  }
}

void add_joins(std::vector<std::string>& lines, const RunView& view) {
  if (!view.head || !view.head->joins.is_array()) return;
  for (std::size_t i = 0; i < std::min(kHostsShown, view.head->joins.size()); ++i) {
    const Json& each = view.head->joins[i];
    add(lines, "joined",
        fmt::format("ranks {} on {} after {}", to_text(field<Json>(each, "ranks", "").value_or(Json())),
                    field<std::string>(each, "host", "").value_or("?"),
                    format_duration(Seconds(field<double>(each, "seconds", "").value_or(0)))));
  }
}

std::string percent(double share) {
  return fmt::format("{:.0f} %", 100 * share);
}

std::string usage_text(const job::NodeUsage& usage) {
  std::vector<std::string> parts;
  if (usage.cpu) parts.push_back("CPU " + percent(*usage.cpu));
  if (usage.memory_used && usage.memory_total)
    parts.push_back(
        fmt::format("memory {} of {}", format_size(*usage.memory_used), format_size(*usage.memory_total)));
  if (usage.received && usage.sent)
    parts.push_back(fmt::format("network {}/s in, {}/s out",
                                format_size(static_cast<std::uint64_t>(*usage.received)),
                                format_size(static_cast<std::uint64_t>(*usage.sent))));
  if (usage.gpu) parts.push_back("GPUs " + percent(*usage.gpu));
  if (usage.gpu_memory_used && usage.gpu_memory_total)
    parts.push_back(fmt::format("GPU memory {} of {}", format_size(*usage.gpu_memory_used),
                                format_size(*usage.gpu_memory_total)));
  return join(parts, ", ");
}

void add_hosts(std::vector<std::string>& lines, const RunView& view) {
  if (is_over(view.standing.state)) return;
  for (std::size_t i = 0; i < std::min(kHostsShown, view.hosts.size()); ++i) {
    const report::HostView& host = view.hosts[i];
    add(lines, "node",
        fmt::format("{}: {} rank(s){}", host.host, host.ranks,
                    host.usage ? ", " + usage_text(*host.usage) : std::string()));
  }
  if (view.hosts.size() > kHostsShown)
    add(lines, "node", fmt::format("and {} more: --json has them all", view.hosts.size() - kHostsShown));
}

std::string result_text_of(const RunView& view) {
  if (!view.result.is_object()) return "";
  std::vector<std::string> parts;
  for (const auto& [name, value] : view.result.items()) parts.push_back(name + " " + short_text(value));
  return join(parts, ", ");
}

}  // namespace

std::vector<std::string> list_lines(const std::vector<RunView>& views, Instant now) {
  std::size_t width = 3;
  for (const RunView& view : views) width = std::max(width, view.entry.folder().size());
  std::vector<std::string> out{fmt::format("{:<9} {:<{}} {:<14} {:>5} {:>6} {:>9}  {}", "STATE", "RUN", width,
                                           "JOB", "NODES", "RANKS", "TIME", "PROGRESS")};
  for (const RunView& view : views) {
    std::string told = step_text(view);
    if (view.standing.state == RunState::queued) told = queue_text(view);
    if (!view.standing.reason.empty()) told = view.standing.reason.substr(0, view.standing.reason.find('\n'));
    const auto count = [](std::size_t number) { return number == 0 ? "-" : std::to_string(number); };
    std::string line =
        fmt::format("{:<9} {:<{}} {:<14} {:>5} {:>6} {:>9}  {}", word_of(view.standing.state),
                    plain_text(view.entry.folder()), width, view.scheduler_job ? *view.scheduler_job : "-",
                    count(view.nodes), count(view.ranks), elapsed_text(view, now), plain_text(told));
    line.erase(line.find_last_not_of(' ') + 1);
    out.push_back(std::move(line));
  }
  return out;
}

std::vector<std::string> status_lines(const RunView& view, Instant now) {
  std::vector<std::string> out;
  add(out, "run", fmt::format("{} in {}", view.name, view.entry.path.string()));
  add(out, "state", state_text(view));
  add(out, "reason", view.standing.reason);
  add(out, "job", job_text(view));
  add(out, "queue", queue_text(view));
  if (view.ranks > 0)
    add(out, "ranks",
        fmt::format("{} rank(s){}{}{}", view.ranks, roles_text(view),
                    view.nodes > 0 ? fmt::format(" on {} node(s)", view.nodes) : "",
                    view.attempt > 1 ? fmt::format(", attempt {}", view.attempt) : ""));
  add(out, "progress", progress_text(view));
  if (!is_over(view.standing.state) && view.head && view.head->steps_per_second)
    add(out, "pace", fmt::format("{:.3g} steps/s", *view.head->steps_per_second));
  add(out, "result", result_text_of(view));
  add(out, "time", when_text(view, now));
  add(out, "walltime", walltime_text(view, now));
  add(out, "slowest", slowest_text(view));
  add_stragglers(out, view);
  add_losses(out, view);
  add_joins(out, view);
  add_hosts(out, view);
  if (!view.run.empty() && view.run != view.entry.path) add(out, "link", view.run.string());
  for (const std::string& problem : view.problems) add(out, "problem", problem);
  return out;
}

std::string status_line(const RunView& view, Instant now) {
  std::vector<std::string> parts{state_text(view)};
  for (const std::string& text : {queue_text(view), progress_text(view), elapsed_text(view, now)})
    if (!text.empty()) parts.push_back(text);
  return plain_text(view.entry.folder() + ": " + join(parts, ", "));
}

}  // namespace dlrun::cli
