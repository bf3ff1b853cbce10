// A DevicePipeline whose stages are threads of one process with one GPU: a message is a copy on the device,
// which the other side takes once it is there. As with NCCL a stage waits for it; unlike there it sends at
// once.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>

#include "runtime/engine/device_calls.hpp"
#include "runtime/engine/device_pipeline.hpp"

namespace dlrun::runtime::gpu {

class LocalMail {
 public:
  explicit LocalMail(std::shared_ptr<DeviceCalls> calls) : calls_(std::move(calls)) {}
  LocalMail(const LocalMail&) = delete;
  LocalMail& operator=(const LocalMail&) = delete;
  ~LocalMail() {
    for (void* const block : blocks_) calls_->release(DeviceCalls::Place::device, block);
  }

  Result<void> send(const void* data, std::size_t bytes, int from, int to, void* stream) {
    Message* const message = TRY(put(bytes, from, to));
    TRY(calls_->copy(message->data, data, bytes, stream));
    return calls_->call_host(has_come, message, stream);
  }

  // An Error where the other side has failed, and so never sends.
  Result<void> receive(void* data, std::size_t bytes, int from, int to, void* stream) {
    Message* message = nullptr;
    {
      std::unique_lock lock(mutex_);
      std::deque<Message>& queue = mail_[{from, to}];
      std::size_t& taken = taken_[{from, to}];
      moved_.wait(lock, [&] { return ended_ || (queue.size() > taken && queue[taken].is_there); });
      if (queue.size() <= taken || !queue[taken].is_there)
        return fail(ErrorKind::internal, "stage {} has failed", from);
      message = &queue[taken++];
    }
    if (message->bytes != bytes)
      return fail(ErrorKind::internal, "stage {} sends {} bytes and stage {} takes {}", from, message->bytes,
                  to, bytes);
    return calls_->copy(data, message->data, bytes, stream);
  }

  void end() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    moved_.notify_all();
  }

 private:
  struct Message {
    LocalMail* mail;
    void* data;
    std::size_t bytes;
    bool is_there = false;
  };

  Result<Message*> put(std::size_t bytes, int from, int to) {
    void* const data = TRY(calls_->take(DeviceCalls::Place::device, bytes));
    const std::lock_guard lock(mutex_);
    blocks_.push_back(data);
    return &mail_[{from, to}].emplace_back(Message{this, data, bytes});
  }
  static void has_come(void* context) {
    auto* const message = static_cast<Message*>(context);
    const std::lock_guard lock(message->mail->mutex_);
    message->is_there = true;
    message->mail->moved_.notify_all();
  }

  std::shared_ptr<DeviceCalls> calls_;
  std::mutex mutex_;
  std::condition_variable moved_;
  std::map<std::pair<int, int>, std::deque<Message>> mail_;
  std::map<std::pair<int, int>, std::size_t> taken_;
  std::vector<void*> blocks_;
  bool ended_ = false;
};

class LocalPipeline final : public DevicePipeline {
 public:
  LocalPipeline(LocalMail& mail, int stage, int stages) : mail_(mail), stage_(stage), stages_(stages) {}
  int stage() const override { return stage_; }
  int stages() const override { return stages_; }
  Result<void> send(const void* data, std::size_t bytes, int to, void* stream) override {
    return mail_.send(data, bytes, stage_, to, stream);
  }
  // Within a group what is received comes once all is sent.
  Result<void> receive(void* data, std::size_t bytes, int from, void* stream) override {
    if (!grouped_) return mail_.receive(data, bytes, from, stage_, stream);
    asked_.push_back(
        [this, data, bytes, from, stream] { return mail_.receive(data, bytes, from, stage_, stream); });
    return {};
  }
  Result<void> exchange(const void* mine, void* all, std::size_t bytes, void* stream) override {
    return together([&]() -> Result<void> {
      for (int other = 0; other < stages_; ++other) {
        TRY(send(mine, bytes, other, stream));
        TRY(receive(static_cast<std::byte*>(all) + static_cast<std::size_t>(other) * bytes, bytes, other,
                    stream));
      }
      return {};
    });
  }
  Result<void> together(const std::function<Result<void>()>& calls) override {
    grouped_ = true;
    const Result<void> sent = calls();
    grouped_ = false;
    TRY(sent);
    for (const auto& receive : std::exchange(asked_, {})) TRY(receive());
    return {};
  }
  Result<void> check() override { return {}; }

 private:
  LocalMail& mail_;
  int stage_, stages_;
  bool grouped_ = false;
  std::vector<std::function<Result<void>()>> asked_;
};

}  // namespace dlrun::runtime::gpu
