// ControlServer: the Unix socket by which a rank of any framework tells its agent where it stands and hears
// requests (JSON lines; DLRUN_CONTROL names the socket). Lines from outside: what is no JSON object, or too
// long, ends that connection with a log line and nothing else. Without a descriptor to spare the connection
// that is missed least makes room. It keeps no state of the job.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "src/base/json_fwd.hpp"
#include "src/base/types.hpp"
#include "src/process/event_loop.hpp"
#include "src/process/line_buffer.hpp"
#include "src/process/listener.hpp"

namespace dlrun::agent {

class ControlServer {
 public:
  struct Callbacks {
    std::function<void(Rank, const Json& report)> report;  // {"step": .., "epoch": .., "saved": ..}
    std::function<void(const std::string& text)> log;
  };
  static Result<std::unique_ptr<ControlServer>> start(const std::string& path, EventLoop& loop,
                                                      Callbacks callbacks);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // One line to every connected rank, such as {"checkpoint": "now"}. One that asks to stop is told to those
  // that connect later, too.
  void tell_all(const Json& request);
  /// Reports what a rank that has ended had sent before.
  void ended(Rank rank);
  std::size_t listeners() const { return connections_.size(); }

 private:
  struct Connection {
    UniqueFd fd;
    LineBuffer lines;
    std::optional<Rank> rank;
    std::uint64_t heard = 0;  // the later, the greater
  };
  ControlServer(UniqueFd listener, EventLoop& loop, Callbacks callbacks);
  void add(UniqueFd fd);
  bool drop_oldest();
  enum class Got { some, nothing };
  Got read_from(int fd);
  bool take_line(Connection& connection, const std::string& line);
  void drop(int fd);

  EventLoop& loop_;
  Callbacks callbacks_;
  std::map<int, Connection> connections_;
  std::uint64_t clock_ = 0;
  std::string standing_;  // the request to stop
  Listener listener_;
};

}  // namespace dlrun::agent
