// Files of lines that somebody may be writing, or was writing when it died: events.jsonl and metrics.jsonl.
// The last line counts only once it has its end; a line that is no JSON is counted and left out. A file that
// is not there has no lines.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/json.hpp"

namespace dlrun::report {

enum class LastLine { whole, torn };

/// Appends `piece` to `begun`, calls `take` with each line that now has its end, and keeps the rest in
/// `begun`. What was there before is not searched again, or a long line would take quadratic time.
void take_lines(std::string& begun, std::string_view piece,
                const std::function<void(std::string_view)>& take);

/// Calls `take` with each whole line, without its newline, in order. The file is read in pieces.
Result<LastLine> for_each_line(const std::filesystem::path& file,
                               const std::function<void(std::string_view)>& take);

struct JsonLines {
  std::vector<Json> values;
  std::size_t unreadable = 0;  // whole lines that are no JSON object
  LastLine last = LastLine::whole;
};
Result<JsonLines> read_json_lines(const std::filesystem::path& file);

}  // namespace dlrun::report
