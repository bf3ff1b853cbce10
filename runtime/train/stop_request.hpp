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
  /// The requests of this moment; a request to save is returned once.
  Requests probe();

 private:
  Requests probe_file();
  std::string file_;
  std::optional<std::filesystem::file_time_type> answered_;
};

/// What the content of such a file asks for.
Requests read_request_file(std::string_view content);

}  // namespace dlrun::runtime
