// Ranks that are threads of the test and exchange messages. A send is done at once, or only when its receiver
// asked for it: as an MPI does with small and with large messages. A message of another length than expected
// ends the test program.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/comm/transport/transport.hpp"

namespace dlrun::test {

enum class SendIsDone { at_once, when_received };

class Post {
 public:
  struct Message {
    std::span<std::byte> into;
    std::span<const std::byte> from;
    std::vector<std::byte> copy;
    bool done = false;
  };
  using Handle = std::shared_ptr<Message>;

  Post(int ranks, SendIsDone send_is_done) : ranks_(ranks), send_is_done_(send_is_done) {}
  int ranks() const { return ranks_; }

  Handle send(std::span<const std::byte> data, int from, int to) {
    const std::lock_guard lock(mutex_);
    auto message = std::make_shared<Message>();
    message->from = data;
    if (send_is_done_ == SendIsDone::at_once) {
      message->copy.assign(data.begin(), data.end());
      message->from = message->copy;
      message->done = true;
    }
    channels_[{from, to}].sent.push_back(message);
    match(channels_[{from, to}]);
    return message;
  }
  Handle receive(std::span<std::byte> data, int from, int to) {
    const std::lock_guard lock(mutex_);
    auto message = std::make_shared<Message>();
    message->into = data;
    channels_[{from, to}].expected.push_back(message);
    match(channels_[{from, to}]);
    return message;
  }
  void wait(const Message& message) {
    std::unique_lock lock(mutex_);
    news_.wait(lock, [&] { return message.done; });
  }
  std::size_t wait_any(std::span<const Handle> messages) {
    std::unique_lock lock(mutex_);
    auto done = messages.end();
    news_.wait(lock, [&] {
      done = std::find_if(messages.begin(), messages.end(), [](const Handle& one) { return one->done; });
      return done != messages.end();
    });
    return static_cast<std::size_t>(done - messages.begin());
  }

 private:
  struct Channel {
    std::deque<Handle> sent, expected;
  };
  void match(Channel& channel) {
    for (; !channel.sent.empty() && !channel.expected.empty();
         channel.sent.pop_front(), channel.expected.pop_front()) {
      Message &from = *channel.sent.front(), &to = *channel.expected.front();
      if (from.from.size() != to.into.size()) std::abort();  // ranks disagree about what they exchange
      if (!to.into.empty()) std::memcpy(to.into.data(), from.from.data(), to.into.size());
      from.done = to.done = true;
      news_.notify_all();
    }
  }

  int ranks_;
  SendIsDone send_is_done_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::map<std::pair<int, int>, Channel> channels_;
};

class ThreadLink final : public runtime::Transport {
 public:
  ThreadLink(Post& post, int rank) : post_(post), rank_(rank) {}
  int rank() const override { return rank_; }
  int size() const override { return post_.ranks(); }
  Result<Ticket> send_start(std::span<const std::byte> data, int to) override {
    messages_.push_back(post_.send(data, rank_, to));
    return Ticket{messages_.size() - 1};
  }
  Result<Ticket> receive_start(std::span<std::byte> data, int from) override {
    messages_.push_back(post_.receive(data, from, rank_));
    return Ticket{messages_.size() - 1};
  }
  Result<void> wait(Ticket ticket) override {
    post_.wait(*messages_.at(static_cast<std::size_t>(ticket)));
    return {};
  }
  Result<std::size_t> wait_any(std::span<const Ticket> tickets) override {
    std::vector<Post::Handle> messages;
    for (const Ticket ticket : tickets) messages.push_back(messages_.at(static_cast<std::size_t>(ticket)));
    return post_.wait_any(messages);
  }

 private:
  Post& post_;
  int rank_;
  std::vector<Post::Handle> messages_;
};

// Runs `body(link)` on each rank and joins them.
template <class Body>
void on_linked_ranks(int ranks, SendIsDone send_is_done, Body body) {
  Post post(ranks, send_is_done);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&post, &body, rank] {
      ThreadLink link(post, rank);
      body(link);
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace dlrun::test
