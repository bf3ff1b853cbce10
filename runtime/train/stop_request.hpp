// StopRequest: the requests that reach a rank other than over the control channel: a signal, or the file that
// DLRUN_CHECKPOINT_REQUEST names. An empty file asks to save and stop; one with a JSON line says itself
// which.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "runtime/train/control.hpp"

namespace dlrun::runtime {

class StopRequest {
 public:
  explicit StopRequest(std::string file) : file_(std::move(file)) {}
  /// What is asked for now; a request to save that is answered once is not repeated.
  Requests look();

 private:
  Requests look_at_file();
  std::string file_;
  std::optional<std::filesystem::file_time_type> answered_;
};

/// What the content of such a file asks for.
Requests read_request_file(std::string_view content);

}  // namespace dlrun::runtime
