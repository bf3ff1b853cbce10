#include "src/cli/bench_report.hpp"

#include <algorithm>

#include "src/base/enum_names.hpp"
#include "src/base/install.hpp"
#include "src/base/strings.hpp"
#include "src/bench/results/formats.hpp"
#include "src/bench/results/page_data.hpp"
#include "src/cli/bench_lines.hpp"
#include "src/cli/terminal_text.hpp"
#include "src/cli/write_output.hpp"
#include "src/report/page/page.hpp"

namespace dlrun::cli {
namespace {

namespace results = bench::results;

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

Result<std::string> rendered(const BenchReportOptions& options, const results::Bench& bench,
                             const Context& context) {
  const auto cells = results::cells_of(bench);
  const Format format = format_of(options, context);
  if (format == Format::csv) return results::csv_text(bench, cells);
  if (format == Format::html) return page_of(bench, cells);
  if (format == Format::json) return to_pretty_text(results::cells_json(bench, cells));
  const results::Table table = options.columns.empty()
                                   ? results::table_of(bench, cells)
                                   : TRY(results::table_across(bench, cells, options.columns));
  switch (format) {
    case Format::markdown:
      return results::markdown_text(table);
    case Format::latex:
      return results::latex_text(table);
    default:
      return text_of(table, output_of(options, format), context);
  }
}

}  // namespace

std::span<const FlagRow<BenchReportOptions>> bench_report_flags() {
  return kFlags;
}

Result<int> show_bench(const BenchReportOptions& options, const results::Bench& bench,
                       const Context& context) {
  const std::string text = TRY(rendered(options, bench, context));
  const std::string output = output_of(options, format_of(options, context));
  if (output.empty()) {
    TRY(context.console.data(text));
    return 0;
  }
  TRY(write_output(output, text));
  context.console.out(plain_text(output));
  return 0;
}

}  // namespace dlrun::cli
