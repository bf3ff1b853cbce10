#include "src/process/line_buffer.hpp"

#include <algorithm>

namespace dlrun {

std::vector<std::string> LineBuffer::add(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const std::size_t newline = bytes.find('\n');
    const std::size_t room = kMaxLine - partial_.size();
    const std::size_t take = std::min(newline == std::string_view::npos ? bytes.size() : newline, room);
    partial_.append(bytes.substr(0, take));
    bytes.remove_prefix(take);
    const bool ended = !bytes.empty() && bytes.front() == '\n';
    if (ended) bytes.remove_prefix(1);
    if (ended || partial_.size() == kMaxLine) {
      lines.push_back(std::move(partial_));
      partial_.clear();
    }
  }
  return lines;
}

std::vector<std::string> LineBuffer::finish() {
  std::vector<std::string> lines;
  if (!partial_.empty()) lines.push_back(std::move(partial_));
  partial_.clear();
  return lines;
}

}  // namespace dlrun
