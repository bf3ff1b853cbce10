#include "src/cli/error_report.hpp"

#include <algorithm>

#include "src/base/enum_names.hpp"
#include "src/base/json.hpp"

namespace dlrun::cli {
namespace {

constexpr auto kErrorKinds = enum_names<ErrorKind>({{ErrorKind::usage, "usage"},
                                                    {ErrorKind::input, "input"},
                                                    {ErrorKind::allocation, "allocation"},
                                                    {ErrorKind::unavailable, "unavailable"},
                                                    {ErrorKind::lost, "lost"},
                                                    {ErrorKind::io, "io"},
                                                    {ErrorKind::internal, "internal"}});

bool is_of_a_flag(const Error& error) {
  return error.kind == ErrorKind::input && error.where.starts_with("--");
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace

ExitCode exit_code_of(const Error& error) {
  return exit_code(is_of_a_flag(error) ? ErrorKind::usage : error.kind);
}

Json error_json(const Error& error) {
  return {{"schema", "dlrun.error/1"},
          {"error",
           {{"kind", std::string(kErrorKinds.name(is_of_a_flag(error) ? ErrorKind::usage : error.kind))},
            {"message", error.what},
            {"where", text_or_null(error.where)},
            {"hint", text_or_null(error.hint)},
            {"also", error.also},
            {"exit_code", to_int(exit_code_of(error))}}}};
}

bool asks_for_json(const std::vector<std::string>& arguments) {
  const auto end = std::find(arguments.begin(), arguments.end(), "--");
  return std::find(arguments.begin(), end, "--json") != end;
}

}  // namespace dlrun::cli
