// OutputLines: the bytes that a program prints, as the lines that a terminal would show. A carriage return
// begins the line anew, as progress bars do, so only what came behind the last one is kept. A line longer
// than the limit comes in pieces: memory stays bounded whatever is printed.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dlrun {

class OutputLines {
 public:
  static constexpr std::size_t kMaxLine = 64 * 1024;

  // The lines that `bytes` complete, without their newlines.
  std::vector<std::string> add(std::string_view bytes);
  // What is left when the stream ends: no line or one.
  std::vector<std::string> finish();
  // The line that has no end yet: a prompt, or a progress bar as it stands.
  const std::string& unfinished() const { return line_; }

 private:
  void add_text(std::string_view text, std::vector<std::string>& lines);
  std::string line_;
  bool returned_ = false;  // a carriage return; the next byte says what it means
};

}  // namespace dlrun
