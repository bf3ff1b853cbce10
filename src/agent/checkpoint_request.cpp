#include "src/agent/checkpoint_request.hpp"

#include "src/base/json.hpp"

namespace dlrun::agent {

CheckpointRequest read_checkpoint_request(const Json& message) {
  const auto says = [&](std::string_view name) {
    return field<bool>(message, name, "checkpoint").value_or(false);
  };
  return {.then = says("stop") ? CheckpointRequest::Then::stop : CheckpointRequest::Then::go_on,
          .control = says("control"),
          .file = says("file"),
          .signal = field<int>(message, "signal", "checkpoint").value_or(0)};
}

Json control_line(const CheckpointRequest& request) {
  Json out{{"checkpoint", "now"}};
  if (request.then == CheckpointRequest::Then::stop) out["stop"] = true;
  return out;
}

std::string_view file_content(const CheckpointRequest& request) {
  return request.then == CheckpointRequest::Then::stop ? "stop\n" : "go on\n";
}

bool died_of_request(const ExitStatus& status, int signal) {
  return signal != 0 && (status.signal == signal || status.code() == 128 + signal);
}

}  // namespace dlrun::agent
