// Formats that other programs read: nothing in a value may become markup.
#include "src/bench/results/formats.hpp"

#include "tests/unit/bench_results/support.hpp"

using namespace dlrun;
using namespace dlrun::bench::results;
using test::bench_json;
using test::bench_of;
using test::done;
using test::failed;

namespace {

const Json kHostile =
    bench_json({{{"key", "name"}, {"values", {"a,\"b\"\n|c| 50 % <x> \\ _ & # $ ^ ~ {}", "[*]"}}}},
               {done({{"name", "a,\"b\"\n|c| 50 % <x> \\ _ & # $ ^ ~ {}"}}, 1),
                failed({{"name", "[*]"}}, "timeout", "no \\end{table}")});

// What LaTeX would take as a command, a comment, a column or a row beside those that the table needs.
std::size_t count(const std::string& text, const std::string& part) {
  std::size_t out = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; at += part.size()) ++out;
  return out;
}

// Braces that open and close groups, without the escaped ones.
bool balanced(const std::string& text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size() && depth >= 0; ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '{')
      ++depth;
    else if (text[i] == '}')
      --depth;
  }
  return depth == 0;
}

}  // namespace

TEST_CASE("CSV quotes what has commas, quotes or lines, and has numbers with all digits") {
  const Bench bench = bench_of(kHostile);
  const std::string text = csv_text(bench, cells_of(bench));
  CHECK(text.find("name,ranks,status,repeats,failed,rate,rate_std,unit") == 0);
  CHECK(text.find("\"a,\"\"b\"\"\n|c| 50 % <x> \\ _ & # $ ^ ~ {}\",1,done,1,0,1,,images/s") !=
        std::string::npos);
  CHECK(text.find("[*],0,timeout,1,1,,,images/s") != std::string::npos);
}

TEST_CASE("CSV has no cell that a spreadsheet would compute, and its numbers stay numbers") {
  const Bench bench = bench_of(bench_json(
      {{{"key", "=name"}, {"values", {"=1+1", "+a", "-b", "@c", "-0.5", "a=b"}}}},
      {done({{"=name", "=1+1"}}, 1), done({{"=name", "+a"}}, 1), failed({{"=name", "-b"}}, "failed", "@why"),
       done({{"=name", "@c"}}, 1), done({{"=name", "-0.5"}}, 1), done({{"=name", "a=b"}}, 1)}));
  const std::string text = csv_text(bench, cells_of(bench));
  CHECK(text.starts_with("'=name,ranks,"));
  for (const char* line : {"\n'=1+1,", "\n'+a,", "\n'-b,", "\n'@c,", "\n-0.5,", "\na=b,", ",'@why\r"})
    CHECK(text.find(line) != std::string::npos);
}

TEST_CASE("JSON has every cell with its statistics") {
  const Bench bench =
      bench_of(bench_json({{{"key", "nodes"}, {"values", {1, 2}}}},
                          {done({{"nodes", 1}}, 10), done({{"nodes", 2}}, 15), done({{"nodes", 2}}, 17, 1)}));
  const Json json = cells_json(bench, cells_of(bench));
  CHECK(json["schema"] == "dlrun.bench-table/1");
  CHECK(json["cells"][0]["rate"]["std"] == nullptr);
  CHECK(json["cells"][1]["rate"]["n"] == 2);
  CHECK(json["cells"][1]["efficiency"] == 0.8);
  CHECK(json["axes"][0]["scale"] == true);
}

TEST_CASE("Markdown keeps its columns") {
  const Bench bench = bench_of(kHostile);
  const std::string text = markdown_text(table_of(bench, cells_of(bench)));
  const std::size_t row = text.find("| a,");
  REQUIRE(row != std::string::npos);
  const std::string line = text.substr(row, text.find('\n', row) - row);
  CHECK(count(line, "|") - count(line, "\\|") == 4);  // three columns
  CHECK(line.find("\\|c\\| 50 % &lt;x&gt; \\\\ \\_ &amp;") != std::string::npos);
}

TEST_CASE("a page of a table has only the markup of the table") {
  const Bench bench = bench_of(kHostile);
  const std::string text = html_text(table_of(bench, cells_of(bench)), "td { color: red }");
  CHECK(text.starts_with("<!doctype html>"));
  CHECK(text.find("&lt;x&gt; \\ _ &amp; # $") != std::string::npos);
  CHECK(text.find("<x>") == std::string::npos);
  CHECK(count(text, "<tr>") == 3);
  CHECK(count(text, "<td") == 3 * 2);
  CHECK(text.find("<td class=\"number failed\">timeout</td>") != std::string::npos);
  CHECK(text.find("td { color: red }") != std::string::npos);
}

TEST_CASE("LaTeX has only the commands of the table") {
  const Bench bench = bench_of(kHostile);
  const std::string text = latex_text(table_of(bench, cells_of(bench)));
  CHECK(balanced(text));
  CHECK(count(text, "\\end{table}") == 1);
  CHECK(count(text, "\\begin{tabular}{lrr}") == 1);
  CHECK(text.find("50 \\% \\textless{}x\\textgreater{} \\textbackslash{} \\_ \\& \\# \\$ \\textasciicircum{} "
                  "\\textasciitilde{} \\{\\}") != std::string::npos);
  CHECK(text.find("{[}{*}{]}") == std::string::npos);
  CHECK(text.find("\n    {[}{*}] & timeout") != std::string::npos);
  CHECK(latex_escaped("1 ± 2") == "1 $\\pm$ 2");
}
