// Template: a strict subset of mustache over JSON, for scripts. {{name.path}} is quoted for the target by the
// function the caller gives; {{{name}}} is the visible exception, put in as it is, and must be one line;
// {{#x}}..{{/x}} repeats over a list, enters a map, or takes a branch; {{^x}}..{{/x}} is the other branch;
// {{! comments}}. It has no logic, partials, or other delimiters. A name that does not exist is an error,
// also in a branch that is not taken: check() walks them all.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"

namespace dlrun::render {

using Quote = std::function<std::string(std::string_view)>;

class Template {
 public:
  // `file` is what errors call it; they name line and column.
  static Result<Template> parse(std::string_view text, const std::string& file);

  // Every name against an example of the context, in which no list is empty.
  Result<void> check(const Json& example) const;
  Result<void> check(std::span<const Json* const> examples) const;
  Result<std::string> render(const Json& context, const Quote& quote) const;
  // The same over several contexts: a name is looked for in the last one first.
  Result<std::string> render(std::span<const Json* const> contexts, const Quote& quote) const;

 private:
  enum class Kind { text, quoted, raw, section, inverted };
  struct Node {
    Kind kind = Kind::text;
    std::string text;               // or the name
    std::vector<std::string> path;  // the name's parts
    int line = 0, column = 0;
    std::vector<Node> children;
  };
  struct Parser;
  struct Walk;
  std::string file_;
  std::vector<Node> nodes_;
};

}  // namespace dlrun::render
