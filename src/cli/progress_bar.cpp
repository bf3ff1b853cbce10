#include "src/cli/progress_bar.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "src/base/json.hpp"
#include "src/cli/rate_text.hpp"
#include "src/cli/terminal_text.hpp"

namespace dlrun::cli {
namespace {

std::optional<double> number(const Json& report, std::string_view name) {
  if (!report.is_object()) return std::nullopt;
  const auto found = report.find(name);
  if (found == report.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

// Of all steps; unset where the report does not tell how many there are.
std::optional<double> fraction_of_run(const Json& report) {
  const auto step = number(report, "step"), steps = number(report, "steps");
  if (!step || !steps || *steps <= 0) return std::nullopt;
  return std::clamp(*step / *steps, 0.0, 1.0);
}

// "epoch 3/3 36 %": epochs count from 1 and have the same number of steps each.
std::string epoch_text(const Json& report) {
  const auto epoch = number(report, "epoch"), epochs = number(report, "epochs");
  if (!epoch || !epochs || *epochs < 1) return "";
  std::string text = fmt::format("epoch {:.0f}/{:.0f}", *epoch, *epochs);
  const auto run = fraction_of_run(report);
  const double of_epoch = run ? *run * *epochs - (std::floor(*epoch) - 1) : -1;
  constexpr double rounding = 1e-9;
  if (of_epoch >= 0 && of_epoch <= 1 + rounding) text += fmt::format(" {:.0f} %", 100 * of_epoch);
  return text;
}

std::string run_text(const Json& report) {
  if (const auto run = fraction_of_run(report)) return fmt::format("run {:.0f} %", 100 * *run);
  const auto step = number(report, "step");
  return step ? fmt::format("step {:.0f}", *step) : "";
}

// "0:12", "1:02:03".
std::string clock_text(Seconds duration) {
  const auto seconds = static_cast<std::int64_t>(std::clamp(duration.count(), 0.0, 1e9));
  const std::int64_t hours = seconds / 3600, minutes = seconds / 60 % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, seconds % 60)
                   : fmt::format("{}:{:02}", minutes, seconds % 60);
}

std::string left_or_elapsed(const Json& report, const ProgressTimes& times) {
  const auto told = number(report, "seconds_left");
  const auto left = told ? std::optional(Seconds(*told)) : times.left;
  return left ? clock_text(*left) + " left" : clock_text(times.elapsed);
}

constexpr int kKept = 1000;

struct ProgressPart {
  std::string text;
  int rank;  // the lowest is dropped first
};

std::vector<ProgressPart> parts_of(const Json& report, const ProgressTimes& times, std::string_view phase) {
  std::vector<ProgressPart> parts;
  const auto add = [&parts](std::string text, int rank) {
    if (!text.empty()) parts.push_back({std::move(text), rank});
  };
  int rank = 0;
  add(epoch_text(report), --rank);
  add(run_text(report), kKept + 1);
  add(plain_text(phase), --rank);
  for (const char* name : {"loss", "loss_d", "loss_g"})  // a GAN has two
    if (const auto loss = number(report, name)) add(fmt::format("{} {:.3f}", name, *loss), --rank);
  if (const auto accuracy = number(report, "accuracy"))
    add(fmt::format("accuracy {:.1f} %", *accuracy * 100), --rank);
  add(rate_text(report), --rank);
  add(left_or_elapsed(report, times), kKept);
  return parts;
}

std::string line_of_parts(const std::vector<ProgressPart>& parts) {
  std::string line;
  for (const ProgressPart& part : parts) line += (line.empty() ? "" : " · ") + part.text;
  return line;
}

}  // namespace

std::string progress_line(const Json& report, const ProgressTimes& times, std::string_view phase, int width) {
  std::vector<ProgressPart> parts = parts_of(report, times, phase);
  while (parts.size() > 1 && columns_of(line_of_parts(parts)) >= width)
    parts.erase(
        std::min_element(parts.begin(), parts.end(),
                         [](const ProgressPart& a, const ProgressPart& b) { return a.rank < b.rank; }));
  return line_of_parts(parts);
}

std::optional<Seconds> time_left(const Json& first, const Json& latest, Seconds between) {
  const auto from = number(first, "step"), to = number(latest, "step"), steps = number(latest, "steps");
  if (!from || !to || !steps || *to <= *from || between <= Seconds(0)) return std::nullopt;
  return between * (std::max(0.0, *steps - *to) / (*to - *from));
}

}  // namespace dlrun::cli
