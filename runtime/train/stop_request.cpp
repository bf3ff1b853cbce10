// See stop_request.hpp.
#include "runtime/train/stop_request.hpp"

#include "runtime/train/stop_signal.hpp"
#include "src/base/file.hpp"
#include "src/base/strings.hpp"

namespace dlrun::runtime {

Requests read_request_file(std::string_view content) {
  if (trim(content) == "go on") return {.save = true, .stop = false};
  const Requests asked = read_requests(content);
  return asked.save || asked.stop ? asked : Requests{.save = false, .stop = true};
}

Requests StopRequest::probe() {
  Requests out = probe_file();
  if (stop_signal() != 0) out.stop = true;
  return out;
}

Requests StopRequest::probe_file() {
  if (file_.empty()) return {};
  std::error_code problem;
  const auto changed = std::filesystem::last_write_time(file_, problem);
  if (problem || answered_ == changed) return {};  // usually it does not exist
  answered_ = changed;
  const auto content = read_file(file_);
  return content ? read_request_file(*content) : Requests{.save = false, .stop = true};
}

}  // namespace dlrun::runtime
