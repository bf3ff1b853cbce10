// The flags that every command takes: colours, how much is said, JSON.
#pragma once

#include <span>

#include "src/cli/console.hpp"
#include "src/cli/flag.hpp"

namespace dlrun::cli {

struct CommonOptions {
  std::string color;  // empty: auto
  bool quiet = false, verbose = false, json = false;

  ColorChoice color_choice() const;
  Verbosity verbosity() const;
};

std::span<const FlagRow<CommonOptions>> common_flags();

}  // namespace dlrun::cli
