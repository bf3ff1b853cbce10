// A text that answers the command line itself: --help, --version.
#pragma once

#include <string>

#include "src/cli/command.hpp"

namespace dlrun::cli {

struct Answer final : Command {
  explicit Answer(std::string answer) : text(std::move(answer)) {}
  void add(Arguments&) override {}
  Result<int> run(const Context& context) override {
    context.console.out(text);
    return 0;
  }
  std::string text;
};

/// What this build is, and which of its optional parts are in.
std::string version_text();

}  // namespace dlrun::cli
