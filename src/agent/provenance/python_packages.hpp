// The packages of a Python program and their versions, asked of the Python that runs it: its own search path
// counts, and nothing is imported but the standard library. The question is a short process beside the ranks,
// which ends with them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "src/agent/provenance/facts.hpp"
#include "src/base/unique_fd.hpp"
#include "src/process/event_loop.hpp"

namespace dlrun::agent {

/// Whether the program is a Python that we can start as well: one in a container is not.
bool is_python(const ProgramSeen& program);

class PythonPackages {
 public:
  /// `found` gets {"version": "3.11.2", "packages": {"torch": "2.1.0"}}, or null where no answer came in
  /// time.
  static std::unique_ptr<PythonPackages> ask(const ProgramSeen& program, EventLoop& loop,
                                             std::function<void(Json)> found);
  ~PythonPackages();
  PythonPackages(const PythonPackages&) = delete;
  PythonPackages& operator=(const PythonPackages&) = delete;

  pid_t pid() const { return pid_; }

 private:
  PythonPackages(EventLoop& loop, std::function<void(Json)> found) : loop_(loop), found_(std::move(found)) {}
  void read();
  void end();

  EventLoop& loop_;
  std::function<void(Json)> found_;
  pid_t pid_ = 0;  // 0: it has ended
  UniqueFd out_;
  std::string text_;
  std::optional<EventLoop::TimerId> limit_;
};

}  // namespace dlrun::agent
