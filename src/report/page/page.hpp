// The page of a report: one HTML file that needs no network. Its shell, a file in share/dlrun/report, names
// what is put into it: @title@, @data@ (JSON that no text in it can end), @file:NAME@, the styles and scripts
// beside it, and @shell:NAME@, a part that shells have in common and in which the same is named. What `dlrun
// bench` plots has a shell of its own.
#pragma once

#include <filesystem>
#include <string>

#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"

namespace dlrun::report {

struct PageRequest {
  std::filesystem::path parts;  // the folder of the shell and of the files that it names
  std::string shell;            // "report.html"
  std::string title;
};
Result<std::string> make_page(const PageRequest& request, const Json& data);

/// Text as HTML shows it.
std::string escape_html(std::string_view text);
/// JSON as it may be inside of <script>: with neither "<" nor ">" nor "&".
std::string script_json(const Json& data);

}  // namespace dlrun::report
