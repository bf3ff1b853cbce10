// HostRequests: what came of each request to change the nodes of a run, host by host, as hosts.json has it.
// Pure bookkeeping: the head decides. A request is over once each of its hosts has left or joined, or cannot.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/json.hpp"
#include "src/base/result.hpp"

namespace dlrun::job {

class HostRequests {
 public:
  /// These hosts are waited for.
  void begin(const std::string& id, const std::vector<std::string>& hosts);
  /// Nothing is done of it.
  void refuse(const std::string& id, Error why);
  /// What became of a host, in all requests that wait for it.
  void done(const std::string& host, const std::string& text);
  void failed(const std::string& host, const Error& why);
  /// Nobody waits any more: for those that still do.
  void end(const Error& why);

  /// Somebody waits for a host.
  bool waits() const;
  bool empty() const { return requests_.empty(); }
  /// {"schema": "dlrun.host-answers/1", "answers": {ID: {"state", "hosts", "error"}}}
  Json document() const;

 private:
  struct Host {
    std::string name, state = "waiting", text = {};
  };
  struct Request {
    std::vector<Host> hosts;
    std::optional<Error> error = {};
  };
  static Json json_of(const Request& request);
  std::map<std::string, Request> requests_;
};

}  // namespace dlrun::job
