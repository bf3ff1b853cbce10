#include "src/cli/common_options.hpp"

#include <fmt/core.h>

namespace dlrun::cli {
namespace {

std::string check_color(const std::string& word) {
  if (word == "auto" || word == "always" || word == "never") return {};
  return fmt::format("unknown value '{}'; expected auto, always or never", word);
}

constexpr FlagRow<CommonOptions> kCommonFlags[] = {
    {{.name = "--color",
      .value = "WHEN",
      .help = "auto, always or never (NO_COLOR is respected)",
      .on_submit = OnSubmit::forwarded,
      .choices = "auto always never",
      .check = check_color},
     &CommonOptions::color},
    {{.name = "-q,--quiet",
      .help = "print only the ranks' output and errors",
      .on_submit = OnSubmit::forwarded},
     &CommonOptions::quiet},
    {{.name = "-v,--verbose", .help = "print more about what is done", .on_submit = OnSubmit::forwarded},
     &CommonOptions::verbose},
    {{.name = "--json", .help = "machine-readable output on stdout; text for people goes to stderr"},
     &CommonOptions::json},
};

}  // namespace

ColorChoice CommonOptions::color_choice() const {
  return color == "always"  ? ColorChoice::always
         : color == "never" ? ColorChoice::never
                            : ColorChoice::automatic;
}

Verbosity CommonOptions::verbosity() const {
  return verbose ? Verbosity::verbose : quiet ? Verbosity::quiet : Verbosity::normal;
}

std::span<const FlagRow<CommonOptions>> common_flags() {
  return kCommonFlags;
}

}  // namespace dlrun::cli
