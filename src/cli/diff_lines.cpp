#include "src/cli/diff_lines.hpp"

#include <algorithm>

#include "src/cli/terminal_text.hpp"

namespace dlrun::cli {
namespace {

using report::Difference;

constexpr std::size_t kShownOfSection = 20, kMaxValue = 120;

std::string value_text(const Json& value) {
  if (value.is_null()) return "-";
  std::string text = plain_text(value.is_string() ? value.get<std::string>() : to_text(value));
  if (text.empty()) return "(empty)";
  if (text.size() > kMaxValue) text = text.substr(0, kMaxValue) + "...";
  return text;
}

// Long values stand below each other, where a person can compare them.
void add(std::vector<std::string>& lines, const Difference& one) {
  constexpr std::size_t beside = 60;
  const std::string name = plain_text(one.name), a = value_text(one.a), b = value_text(one.b);
  const std::string ratio = one.ratio ? fmt::format(" ({:.2f} x)", *one.ratio) : "";
  if (a.size() + b.size() <= beside)
    return lines.push_back(fmt::format("  {}: {} -> {}{}", name, a, b, ratio));
  lines.push_back(fmt::format("  {}:", name));
  lines.push_back("    a " + a);
  lines.push_back("    b " + b + ratio);
}

std::string run_line(const char* side, const report::DiffRun& run) {
  const auto code = field<int>(run.record, "exit_code", "");
  const auto began = field<std::string>(run.record, "began", "");
  return fmt::format("{} {}: {}{}", side, plain_text(run.path.string()),
                     code ? fmt::format("exit code {}", *code) : "without a record",
                     began ? ", began " + *began : "");
}

std::string unknown_text(const report::UnknownSection& one) {
  return fmt::format("not known of {}: {}", one.a ? "a" : "b", one.section);
}

}  // namespace

std::vector<std::string> diff_lines(const report::RunDiff& diff, const report::DiffRun& a,
                                    const report::DiffRun& b) {
  std::vector<std::string> out{run_line("a", a), run_line("b", b)};
  for (std::size_t i = 0; i < diff.differences.size();) {
    const std::string& section = diff.differences[i].section;
    out.push_back(section);
    std::size_t end = i;
    while (end < diff.differences.size() && diff.differences[end].section == section) ++end;
    for (std::size_t k = i; k < std::min(end, i + kShownOfSection); ++k) add(out, diff.differences[k]);
    if (end > i + kShownOfSection)
      out.push_back(fmt::format("  and {} more: --json has them all", end - i - kShownOfSection));
    i = end;
  }
  if (diff.differences.empty())
    out.emplace_back(report::is_whole(a) && report::is_whole(b) ? "no difference"
                                                                : "no difference in what could be read");
  for (const report::UnknownSection& one : diff.unknown) out.push_back(unknown_text(one));
  for (const report::DiffRun* run : {&a, &b})
    for (const std::string& problem : run->problems) out.push_back("problem: " + plain_text(problem));
  return out;
}

}  // namespace dlrun::cli
