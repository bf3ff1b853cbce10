#include "src/cli/bench_report.hpp"

#include <algorithm>

#include "src/base/enum_names.hpp"
#include "src/base/file.hpp"
#include "src/base/install.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/bench/predict/predict.hpp"
#include "src/bench/results/compare.hpp"
#include "src/bench/results/formats.hpp"
#include "src/bench/results/page_data.hpp"
#include "src/cli/bench_lines.hpp"
#include "src/cli/terminal_text.hpp"
#include "src/cli/usage_error.hpp"
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

template <class Value>
std::string problem_of(const Result<Value>& value) {
  return value ? "" : value.error().what;
}

std::string check_percent(const std::string& text) {
  return problem_of(share_of(text));
}

std::string check_sizes(const std::string& text) {
  return problem_of(bench::predict::parse_sizes(text));
}

std::string check_network(const std::string& name) {
  return problem_of(bench::predict::find_network(name));
}

std::string check_bytes(const std::string& text) {
  const auto bytes = parse_size(text);
  return bytes && *bytes == 0 ? "0 bytes are nothing to exchange" : problem_of(bytes);
}

constexpr FlagRow<BenchReportOptions> kFlags[] = {
    {{.name = "--format",
      .value = "FORMAT",
      .help = "text, csv, json, markdown, latex or html (default: by the name of the output, else text)",
      .choices = "text csv json markdown latex html",
      .check = check_format},
     &BenchReportOptions::format},
    {{.name = "-o,--output", .value = "FILE", .help = "write to this file; - is standard output"},
     &BenchReportOptions::output},
    {{.name = "--columns", .value = "AXIS", .help = "use the values of this axis as columns of the table"},
     &BenchReportOptions::columns},
    {{.name = "--compare",
      .value = "DIR",
      .help =
          "show which cells differ from an older bench by more than noise; exit code 1 if one became worse",
      .excludes = "--columns --predict"},
     &BenchReportOptions::compare},
    {{.name = "--margin",
      .value = "PERCENT",
      .help = "with --compare: ignore smaller changes (default: 2)",
      .check = check_percent},
     &BenchReportOptions::margin},
    {{.name = "--predict",
      .value = "N,N",
      .help = "predict the rate on these numbers of nodes, and what bounds it",
      .excludes = "--columns",
      .check = check_sizes},
     &BenchReportOptions::predict},
    {{.name = "--network",
      .value = "NAME",
      .help = "with --predict: use the α-β model of this network instead of a fit",
      .choices = "ethernet-10g aries hdr nvlink-ndr",
      .check = check_network},
     &BenchReportOptions::network},
    {{.name = "--servers",
      .value = "N,N",
      .help = "with --predict: numbers of parameter servers (default: the best)",
      .check = check_sizes},
     &BenchReportOptions::servers},
    {{.name = "--bytes",
      .value = "SIZE",
      .help = "with --network: bytes that a rank exchanges per step (default: as measured)",
      .check = check_bytes},
     &BenchReportOptions::bytes},
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
Result<std::string> in_format(const results::Table& table, Format format, const std::string& output,
                              const Context& context) {
  switch (format) {
    case Format::markdown:
      return results::markdown_text(table);
    case Format::latex:
      return results::latex_text(table);
    case Format::csv:
      return results::csv_text(table);
    case Format::html:
      return results::html_text(table, TRY(read_file(TRY(this_installation()).data / "report/page.css")));
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
        TRY(in_format(TRY(results::table_across(bench, cells, options.columns)), format, output, context))};
  if (format == Format::csv) return Shown{results::csv_text(bench, cells)};
  return Shown{TRY(in_format(results::table_of(bench, cells), format, output, context))};
}

Result<Shown> comparison_of(const BenchReportOptions& options, const results::Bench& bench, Format format,
                            const Context& context) {
  const results::Bench before = results::with_seeds_as_repeats(TRY(results::read_bench(options.compare)));
  const auto comparison = TRY(results::compare(before, bench, TRY(share_of(options.margin))));
  const int code = results::has_regression(comparison) ? kRegression : 0;
  if (format == Format::json) return Shown{to_pretty_text(results::to_json(bench, comparison)), code};
  const results::Table table = results::table_of(bench, comparison);
  return Shown{TRY(in_format(table, format, output_of(options, format), context)), code};
}

Result<bench::predict::Request> request_of(const BenchReportOptions& options) {
  using namespace bench::predict;
  Request out{.nodes = TRY(parse_sizes(options.predict))};
  if (!options.servers.empty()) out.servers = TRY(parse_sizes(options.servers));
  if (!options.network.empty()) out.network = TRY(find_network(options.network));
  if (!options.bytes.empty()) out.bytes = static_cast<double>(TRY(parse_size(options.bytes)));
  return out;
}

Result<Shown> prediction_of(const BenchReportOptions& options, const results::Bench& bench, Format format,
                            const Context& context) {
  const auto forecast = TRY(bench::predict::predict(bench, TRY(request_of(options))));
  if (format == Format::json) return Shown{to_pretty_text(bench::predict::to_json(forecast))};
  return Shown{
      TRY(in_format(bench::predict::table_of(forecast), format, output_of(options, format), context))};
}

Result<Shown> shown_of(const BenchReportOptions& options, const results::Bench& bench, Format format,
                       const Context& context) {
  if (!options.compare.empty()) return comparison_of(options, bench, format, context);
  if (!options.predict.empty()) return prediction_of(options, bench, format, context);
  return results_of(options, bench, format, context);
}

}  // namespace

std::span<const FlagRow<BenchReportOptions>> bench_report_flags() {
  return kFlags;
}

bool is_any_set(const BenchReportOptions& options) {
  return std::any_of(std::begin(kFlags), std::end(kFlags), [&](const FlagRow<BenchReportOptions>& row) {
    const auto* field = std::get_if<std::string BenchReportOptions::*>(&row.place);
    return field && !(options.**field).empty();
  });
}

Result<void> check_together(const BenchReportOptions& options, std::string_view command) {
  const auto needs = [&](const std::string& value, const char* flag, const std::string& other,
                         const char* name) -> Result<void> {
    if (value.empty() || !other.empty()) return {};
    return fail(usage_error(command, fmt::format("{} has no meaning without {}", flag, name)));
  };
  TRY(needs(options.margin, "--margin", options.compare, "--compare"));
  TRY(needs(options.network, "--network", options.predict, "--predict"));
  TRY(needs(options.servers, "--servers", options.predict, "--predict"));
  return needs(options.bytes, "--bytes", options.network, "--network");
}

Result<int> show_bench(const BenchReportOptions& options, const results::Bench& all, const Context& context) {
  const results::Bench bench = results::with_seeds_as_repeats(all);
  const Format format = format_of(options, context);
  const auto [text, code] = TRY(shown_of(options, bench, format, context));
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
