#include "src/agent/checkpoint_request.hpp"

#include "src/base/json.hpp"

namespace dlrun::agent {

Json control_line(const protocol::to_agent::RequestCheckpoint& request) {
  Json out{{"checkpoint", "now"}};
  if (request.stop) out["stop"] = true;
  return out;
}

std::string_view file_content(const protocol::to_agent::RequestCheckpoint& request) {
  return request.stop ? "stop\n" : "go on\n";
}

bool died_of_request(const ExitStatus& status, int signal) {
  return signal != 0 && (status.signal == signal || status.code() == 128 + signal);
}

}  // namespace dlrun::agent
