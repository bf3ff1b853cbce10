#include "src/cli/bench_report.hpp"

#include <algorithm>

#include "src/base/enum_names.hpp"
#include "src/base/install.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/bench/results/compare.hpp"
#include "src/bench/results/formats.hpp"
#include "src/bench/results/page_data.hpp"
#include "src/cli/bench_lines.hpp"
#include "src/cli/terminal_text.hpp"
#include "src/cli/write_output.hpp"
#include "src/report/page/page.hpp"

namespace dlrun::cli {
namespace {

namespace results = bench::results;

constexpr int kRegression = 1;
constexpr double kUsualMargin = 2;  // percent

enum class Format { text, csv, json, markdown, latex, html };
constexpr auto kFormats = enum_names<Format>({{Format::text, "text"},
                                              {Format::csv, "csv"},
                                              {Format::json, "json"},
                                              {Format::markdown, "markdown"},
                                              {Format::latex, "latex"},
                                              {Format::html, "html"}});
constexpr auto kSuffixes = enum_names<Format>({{Format::text, ".txt"},
                                               {Format::csv, ".csv"},
                                               {Format::json, ".json"},
                                               {Format::markdown, ".md"},
                                               {Format::latex, ".tex"},
                                               {Format::html, ".html"}});

std::string check_format(const std::string& name) {
  if (kFormats.value(name)) return {};
  return fmt::format("unknown value '{}'; expected {}", name, join(kFormats.names(), ", "));
}

Result<double> share_of(const std::string& percent) {
  const double value = percent.empty() ? kUsualMargin : TRY(parse_number(percent));
  if (value < 0 || value > 1000) return fail(ErrorKind::usage, "{} is out of range [0, 1000]", percent);
  return value / 100;
}

std::string check_percent(const std::string& text) {
  const auto share = share_of(text);
  return share ? "" : share.error().what;
}

constexpr FlagRow<BenchReportOptions> kFlags[] = {
    {{.name = "--format",
      .value = "FORMAT",
      .help = "text, csv, json, markdown, latex or html (default: by the name of the output, else text)",
      .choices = "text csv json markdown latex html",
      .check = check_format},
     &BenchReportOptions::format},
    {{.name = "-o,--output", .value = "FILE", .help = "write it there; -: to standard output"},
     &BenchReportOptions::output},
    {{.name = "--columns", .value = "AXIS", .help = "make the values of this axis columns of the table"},
     &BenchReportOptions::columns},
    {{.name = "--compare",
      .value = "DIR",
      .help = "show which cells differ from an older bench beyond noise; exit code 1 if one became worse",
      .excludes = "--columns"},
     &BenchReportOptions::compare},
    {{.name = "--margin",
      .value = "PERCENT",
      .help = "with --compare: changes that are smaller are none (default: 2)",
      .check = check_percent},
     &BenchReportOptions::margin},
};

Format format_of(const BenchReportOptions& options, const Context& context) {
  if (!options.format.empty()) return *kFormats.value(options.format);
  if (context.common.json) return Format::json;
  const auto by_suffix = kSuffixes.value(std::filesystem::path(options.output).extension().string());
  return by_suffix.value_or(Format::text);
}

// Empty: standard output. A page is a file unless it is asked for there.
std::string output_of(const BenchReportOptions& options, Format format) {
  if (options.output == "-") return {};
  return options.output.empty() && format == Format::html ? "bench.html" : options.output;
}

std::string text_of(const results::Table& table, const std::string& output, const Context& context) {
  constexpr int unlimited = 1 << 20;
  const bool terminal = output.empty() && context.console.shows_out_on_terminal();
  const Paint paint = [&](std::string_view text, Tint tint) {
    return output.empty() ? context.console.tinted_out(text, tint) : std::string(text);
  };
  std::string out;
  for (const std::string& line : table_lines(table, terminal ? context.console.width() : unlimited, paint))
    out += line + "\n";
  return out;
}

Result<std::string> page_of(const results::Bench& bench, const std::vector<results::Cell>& cells) {
  const std::string title = (bench.name.empty() ? "bench" : bench.name) + " · dlrun bench";
  const std::filesystem::path parts = TRY(this_installation()).data / "report";
  return report::make_page({.parts = parts, .shell = "bench.html", .title = title},
                           results::page_json(bench, cells));
}

// A table in the formats that all tables have; the others are the caller's.
std::string in_format(const results::Table& table, Format format, const std::string& output,
                      const Context& context) {
  switch (format) {
    case Format::markdown:
      return results::markdown_text(table);
    case Format::latex:
      return results::latex_text(table);
    case Format::csv:
      return results::csv_text(table);
    default:
      return text_of(table, output, context);
  }
}

// What is shown, and the exit code.
struct Shown {
  std::string text;
  int code = 0;
};

Result<Shown> results_of(const BenchReportOptions& options, const results::Bench& bench, Format format,
                         const Context& context) {
  const auto cells = results::cells_of(bench);
  if (format == Format::html) return Shown{TRY(page_of(bench, cells))};
  if (format == Format::json) return Shown{to_pretty_text(results::cells_json(bench, cells))};
  const std::string output = output_of(options, format);
  if (!options.columns.empty())
    return Shown{
        in_format(TRY(results::table_across(bench, cells, options.columns)), format, output, context)};
  if (format == Format::csv) return Shown{results::csv_text(bench, cells)};
  return Shown{in_format(results::table_of(bench, cells), format, output, context)};
}

Result<Shown> comparison_of(const BenchReportOptions& options, const results::Bench& bench, Format format,
                            const Context& context) {
  const results::Bench before = TRY(results::read_bench(options.compare));
  const auto comparison = TRY(results::compare(before, bench, TRY(share_of(options.margin))));
  const int code = results::has_regression(comparison) ? kRegression : 0;
  if (format == Format::html)
    return fail(ErrorKind::usage,
                "--compare has no page; expected --format text, csv, json, markdown or latex");
  if (format == Format::json) return Shown{to_pretty_text(results::to_json(bench, comparison)), code};
  const results::Table table = results::table_of(bench, comparison);
  return Shown{in_format(table, format, output_of(options, format), context), code};
}

}  // namespace

std::span<const FlagRow<BenchReportOptions>> bench_report_flags() {
  return kFlags;
}

Result<int> show_bench(const BenchReportOptions& options, const results::Bench& bench,
                       const Context& context) {
  const Format format = format_of(options, context);
  const auto [text, code] = TRY(options.compare.empty() ? results_of(options, bench, format, context)
                                                        : comparison_of(options, bench, format, context));
  const std::string output = output_of(options, format);
  if (output.empty()) {
    TRY(context.console.data(text));
    return code;
  }
  TRY(write_output(output, text));
  context.console.out(plain_text(output));
  return code;
}

}  // namespace dlrun::cli
