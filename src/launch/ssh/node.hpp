// One node's ssh connection, as the work of one thread from the first try to the end of its agent's stream.
// It tells the launcher by an Inbox, which the launcher's loop empties: nothing of the launcher is touched
// here.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "src/base/result.hpp"
#include "src/base/types.hpp"
#include "src/base/unique_fd.hpp"
#include "src/launch/ssh/server_connect.hpp"
#include "src/launch/ssh/table.h"
#include "src/plan/ssh_spec.hpp"

namespace dlrun::launch {

struct SshEvent {
  struct Connected {
    UniqueFd stream;
  };
  struct Failed {
    Error why;
  };
  struct Note {
    std::string text;
  };
  NodeIndex node;
  std::variant<Connected, Failed, Note> what;
};

// The state that the threads and the launcher share. The last of them destroys it.
class SshShared {
 public:
  SshShared() = default;
  Alarm alarm;  // everything ends

  void tell(SshEvent news);
  std::vector<SshEvent> take();
  const Alarm& bell() const { return bell_; }  // readable where there is news

  void keep_last_words(NodeIndex node, std::string text);
  std::string last_words(NodeIndex node) const;

  void thread_began();
  void thread_ended();
  void await_threads(Seconds limit);

 private:
  mutable std::mutex lock_;
  std::condition_variable ended_;
  Alarm bell_;
  std::vector<SshEvent> news_;
  std::map<int, std::string> last_words_;
  int threads_ = 0;
};

struct SshRequest {
  NodeIndex node;
  std::string host;
  std::string program;                      // dlrun, there
  std::shared_ptr<const std::string> copy;  // its archive, for a host that does not have it; or none
  plan::SshSpec settings;
  Ticks deadline;
  Seconds lost_after;  // launch.lost-after
};

// Runs the request by the plug-in, in a thread of its own. The plug-in stays loaded.
void start_ssh_request(SshRequest request, const DlrunSshTable& table, std::shared_ptr<SshShared> shared);

}  // namespace dlrun::launch
