#include "src/bench/results/formats.hpp"

#include <set>

#include "src/base/escape.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/base/version.hpp"
#include "src/bench/results/findings.hpp"

namespace dlrun::bench::results {
namespace {

// Control characters become spaces: neither Markdown nor LaTeX can show them.
std::string_view blank_of(char each) {
  const bool is_control = static_cast<unsigned char>(each) < 0x20 || each == 0x7f;
  return is_control ? " " : std::string_view();
}

// A spreadsheet computes what begins like that; an apostrophe makes it a text. Numbers stay numbers.
std::string as_text(std::string text) {
  const bool is_formula =
      !text.empty() && std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  return is_formula && !parse_number(text) ? "'" + text : text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char each : text) out += each == '"' ? "\"\"" : std::string(1, each);
  return out + "\"";
}

std::string csv_row(std::vector<std::string> fields) {
  for (std::string& each : fields) each = csv_field(as_text(std::move(each)));
  return join(fields, ",") + "\r\n";
}

std::string csv_number(const std::optional<double>& value) {
  return value ? fmt::format("{}", *value) : std::string();
}

std::set<std::string> metrics_of(const std::vector<Cell>& cells) {
  std::set<std::string> out;
  for (const Cell& cell : cells)
    for (const auto& [name, value] : cell.metrics) out.insert(name);
  return out;
}

Json optional_json(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

std::optional<Statistics> metric_of(const Cell& cell, const std::string& name) {
  const auto found = cell.metrics.find(name);
  return found == cell.metrics.end() ? std::nullopt : std::optional(found->second);
}

void add_statistics(const std::optional<Statistics>& value, std::vector<std::string>& row) {
  row.push_back(value ? csv_number(value->mean) : "");
  row.push_back(value && value->n > 1 ? csv_number(value->std) : "");
}

std::string html_escaped(std::string_view text) {
  return escaped(text, [](char each) -> std::string_view {
    switch (each) {
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '&':
        return "&amp;";
      case '"':
        return "&quot;";
      default:
        return blank_of(each);
    }
  });
}

// As page.css has them.
std::string html_class(const Column& column, Mark mark) {
  const std::string kind = column.kind == Column::Kind::number ? "number" : "text";
  return fmt::format(" class=\"{}{}\"", kind,
                     mark == Mark::none   ? ""
                     : mark == Mark::best ? " best"
                                          : " failed");
}

std::string latex_cell(const TableCell& cell) {
  const std::string text = latex_escaped(cell.text);
  return cell.mark == Mark::best ? "\\textbf{" + text + "}" : text;
}

}  // namespace

std::string csv_text(const Bench& bench, const std::vector<Cell>& cells) {
  const std::set<std::string> metrics = metrics_of(cells);
  std::vector<std::string> head;
  for (const Axis& axis : bench.axes) head.push_back(axis.key);
  for (const char* name :
       {"ranks", "status", "repeats", "failed", "rate", "rate_std", "unit", "speedup", "efficiency",
        "io_overhead", "step_mean", "step_p95", "memory_bytes", "joules", "seconds", "seconds_std"})
    head.emplace_back(name);
  for (const std::string& name : metrics) head.insert(head.end(), {name, name + "_std"});
  head.insert(head.end(), {"run", "why"});
  std::string out = csv_row(head);
  for (const Cell& cell : cells) {
    std::vector<std::string> row;
    for (const Json& value : cell.values) row.push_back(value_text(value));
    row.insert(row.end(), {std::to_string(cell.ranks), std::string(name_of(cell.status)),
                           std::to_string(cell.repeats), std::to_string(cell.failed)});
    add_statistics(cell.rate, row);
    row.insert(row.end(), {bench.unit, csv_number(cell.speedup), csv_number(cell.efficiency),
                           csv_number(cell.io_overhead), cell.step ? csv_number(cell.step->mean) : "",
                           cell.step ? csv_number(cell.step->p95) : "", csv_number(cell.memory_bytes),
                           csv_number(cell.joules)});
    add_statistics(cell.seconds, row);
    for (const std::string& name : metrics) add_statistics(metric_of(cell, name), row);
    row.insert(row.end(), {cell.run, cell.why});
    out += csv_row(std::move(row));
  }
  return out;
}

std::string csv_text(const Table& table) {
  std::vector<std::string> head;
  for (const Column& column : table.columns) head.push_back(column.name);
  std::string out = csv_row(std::move(head));
  for (const auto& row : table.rows) {
    std::vector<std::string> fields;
    for (const TableCell& cell : row) fields.push_back(cell.text);
    out += csv_row(std::move(fields));
  }
  return out;
}

Json cells_json(const Bench& bench, const std::vector<Cell>& cells) {
  Json out{{"schema", "dlrun.bench-table/1"},
           {"dlrun", kVersion},
           {"name", bench.name},
           {"created", bench.created},
           {"framework", bench.framework},
           {"unit", bench.unit},
           {"mode", bench.mode == Mode::rate ? "rate" : "metrics"},
           {"machine", bench.machine},
           {"axes", Json::array()},
           {"cells", Json::array()},
           {"notes", findings_of(bench, cells)}};
  for (const Axis& axis : bench.axes)
    out["axes"].push_back({{"key", axis.key}, {"values", axis.values}, {"scale", is_scale(axis)}});
  for (const Cell& cell : cells) {
    Json values = Json::object(), metrics = Json::object();
    for (std::size_t i = 0; i < bench.axes.size(); ++i) values[bench.axes[i].key] = cell.values[i];
    for (const auto& [name, value] : cell.metrics) metrics[name] = statistics_json(value);
    out["cells"].push_back({{"values", std::move(values)},
                            {"ranks", cell.ranks},
                            {"status", name_of(cell.status)},
                            {"why", cell.why},
                            {"run", cell.run},
                            {"repeats", cell.repeats},
                            {"failed", cell.failed},
                            {"rate", statistics_json(cell.rate)},
                            {"speedup", optional_json(cell.speedup)},
                            {"efficiency", optional_json(cell.efficiency)},
                            {"io_overhead", optional_json(cell.io_overhead)},
                            {"memory_bytes", optional_json(cell.memory_bytes)},
                            {"joules", optional_json(cell.joules)},
                            {"seconds", statistics_json(cell.seconds)},
                            {"metrics", std::move(metrics)}});
  }
  return out;
}

std::string markdown_escaped(std::string_view text) {
  return escaped(text, [](char each) -> std::string_view {
    switch (each) {
      case '|':
        return "\\|";
      case '\\':
        return "\\\\";
      case '*':
        return "\\*";
      case '_':
        return "\\_";
      case '`':
        return "\\`";
      case '[':
        return "\\[";
      case ']':
        return "\\]";
      case '<':
        return "&lt;";
      case '>':
        return "&gt;";
      case '&':
        return "&amp;";
      default:
        return blank_of(each);
    }
  });
}

std::string markdown_text(const Table& table) {
  std::string out = "**" + markdown_escaped(table.title) + "**\n\n|", rule = "|";
  for (const Column& column : table.columns) {
    out += " " + markdown_escaped(column.name) + " |";
    rule += column.kind == Column::Kind::number ? " ---: |" : " --- |";
  }
  out += "\n" + rule + "\n";
  for (const auto& row : table.rows) {
    out += "|";
    for (const TableCell& cell : row) {
      const std::string text = markdown_escaped(cell.text);
      out += cell.mark == Mark::best ? " **" + text + "** |" : " " + text + " |";
    }
    out += "\n";
  }
  if (!table.notes.empty()) out += "\n";
  for (const std::string& note : table.notes) out += "- " + markdown_escaped(note) + "\n";
  return out;
}

std::string html_text(const Table& table, std::string_view style) {
  const std::string title = html_escaped(table.title);
  std::string head, rows, notes;
  for (const Column& column : table.columns)
    head +=
        fmt::format("<th scope=\"col\"{}>{}</th>", html_class(column, Mark::none), html_escaped(column.name));
  for (const auto& row : table.rows) {
    rows += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      rows +=
          fmt::format("<td{}>{}</td>", html_class(table.columns[i], row[i].mark), html_escaped(row[i].text));
    rows += "</tr>\n";
  }
  for (const std::string& note : table.notes) notes += "<li>" + html_escaped(note) + "</li>\n";
  if (!notes.empty()) notes = "<ul>\n" + notes + "</ul>\n";
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; "
      "img-src data:\">\n<title>{0}</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>\n{1}</style>\n"
      "</head>\n<body>\n<main>\n<h1>{0}</h1>\n<div class=\"table\" tabindex=\"0\"><table>\n"
      "<thead><tr>{2}</tr></thead>\n<tbody>\n{3}</tbody>\n</table></div>\n{4}"
      "<footer>dlrun {5}</footer>\n</main>\n</body>\n</html>\n",
      title, style, head, rows, notes, kVersion);
}

