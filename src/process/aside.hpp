// Aside: one question that may be answered late (by a GPU's driver, by a file server), asked on a thread of
// its own, so that the loop goes on. The answer comes as a call from the loop; none comes once the Aside is
// gone. The thread is not waited for: what hangs in the kernel would hold up the end. So the work owns what
// it needs.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <thread>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "src/process/event_loop.hpp"

namespace dlrun {

template <class T>
class Aside {
 public:
  Aside(EventLoop& loop, std::function<T()> work, std::function<void(T)> done)
      : loop_(loop), ready_(std::make_shared<UniqueFd>(::eventfd(0, EFD_CLOEXEC))) {
    auto promise = std::make_shared<std::promise<T>>();
    loop_.watch(ready_->get(), POLLIN,
                [this, answer = std::make_shared<std::future<T>>(promise->get_future()),
                 done = std::move(done)](short) {
                  loop_.unwatch(ready_->get());
                  answered_ = true;
                  done(answer->get());
                });
    std::thread([work = std::move(work), promise, ready = ready_] {
      promise->set_value(work());
      constexpr std::uint64_t one = 1;
      (void)!::write(ready->get(), &one, sizeof one);
    }).detach();
  }
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;
  ~Aside() {
    if (!answered_) loop_.unwatch(ready_->get());
  }
  bool answered() const { return answered_; }

 private:
  EventLoop& loop_;
  std::shared_ptr<UniqueFd> ready_;
  bool answered_ = false;
};

}  // namespace dlrun
