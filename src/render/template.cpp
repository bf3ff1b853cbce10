#include "src/render/template.hpp"

#include <algorithm>
#include <optional>

#include "src/base/json.hpp"
#include "src/base/strings.hpp"

namespace dlrun::render {
namespace {

constexpr std::size_t kDeepest = 32;  // sections within sections; parsing, walking and freeing recurse

Error error_at(const std::string& file, int line, int column, std::string what, std::string hint = {}) {
  return Error{.kind = ErrorKind::input,
               .what = std::move(what),
               .where = fmt::format("{}:{}:{}", file, line, column),
               .hint = std::move(hint)};
}

// What counts as a branch that is taken.
bool is_there(const Json& value) {
  if (value.is_null()) return false;
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return !value.get_ref<const std::string&>().empty();
  return value.is_number() || !value.empty();
}

const Json* member(const Json& map, const std::string& key) {
  if (!map.is_object()) return nullptr;
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &*found;
}

bool is_name(std::string_view text) {
  if (text == ".") return true;
  const auto ok = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), ok) && text.front() != '.' &&
         text.back() != '.' && text.find("..") == std::string_view::npos;
}

}  // namespace

// One pass over the text with a stack of open sections.
struct Template::Parser {
  std::string_view text;
  std::string file;
  std::size_t at = 0;
  int line = 1, column = 1;
  std::vector<std::vector<Node>> levels;
  std::vector<Node> open{};

  tl::unexpected<Error> error(const Node& place, std::string what, std::string hint = {}) const {
    return fail(error_at(file, place.line, place.column, std::move(what), std::move(hint)));
  }

  void advance(std::size_t end) {
    for (; at < end; ++at) {
      if (text[at] == '\n')
        ++line, column = 1;
      else
        ++column;
    }
  }

  void add_text(std::size_t end) {
    if (end > at)
      levels.back().push_back({.kind = Kind::text,
                               .text = std::string(text.substr(at, end - at)),
                               .path = {},
                               .line = line,
                               .column = column,
                               .children = {}});
    advance(end);
  }

  // True where nothing but blanks stands between `position` and the line's start (or, `forward`, its end).
  bool blank_before(std::size_t position) const {
    while (position > 0 && (text[position - 1] == ' ' || text[position - 1] == '\t')) --position;
    return position == 0 || text[position - 1] == '\n';
  }
  std::optional<std::size_t> line_end_after(std::size_t position) const {
    while (position < text.size() && (text[position] == ' ' || text[position] == '\t')) ++position;
    if (position == text.size()) return position;
    return text[position] == '\n' ? std::optional(position + 1) : std::nullopt;
  }

  // A section tag or comment alone on its line takes the whole line with it.
  std::size_t end_of_tag(std::size_t tag_start, std::size_t tag_end) {
    const auto next = line_end_after(tag_end);
    if (!next || !blank_before(tag_start)) return tag_end;
    if (!levels.back().empty() && levels.back().back().kind == Kind::text) {
      std::string& before = levels.back().back().text;
      before.erase(before.find_last_not_of(" \t") + 1);
    }
    return *next;
  }

  Result<void> open_section(Node node, std::size_t tag_start, std::size_t tag_end) {
    if (open.size() >= kDeepest) return error(node, fmt::format("sections deeper than {}", kDeepest));
    const std::size_t end = end_of_tag(tag_start, tag_end);
    open.push_back(std::move(node));
    levels.emplace_back();
    advance(end);
    return {};
  }

  Result<void> close_section(const Node& tag, std::size_t tag_start, std::size_t tag_end) {
    if (open.empty()) return error(tag, fmt::format("'{}' is closed and was not opened", tag.text));
    if (open.back().text != tag.text)
      return error(tag, fmt::format("'{}' is closed where '{}' of line {} is open", tag.text,
                                    open.back().text, open.back().line));
    const std::size_t end = end_of_tag(tag_start, tag_end);
    Node section = std::move(open.back());
    open.pop_back();
    section.children = std::move(levels.back());
    levels.pop_back();
    levels.back().push_back(std::move(section));
    advance(end);
    return {};
  }

  Result<void> tag() {
    const std::size_t start = at;
    const bool raw = text.substr(at).starts_with("{{{");
    const std::string_view closing = raw ? "}}}" : "}}";
    const std::size_t inner = start + closing.size();
    const std::size_t close = text.find(closing, inner);
    Node node{.kind = Kind::quoted, .text = {}, .path = {}, .line = line, .column = column, .children = {}};
    if (close == std::string_view::npos)
      return error(node, fmt::format("'{{{{' is not closed with '{}'", closing));
    std::string_view body = trim(text.substr(inner, close - inner));
    const std::size_t end = close + closing.size();
    const char sign = !raw && !body.empty() ? body.front() : '\0';
    if (sign == '!') {
      advance(end_of_tag(start, end));
      return {};
    }
    if (sign == '#' || sign == '^' || sign == '/') body = trim(body.substr(1));
    if (!is_name(body))
      return error(node, fmt::format("'{}' is not a name", body.substr(0, 40)),
                   "write {{name}}, {{{name}}}, {{#name}}, {{^name}}, {{/name}} or {{! a comment}}");
    node.text = std::string(body);
    node.path = split(node.text, '.');
    if (sign == '/') return close_section(node, start, end);
    if (sign == '#' || sign == '^') {
      node.kind = sign == '#' ? Kind::section : Kind::inverted;
      return open_section(std::move(node), start, end);
    }
    if (raw) node.kind = Kind::raw;
    levels.back().push_back(std::move(node));
    advance(end);
    return {};
  }

