#include "src/record/openmetrics.hpp"

#include <cmath>
#include <initializer_list>
#include <utility>

#include <fmt/format.h>

#include "src/base/escape.hpp"

namespace dlrun::job {
namespace {

using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

std::string label_text(std::string_view value) {
  return escaped(value, [](char each) -> std::string_view {
    switch (each) {
      case '\n':
        return "\\n";
      case '"':
        return "\\\"";
      case '\\':
        return "\\\\";
      default:
        return {};
    }
  });
}

// One metric: its head comes before its first line, and none comes where nothing is known.
class Metrics {
 public:
  explicit Metrics(std::string_view run) : run_(label_text(run)) {}

  void begin(std::string_view name, std::string_view help) { name_ = name, help_ = help; }
  void line(Labels labels, double value) {
    if (!help_.empty()) text_ += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name_, help_);
    help_ = {};
    text_ += fmt::format("{}{{run=\"{}\"", name_, run_);
    for (const auto& [label, text] : labels) text_ += fmt::format(",{}=\"{}\"", label, label_text(text));
    text_ += fmt::format("}} {}\n", number(value));
  }
  void one(std::string_view name, std::string_view help, double value, Labels labels = {}) {
    begin(name, help);
    line(labels, value);
  }
  std::string finish() && { return std::move(text_) + "# EOF\n"; }

 private:
  static std::string number(double value) {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
    return fmt::format("{}", value);
  }
  std::string run_, text_;
  std::string_view name_, help_;
};

double seconds_since_1970(Instant when) {
  return std::chrono::duration<double>(when.time_since_epoch()).count();
}

void add_run(Metrics& out, const HeadStatus& status) {
  out.one("dlrun_run_info", "What the run is.", 1,
          {{"name", status.name},
           {"framework", status.framework},
           {"scheduler", status.scheduler},
           {"scheduler_job", status.scheduler_job.value_or("")}});
  out.begin("dlrun_run_stage", "1 for the stage that the run is in.");
  for (const HeadStage stage :
       {HeadStage::starting, HeadStage::running, HeadStage::stopping, HeadStage::ended})
    out.line({{"stage", word_of(stage)}}, stage == status.stage ? 1 : 0);
  out.one("dlrun_run_nodes", "Nodes of the run.", static_cast<double>(status.nodes));
  out.one("dlrun_run_ranks", "Ranks of the run.", static_cast<double>(status.ranks));
  out.one("dlrun_run_attempt", "Attempt, from 1.", status.attempt);
  out.one("dlrun_run_start_time_seconds", "When the run began, since 1970.",
          seconds_since_1970(status.began));
  out.one("dlrun_run_written_time_seconds", "When this file was written, since 1970.",
          seconds_since_1970(status.written));
  if (status.walltime_end)
    out.one("dlrun_run_walltime_end_seconds", "When the walltime ends, since 1970.",
            seconds_since_1970(*status.walltime_end));
  if (status.exit_code) out.one("dlrun_run_exit_code", "Exit code of the ended run.", *status.exit_code);
}

void add_progress(Metrics& out, const HeadStatus& status) {
  if (status.progress.is_object()) {
    out.begin("dlrun_progress", "The latest report of rank 0: step, steps, epoch, loss and others.");
    for (const auto& [name, value] : status.progress.items())
      if (value.is_number()) out.line({{"name", name}}, value.get<double>());
  }
  if (status.steps_per_second)
    out.one("dlrun_steps_per_second", "Steps per second in the last half minute.", *status.steps_per_second);
  if (status.left) out.one("dlrun_seconds_left", "Until the last step at this pace.", status.left->count());
  if (status.slowest)
    out.one("dlrun_steps_behind", "Steps of the slowest rank behind the fastest.",
            static_cast<double>(status.slowest->behind),
            {{"rank", std::to_string(status.slowest->rank)}, {"host", status.slowest->host}});
  std::size_t lost = 0, left = 0;
  if (status.losses.is_array())
    for (const Json& loss : status.losses)
      (field<bool>(loss, "on_request", "").value_or(false) ? left : lost) +=
          field<Json>(loss, "ranks", "").value_or(Json()).size();
  out.one("dlrun_lost_ranks", "Ranks that an elastic run has lost.", static_cast<double>(lost));
  out.one("dlrun_left_ranks", "Ranks that left an elastic run on request.", static_cast<double>(left));
  std::size_t joined = 0;
  if (status.joins.is_array())
    for (const Json& join : status.joins) joined += field<Json>(join, "ranks", "").value_or(Json()).size();
  out.one("dlrun_joined_ranks", "Ranks that joined an elastic run.", static_cast<double>(joined));
  out.begin("dlrun_stragglers", "Ranks that take longer than the others.");
  out.line({}, static_cast<double>(status.stragglers.size()));
}

template <class T>
void add_usage(Metrics& out, const HeadStatus& status, std::optional<T> NodeUsage::*field,
               std::string_view name, std::string_view help) {
  out.begin(name, help);
  for (const NodeUsage& node : status.usage)
    if (node.*field) out.line({{"host", node.host}}, static_cast<double>(*(node.*field)));
}

void add_nodes(Metrics& out, const HeadStatus& status) {
  add_usage(out, status, &NodeUsage::cpu, "dlrun_node_cpu_ratio", "Share of a node's cores that work.");
  add_usage(out, status, &NodeUsage::memory_used, "dlrun_node_memory_used_bytes", "Memory used on a node.");
  add_usage(out, status, &NodeUsage::memory_total, "dlrun_node_memory_bytes", "Memory of a node.");
  add_usage(out, status, &NodeUsage::received, "dlrun_node_receive_bytes_per_second",
            "Bytes per second that a node receives.");
  add_usage(out, status, &NodeUsage::sent, "dlrun_node_transmit_bytes_per_second",
            "Bytes per second that a node sends.");
  add_usage(out, status, &NodeUsage::gpu, "dlrun_node_gpu_ratio", "Mean use of a node's GPUs.");
  add_usage(out, status, &NodeUsage::gpu_memory_used, "dlrun_node_gpu_memory_used_bytes",
            "Memory used on a node's GPUs.");
  add_usage(out, status, &NodeUsage::gpu_memory_total, "dlrun_node_gpu_memory_bytes",
            "Memory of a node's GPUs.");
}

}  // namespace

std::string openmetrics_text(const HeadStatus& status) {
  Metrics out(status.job_id);
  add_run(out, status);
  add_progress(out, status);
  add_nodes(out, status);
  return std::move(out).finish();
}

}  // namespace dlrun::job
