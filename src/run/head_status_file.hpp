// HeadStatusFile: beside a run, writes status.json into its directory every two seconds, and looks there for
// requests: to stop (stop_request.hpp), which it passes on to this very process as SIGTERM, for the stacks of
// the ranks (stacks_request.hpp) and for other nodes (hosts_request.hpp), which the driver asks for. It has a
// thread of its own, so that a file system that stalls holds up neither the run nor its heartbeats. A status
// that cannot be written ends no run: the first reason is kept for a note.
#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "src/record/hosts_request.hpp"
#include "src/record/stop_request.hpp"
#include "src/run/live_status.hpp"

namespace dlrun::job {

class HeadStatusFile {
 public:
  /// `on_stop` is called from the thread, again and again while the request is to stop at once.
  using OnStop = std::function<void(RunStop)>;
  /// `metrics_file` is written beside status.json (openmetrics.hpp); empty: none; relative: to the directory.
  HeadStatusFile(std::filesystem::path run_directory, const std::filesystem::path& metrics_file,
                 HeadStatus known, OnStop on_stop);
  /// Writes it for the last time.
  ~HeadStatusFile();
  HeadStatusFile(const HeadStatusFile&) = delete;
  HeadStatusFile& operator=(const HeadStatusFile&) = delete;

  /// Changes what is known. From any thread.
  void change(const std::function<void(LiveStatus&)>& how);
  /// A request for stacks that was not taken yet.
  std::optional<std::string> take_stacks_request();
  /// A request for other nodes that was not taken yet.
  std::optional<HostsRequest> take_hosts_request();
  /// Why the file could not be written; empty: it was.
  std::string problem() const;

 private:
  void work();
  void write();
  void pass_stop_on();
  void find_stacks_request();
  void find_hosts_request();

  std::filesystem::path directory_, metrics_file_;
  OnStop on_stop_;
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  LiveStatus live_;
  std::string problem_;
  std::optional<std::string> stacks_asked_;
  std::optional<HostsRequest> hosts_asked_;
  std::string last_stacks_request_;    // of the thread alone
  std::string last_hosts_request_;     // of the thread alone: its id
  RunStop passed_on_ = RunStop::none;  // of the thread alone
  bool end_ = false;
  std::thread thread_;  // last: it uses the others
};

/// Asks this process to stop, as a person does with kill(1): once, or twice for `now`.
void stop_this_run(RunStop asked);

}  // namespace dlrun::job
