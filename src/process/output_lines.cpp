#include "src/process/output_lines.hpp"

#include <algorithm>
#include <utility>

namespace dlrun {

std::vector<std::string> OutputLines::add(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const std::size_t text = std::min(bytes.find_first_of("\r\n"), bytes.size());
    add_text(bytes.substr(0, text), lines);
    bytes.remove_prefix(text);
    if (bytes.empty()) break;
    returned_ = bytes.front() == '\r';
    if (!returned_) lines.push_back(std::exchange(line_, {}));
    bytes.remove_prefix(1);
  }
  return lines;
}

void OutputLines::add_text(std::string_view text, std::vector<std::string>& lines) {
  if (text.empty()) return;
  if (std::exchange(returned_, false)) line_.clear();
  while (line_.size() + text.size() >= kMaxLine) {
    const std::size_t piece = kMaxLine - line_.size();
    lines.push_back(std::exchange(line_, {}).append(text.substr(0, piece)));
    text.remove_prefix(piece);
  }
  line_ += text;
}

std::vector<std::string> OutputLines::finish() {
  returned_ = false;
  if (line_.empty()) return {};
  return {std::exchange(line_, {})};
}

}  // namespace dlrun
