// dlrun complete [COMMAND]: internal, for the shells' completions. Prints the commands, or the flags of one:
// one row per line, its fields separated by tabs, '-' for a field that is empty.
#pragma once

#include "src/cli/command.hpp"

namespace dlrun::cli {

struct CompleteCommand final : Command {
  void add(Arguments& arguments) override { arguments.argument("COMMAND", name, "whose flags"); }
  Result<int> run(const Context& context) override;

  std::string name;
};

}  // namespace dlrun::cli
