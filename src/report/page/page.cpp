#include "src/report/page/page.hpp"

#include <functional>

#include "src/base/escape.hpp"
#include "src/base/file.hpp"
#include "src/base/json.hpp"

namespace dlrun::report {
namespace {

using TextOf = std::function<Result<std::string>(std::string_view name)>;

// Puts a text in the place of each @name@, in one pass: what was put in is not searched again.
Result<std::string> fill(std::string_view shell, const TextOf& text_of) {
  std::string out;
  while (true) {
    const std::size_t from = shell.find('@');
    const std::size_t to = from == std::string_view::npos ? from : shell.find('@', from + 1);
    if (to == std::string_view::npos) break;
    out += shell.substr(0, from);
    out += TRY(text_of(shell.substr(from + 1, to - from - 1)));
    shell.remove_prefix(to + 1);
  }
  return out.append(shell);
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
  const std::filesystem::path shell = request.parts / request.shell;
  const auto text_of = [&](std::string_view name) -> Result<std::string> {
    constexpr std::string_view file = "file:";
    if (name == "title") return escape_html(request.title);
    if (name == "data") return script_json(data);
    if (name.starts_with(file)) return read_file(request.parts / name.substr(file.size()));
    return bad_input(shell.string(), fmt::format("unknown name '@{}@'", name));
  };
  const auto with_shells = [&](std::string_view name) -> Result<std::string> {
    constexpr std::string_view part = "shell:";
    if (!name.starts_with(part)) return text_of(name);
    return fill(TRY(read_file(request.parts / name.substr(part.size()))), text_of);
  };
  return fill(TRY(read_file(shell)), with_shells);
}

}  // namespace dlrun::report
