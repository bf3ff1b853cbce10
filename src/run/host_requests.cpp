#include "src/run/host_requests.hpp"

#include <algorithm>
#include <utility>

#include "src/base/exit_code.hpp"

namespace dlrun::job {

void HostRequests::begin(const std::string& id, const std::vector<std::string>& hosts) {
  Request request;
  for (const std::string& host : hosts) request.hosts.push_back({.name = host});
  requests_.insert_or_assign(id, std::move(request));
}

void HostRequests::refuse(const std::string& id, Error why) {
  requests_.insert_or_assign(id, Request{.hosts = {}, .error = std::move(why)});
}

void HostRequests::done(const std::string& host, const std::string& text) {
  for (auto& [id, request] : requests_)
    for (Host& each : request.hosts)
      if (each.name == host && each.state == "waiting") each.state = "done", each.text = text;
}

void HostRequests::failed(const std::string& host, const Error& why) {
  for (auto& [id, request] : requests_)
    for (Host& each : request.hosts) {
      if (each.name != host || each.state != "waiting") continue;
      each.state = "failed";
      each.text = why.what;
      if (!request.error) request.error = why;
    }
}

void HostRequests::end(const Error& why) {
  for (auto& [id, request] : requests_)
    for (Host& each : request.hosts) {
      if (each.state != "waiting") continue;
      each.state = "failed";
      each.text = why.what;
      if (!request.error) request.error = why;
    }
}

bool HostRequests::waits() const {
  for (const auto& [id, request] : requests_)
    for (const Host& each : request.hosts)
      if (each.state == "waiting") return true;
  return false;
}

Json HostRequests::json_of(const Request& request) {
  Json hosts = Json::object();
  bool waits = false;
  for (const Host& host : request.hosts) {
    hosts[host.name] = {{"state", host.state}, {"text", host.text}};
    waits = waits || host.state == "waiting";
  }
  Json out{{"state", waits ? "waiting" : request.error ? "failed" : "done"}, {"hosts", std::move(hosts)}};
  if (const auto& error = request.error)
    out["error"] = {{"what", error->what},
                    {"where", error->where},
                    {"hint", error->hint},
                    {"exit_code", to_int(exit_code(error->kind))}};
  return out;
}

Json HostRequests::document() const {
  Json answers = Json::object();
  for (const auto& [id, request] : requests_) answers[id] = json_of(request);
  return {{"schema", "dlrun.host-answers/1"}, {"answers", std::move(answers)}};
}

}  // namespace dlrun::job
