// StopWatcher: beside a link's run, looks for the request to stop in the chain's folder and then asks this
// very process to stop, as the first SIGTERM does. So `dlrun chain stop` needs no scheduler that can signal a
// job without killing what is around it: PBS's login shell dies of the signal, and the job with it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "src/base/clock.hpp"
#include "src/chain/folder.hpp"

namespace dlrun::job {

class StopWatcher {
 public:
  explicit StopWatcher(ChainFolder folder, Seconds interval = Seconds(1));
  ~StopWatcher();
  StopWatcher(const StopWatcher&) = delete;
  StopWatcher& operator=(const StopWatcher&) = delete;

 private:
  void watch();
  ChainFolder folder_;
  Seconds interval_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool end_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace dlrun::job
