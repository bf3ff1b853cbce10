#include "src/cli/progress_bar.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "src/base/json.hpp"
#include "src/base/units.hpp"

namespace dlrun::cli {
namespace {

std::optional<double> number(const Json& report, std::string_view name) {
  const auto found = report.find(name);
  if (found == report.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}

std::string bar(double fraction) {
  constexpr int cells = 20;
  const int full = static_cast<int>(std::clamp(fraction, 0.0, 1.0) * cells);
  return "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(cells - full), '.') + "]";
}

}  // namespace

std::string progress_line(const Json& report, Seconds elapsed, int width) {
  std::vector<std::string> parts;
  const auto step = number(report, "step"), steps = number(report, "steps");
  const auto epoch = number(report, "epoch"), epochs = number(report, "epochs");
  if (epoch && epochs) parts.push_back(fmt::format("epoch {:.0f}/{:.0f}", *epoch, *epochs));
  if (step && steps && *steps > 0) {
    parts.push_back(
        fmt::format("{} {:3.0f} %", bar(*step / *steps), std::clamp(100 * *step / *steps, 0.0, 100.0)));
    parts.push_back(fmt::format("step {:.0f}/{:.0f}", *step, *steps));
  } else if (step) {
    parts.push_back(fmt::format("step {:.0f}", *step));
  }
  for (const char* name : {"loss", "loss_d", "loss_g"})  // a GAN has two
    if (const auto loss = number(report, name)) parts.push_back(fmt::format("{} {:.3f}", name, *loss));
  if (const auto accuracy = number(report, "accuracy"))
    parts.push_back(fmt::format("accuracy {:.1f} %", *accuracy * 100));
  const auto rate = number(report, "images_per_s");
  if (rate) parts.push_back(fmt::format("{:.0f} images/s", *rate));
  const auto left = number(report, "seconds_left");
  if (left) parts.push_back(format_duration(Seconds(*left)) + " left");
  if (!left) parts.push_back(format_duration(elapsed));
  std::string line;
  for (const std::string& part : parts) {
    const std::string longer = line.empty() ? part : line + "  " + part;
    if (static_cast<int>(longer.size()) >= width) break;
    line = longer;
  }
  return line;
}

}  // namespace dlrun::cli
