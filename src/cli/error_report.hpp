// The report of the error that ends a command: its exit code, and the JSON object that programs read under
// --json. main.cpp prints both forms; nothing else in dlrun prints the error of a command.
#pragma once

#include <string>
#include <vector>

#include "src/base/exit_code.hpp"
#include "src/base/json_fwd.hpp"

namespace dlrun::cli {

/// The exit code of dlrun for this error. A wrong value of a flag is bad usage, since the user corrects it on
/// the command line and not in a file.
ExitCode exit_code_of(const Error& error);

/// {"schema": "dlrun.error/1", "error": {"kind", "message", "where", "hint", "also", "exit_code"}}; `where`
/// and `hint` are null if the error has none, and `also` lists further lines, such as other wrong keys.
Json error_json(const Error& error);

/// Whether a command line that could not be read has --json among the flags of dlrun.
bool asks_for_json(const std::vector<std::string>& arguments);

}  // namespace dlrun::cli