std::string latex_escaped(std::string_view text) {
  std::string out = escaped(text, [](char each) -> std::string_view {
    switch (each) {
      case '\\':
        return "\\textbackslash{}";
      case '{':
        return "\\{";
      case '}':
        return "\\}";
      case '#':
        return "\\#";
      case '$':
        return "\\$";
      case '%':
        return "\\%";
      case '&':
        return "\\&";
      case '_':
        return "\\_";
      case '~':
        return "\\textasciitilde{}";
      case '^':
        return "\\textasciicircum{}";
      case '<':
        return "\\textless{}";
      case '>':
        return "\\textgreater{}";
      case '[':  // behind the end of a row it would be a length, and * a command
        return "{[}";
      case '*':
        return "{*}";
      default:
        return blank_of(each);
    }
  });
  constexpr std::string_view sign = "±", command = "$\\pm$";
  for (std::size_t at = 0; (at = out.find(sign, at)) != std::string::npos; at += command.size())
    out.replace(at, sign.size(), command);
  return out;
}

std::string latex_text(const Table& table) {
  std::string columns, head;
  for (const Column& column : table.columns) {
    columns += column.kind == Column::Kind::number ? 'r' : 'l';
    head += (head.empty() ? "" : " & ") + latex_escaped(column.name);
  }
  std::string out = "% \\usepackage{booktabs}\n\\begin{table}\n  \\centering\n  \\caption{" +
                    latex_escaped(table.title) + "}\n  \\begin{tabular}{" + columns +
                    "}\n    \\toprule\n    " + head + " \\\\\n    \\midrule\n";
  for (const auto& row : table.rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) line += (i == 0 ? "" : " & ") + latex_cell(row[i]);
    out += "    " + line + " \\\\\n";
  }
  out += "    \\bottomrule\n  \\end{tabular}\n";
  for (const std::string& note : table.notes) out += "  \\par\\footnotesize " + latex_escaped(note) + "\n";
  return out + "\\end{table}\n";
}

}  // namespace dlrun::bench::results
