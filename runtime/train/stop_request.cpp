// See stop_request.hpp.
#include "runtime/train/stop_request.hpp"

#include "runtime/train/stop_signal.hpp"
#include "src/base/file.hpp"

namespace dlrun::runtime {

Requests StopRequest::look() {
  Requests out = look_at_file();
  if (stop_signal() != 0) out.stop = true;
  return out;
}

Requests StopRequest::look_at_file() {
  if (file_.empty()) return {};
  std::error_code problem;
  const auto changed = std::filesystem::last_write_time(file_, problem);
  if (problem || answered_ == changed) return {};  // mostly: it is not there
  answered_ = changed;
  const auto content = read_file(file_);
  const Requests asked = content ? read_requests(*content) : Requests{};
  return asked.save || asked.stop ? asked : Requests{.save = false, .stop = true};
}

}  // namespace dlrun::runtime
