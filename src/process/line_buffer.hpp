// LineBuffer: bytes in, whole lines out. A line longer than the limit comes in pieces, so memory stays
// bounded whatever a program prints; the last line may lack its newline.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace dlrun {

class LineBuffer {
 public:
  static constexpr std::size_t kMaxLine = 64 * 1024;

  // The lines that `bytes` completes, without their newlines.
  std::vector<std::string> add(std::string_view bytes);
  // What is left when the stream ends: nothing or one line.
  std::vector<std::string> finish();

 private:
  std::string partial_;
};

}  // namespace dlrun
