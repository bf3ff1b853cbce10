#include "src/cli/usage_error.hpp"

#include "src/base/strings.hpp"

namespace dlrun::cli {
namespace {

// "expand, compress or count"
std::string alternatives(std::span<const std::string> words) {
  return join(words.first(words.size() - 1), ", ") + " or " + words.back();
}

}  // namespace

Error usage_error(std::string_view command, std::string what, std::string hint) {
  if (hint.empty()) hint = fmt::format("dlrun {}{}--help", command, command.empty() ? "" : " ");
  return Error{.kind = ErrorKind::usage, .what = std::move(what), .where = {}, .hint = std::move(hint)};
}

Error unknown_action(std::string_view command, const std::string& action,
                     std::span<const std::string> actions) {
  const std::string near = nearest(action, actions);
  return usage_error(command, fmt::format("unknown action '{}'; expected {}", action, alternatives(actions)),
                     near.empty() ? "" : fmt::format("did you mean '{}'?", near));
}

}  // namespace dlrun::cli
