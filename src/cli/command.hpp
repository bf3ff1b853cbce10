// A command of dlrun: what it takes on the command line, and what it does. Each is a struct of its options in
// a file of its own; src/cli/commands.cpp has a row for each.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/base/environment.hpp"
#include "src/base/result.hpp"
#include "src/cli/arguments.hpp"
#include "src/cli/common_options.hpp"
#include "src/cli/console.hpp"

namespace dlrun::cli {

/// What a command runs with.
struct Context {
  Console& console;
  const CommonOptions& common;
  const Environment& environment;
};

/// What stands on the command line beside flags and named arguments.
struct ExtraArguments {
  std::vector<std::string> of_command;  // as they stand, of a command that takes them
  std::vector<std::string> of_program;  // after "--"
};

class Command {
 public:
  virtual ~Command() = default;
  /// Says what the command takes; the values are then in its fields.
  virtual void add(Arguments& arguments) = 0;
  /// Called once all values are there. An Error (usage) where they do not fit together.
  virtual Result<void> finish(const ExtraArguments& /*extra*/) { return {}; }
  /// The command line was meant for another command: what was probably meant.
  virtual std::optional<Error> mistyped() const { return std::nullopt; }
  /// Does it; the exit code.
  virtual Result<int> run(const Context& context) = 0;
};

enum class Audience { people, dlrun_itself };

struct CommandRow {
  std::string_view name;
  std::string_view arguments;  // of its usage line: "[RUN]"
  std::string_view summary, examples;
  std::unique_ptr<Command> (*make)();
  Audience audience = Audience::people;
};

}  // namespace dlrun::cli
