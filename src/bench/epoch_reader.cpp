#include "src/bench/epoch_reader.hpp"

#include <optional>

#include "src/base/json.hpp"
#include "src/base/regular_file.hpp"
#include "src/report/json_lines.hpp"
#include "src/report/run_folder.hpp"

namespace dlrun::bench {
namespace {

namespace fs = std::filesystem;

Json progress_of(const fs::path& run) {
  const auto text = read_regular_file(run / "status.json", kMaxJsonBytes);
  const auto json = text ? parse_json(*text, "status.json") : fail(text.error());
  return json && json->is_object() ? json->value("progress", Json()) : Json();
}

std::optional<int> epoch_of(const Json& report) {
  if (!report.is_object()) return std::nullopt;
  const auto epoch = field<int>(report, "epoch", "report");
  return epoch && *epoch > 0 ? std::optional(*epoch) : std::nullopt;
}

}  // namespace

// A metric that an epoch tells twice has its later value.
void EpochReader::take(const Json& report, EpochValues& values) const {
  const auto epoch = epoch_of(report);
  if (!epoch) return;
  if (const auto value = field<double>(report, metric_.c_str(), "report")) values[*epoch] = *value;
}

const EpochValues& EpochReader::of(const fs::path& run) {
  Run& known = runs_.try_emplace(run, Run{report::LogReader(report::metrics_file(run))}).first->second;
  // What cannot be read now may be readable at the next look.
  (void)known.lines.read(report::LogReader::Until::whole_lines, [&](std::string_view line) {
    if (const auto json = parse_json(line, "metrics.jsonl")) take(*json, known.values);
  });
  take(progress_of(run), known.values);
  return known.values;
}

std::map<std::string, double> last_epoch_metrics(const fs::path& run) {
  std::map<std::string, double> out;
  const auto take = [&](const Json& report) {
    if (!epoch_of(report)) return;
    for (const auto& [name, value] : report.items())
      if (value.is_number() && name != "time" && name != "step" && name != "steps")
        out[name] = value.get<double>();
  };
  (void)report::for_each_line(report::metrics_file(run), [&](std::string_view line) {
    if (const auto json = parse_json(line, "metrics.jsonl")) take(*json);
  });
  take(progress_of(run));
  return out;
}

}  // namespace dlrun::bench
