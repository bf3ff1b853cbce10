#include "src/report/page/page.hpp"

#include <map>

#include "src/base/file.hpp"
#include "src/base/json.hpp"

namespace dlrun::report {
namespace {

// What stands in page.html as @name@, and the text in its place.
using Texts = std::map<std::string, std::string, std::less<>>;

// In one pass: what was put in is not searched again.
Result<std::string> fill(std::string_view shell, const Texts& texts, const std::string& where) {
  std::string out;
  while (true) {
    const std::size_t from = shell.find('@');
    const std::size_t to = from == std::string_view::npos ? from : shell.find('@', from + 1);
    if (to == std::string_view::npos) break;
    const auto text = texts.find(shell.substr(from + 1, to - from - 1));
    if (text == texts.end())
      return bad_input(where, fmt::format("unknown name '{}'", shell.substr(from, to - from + 1)));
    out += shell.substr(0, from);
    out += text->second;
    shell.remove_prefix(to + 1);
  }
  return out.append(shell);
}

std::string escaped(std::string_view text, std::string_view (*of)(char)) {
  std::string out;
  for (const char each : text) {
    const std::string_view other = of(each);
    if (other.empty())
      out += each;
    else
      out += other;
  }
  return out;
}

}  // namespace

std::string escape_html(std::string_view text) {
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
      case '\'':
        return "&#39;";
      default:
        return {};
    }
  });
}

std::string script_json(const Json& data) {
  return escaped(to_text(data), [](char each) -> std::string_view {
    switch (each) {
      case '<':
        return "\\u003c";
      case '>':
        return "\\u003e";
      case '&':
        return "\\u0026";
      default:
        return {};
    }
  });
}

Result<std::string> make_page(const PageRequest& request, const Json& data) {
  const auto part = [&](const std::string& name) { return read_file(request.parts / name); };
  Texts texts{{"title", escape_html(request.title)}, {"data", script_json(data)}};
  texts["library-style"] = TRY(part("uPlot.min.css"));
  texts["style"] = TRY(part("page.css"));
  texts["library-licence"] = escape_html(TRY(part("uPlot.LICENSE")));
  texts["library"] = TRY(part("uPlot.min.js"));
  texts["plots"] = TRY(part("plots.js"));
  texts["script"] = TRY(part(request.script));
  return fill(TRY(part("page.html")), texts, (request.parts / "page.html").string());
}

}  // namespace dlrun::report
