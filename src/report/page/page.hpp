// The page of a report: one HTML file that needs no network. The shell, the styles, uPlot and our scripts are
// files in share/dlrun/report; the data goes between them as JSON that no text in it can end. What `dlrun
// bench` plots takes the same parts with a script of its own.
#pragma once

#include <filesystem>
#include <string>

#include "src/base/json_fwd.hpp"
#include "src/base/result.hpp"

namespace dlrun::report {

struct PageRequest {
  std::filesystem::path parts;  // the folder with page.html and what it needs
  std::string script;           // "report.js": what it shows
  std::string title;
};
Result<std::string> make_page(const PageRequest& request, const Json& data);

/// Text as HTML shows it.
std::string escape_html(std::string_view text);
/// JSON as it may be inside of <script>: with neither "<" nor ">" nor "&".
std::string script_json(const Json& data);

}  // namespace dlrun::report
