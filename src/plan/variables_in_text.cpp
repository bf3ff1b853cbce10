#include "src/plan/variables_in_text.hpp"

#include <algorithm>

namespace dlrun::plan {
namespace {

bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::string_view name_at(std::string_view text) {
  if (text.empty() || !starts_name(text.front())) return {};
  const auto end = std::find_if_not(text.begin(), text.end(),
                                    [](char c) { return starts_name(c) || (c >= '0' && c <= '9'); });
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

// The part of `rest` behind a dollar sign that stands for something, and what for.
struct Reference {
  std::size_t length = 0;  // 0: the dollar sign is one
  std::string name;        // empty: for a dollar sign
};

Result<Reference> reference_at(std::string_view rest) {
  if (rest.starts_with('$')) return Reference{1, {}};
  if (!rest.starts_with('{')) return Reference{name_at(rest).size(), std::string(name_at(rest))};
  const std::string_view name = name_at(rest.substr(1));
  if (!name.empty() && rest.substr(1 + name.size()).starts_with('}'))
    return Reference{name.size() + 2, std::string(name)};
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("'${}' is not a variable", rest),
                    .where = {},
                    .hint = "write $NAME or ${NAME}; $$ is a dollar sign",
                    .also = {}});
}

}  // namespace

Result<std::string> expand_text(std::string_view text, const VariableLookup& value_of) {
  std::string out;
  if (text == "~" || text.starts_with("~/")) {
    out = TRY(value_of("HOME"));
    text.remove_prefix(1);
  }
  while (!text.empty()) {
    const std::size_t dollar = text.find('$');
    out += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    const Reference found = TRY(reference_at(text));
    out += found.name.empty() ? std::string("$") : TRY(value_of(found.name));
    text.remove_prefix(found.length);
  }
  return out;
}

}  // namespace dlrun::plan