  Result<std::vector<Node>> run() {
    while (at < text.size()) {
      const std::size_t next = text.find("{{", at);
      if (next == std::string_view::npos) {
        add_text(text.size());
        break;
      }
      add_text(next);
      TRY(tag());
    }
    if (!open.empty()) return error(open.back(), fmt::format("'{}' is not closed", open.back().text));
    return std::move(levels.front());
  }
};

// Walks the tree with a stack of contexts, innermost last; renders, or only looks every name up.
struct Template::Walk {
  const std::string& file;
  const Quote* quote;  // nullptr: only check
  std::vector<const Json*> scopes;
  std::string out;

  tl::unexpected<Error> error(const Node& node, std::string what, std::string hint = {}) const {
    return fail(error_at(file, node.line, node.column, std::move(what), std::move(hint)));
  }

  std::vector<std::string> names_in_scope() const {
    std::vector<std::string> names;
    for (const Json* scope : scopes)
      if (scope->is_object())
        for (const auto& item : scope->items()) names.push_back(item.key());
    return names;
  }

  Result<const Json*> lookup(const Node& node) const {
    if (node.text == ".") return scopes.back();
    const Json* found = nullptr;
    for (auto scope = scopes.rbegin(); scope != scopes.rend() && found == nullptr; ++scope)
      found = member(**scope, node.path[0]);
    for (std::size_t i = 1; i < node.path.size() && found != nullptr; ++i)
      found = member(*found, node.path[i]);
    if (found == nullptr)
      return error(node, fmt::format("name '{}' is not known", node.text),
                   did_you_mean(node.text, names_in_scope()));
    return found;
  }

  Result<void> value(const Node& node) {
    const Json& found = *TRY(lookup(node));
    if (found.is_structured() || found.is_null())
      return quote == nullptr && found.is_null() ? Result<void>()
                                                 : error(node, fmt::format("'{}' is {}, not text", node.text,
                                                                           found.is_null()    ? "nothing"
                                                                           : found.is_array() ? "a list"
                                                                                              : "a map"));
    if (quote == nullptr) return {};
    const std::string text = found.is_string() ? found.get<std::string>() : to_text(found);
    if (node.kind == Kind::raw && text.find('\n') != std::string::npos)
      return error(node,
                   fmt::format("'{}' has more than one line, which {{{{{{ }}}}}} does not allow", node.text));
    out += node.kind == Kind::raw ? text : (*quote)(text);
    return {};
  }

  Result<void> inside(const Node& node, const Json* scope) {
    if (scope != nullptr) scopes.push_back(scope);
    auto done = all(node.children);
    if (scope != nullptr) scopes.pop_back();
    return done;
  }

  Result<void> section(const Node& node) {
    const Json& found = *TRY(lookup(node));
    const bool checking = quote == nullptr;
    if (node.kind == Kind::inverted)
      return checking || !is_there(found) ? inside(node, nullptr) : Result<void>();
    if (found.is_array()) {
      if (checking && found.empty())
        return error(node, fmt::format("the example of '{}' is empty", node.text));
      for (const Json& item : found) TRY(inside(node, &item));
      return {};
    }
    if (!checking && !is_there(found)) return {};
    return inside(node, found.is_object() ? &found : nullptr);
  }

  Result<void> all(const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      switch (node.kind) {
        case Kind::text:
          out += node.text;
          break;
        case Kind::quoted:
        case Kind::raw:
          TRY(value(node));
          break;
        case Kind::section:
        case Kind::inverted:
          TRY(section(node));
          break;
      }
    }
    return {};
  }
};

Result<Template> Template::parse(std::string_view text, const std::string& file) {
  Parser parser{.text = text, .file = file, .at = 0, .line = 1, .column = 1, .levels = {{}}, .open = {}};
  Template out;
  out.nodes_ = TRY(parser.run());
  out.file_ = file;
  return out;
}

Result<void> Template::check(const Json& example) const {
  const Json* const only = &example;
  return check(std::span(&only, 1));
}

Result<void> Template::check(std::span<const Json* const> examples) const {
  Walk walk{.file = file_, .quote = nullptr, .scopes = {examples.begin(), examples.end()}, .out = {}};
  return walk.all(nodes_);
}

Result<std::string> Template::render(const Json& context, const Quote& quote) const {
  const Json* const only = &context;
  return render(std::span(&only, 1), quote);
}

Result<std::string> Template::render(std::span<const Json* const> contexts, const Quote& quote) const {
  Walk walk{.file = file_, .quote = &quote, .scopes = {contexts.begin(), contexts.end()}, .out = {}};
  TRY(walk.all(nodes_));
  return std::move(walk.out);
}

}  // namespace dlrun::render
