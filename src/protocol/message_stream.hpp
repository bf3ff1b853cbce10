// Messages between head and agent: a JSON header and a body of bytes, framed by lengths on one byte stream (a
// pipe, a socket, an ssh channel). The reader takes any bytes from outside: a wrong length or header is an
// Error and the end of the stream, never a crash or a huge allocation. The writer never blocks: what the peer
// does not take yet is queued, and queued() lets the sender slow down.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "src/base/json.hpp"
#include "src/base/result.hpp"
#include "src/process/event_loop.hpp"

namespace dlrun {

struct Message {
  Json header;  // an object with "type"
  std::string body = {};
  std::string_view type() const;  // of the header; empty: it has none
};

constexpr std::size_t kMaxMessage = std::size_t{256} << 20;

std::string encode(const Message& message);

// Bytes in, whole messages out.
class MessageDecoder {
 public:
  void add(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole message; unset where more bytes are needed.
  Result<std::optional<Message>> next();
  bool empty() const { return used_ == buffer_.size(); }

 private:
  void forget_used();

  std::string buffer_;
  std::size_t used_ = 0;
};

// Both directions over descriptors that an EventLoop watches. It does not own the loop; it owns the
// descriptors. It can leave its loop and go on in another one: what is read by then, and what waits to be
// sent, comes along.
class MessageStream {
 public:
  struct Handlers {
    std::function<void(Message)> message;
    std::function<void(const std::string& reason)> closed;  // once; empty reason: an orderly end
    std::function<void()> drained;                          // a queue that had formed is empty again
  };
  // `in` and `out` may be one socket (out < 0).
  MessageStream(EventLoop& loop, UniqueFd in, UniqueFd out, Handlers handlers);
  ~MessageStream();
  MessageStream(const MessageStream&) = delete;
  MessageStream& operator=(const MessageStream&) = delete;

  void send(const Message& message);
  // A message that many streams send: encode()d once, and kept once.
  void send(std::shared_ptr<const std::string> encoded);
  // Ahead of all that waits: for what others wait for. In order with others of its kind.
  void send_ahead(const Message& message);
  std::size_t queued() const { return queued_; }
  // Reads no more until resume(): what the peer says waits with the kernel, and then with the peer. What is
  // read already is still given.
  void pause();
  void resume();
  void leave_loop();
  void join_loop(EventLoop& loop, Handlers handlers);
  // The descriptors, of which nothing is read or written any more: what was sent must have gone.
  std::pair<UniqueFd, UniqueFd> release();
  int fd() const { return in_.get(); }
  void close();

 private:
  int out_fd() const { return out_ ? out_.get() : in_.get(); }
  void read_ready();
  void write_ready();
  void write_queue();
  void give_up_writing();
  void update_watches();
  void update_watch(int fd, short& now, short wanted, EventLoop::FdHandler handler);
  void in_ready(short ready);
  void fail_stream(const std::string& reason);

  EventLoop* loop_;  // null: it has left it
  UniqueFd in_, out_;
  Handlers handlers_;
  MessageDecoder decoder_;
  std::deque<std::shared_ptr<const std::string>> outgoing_;
  std::size_t sent_of_first_ = 0;
  std::size_t queued_ = 0;
  std::size_t ahead_ = 0;                   // how many behind the first were sent ahead
  short in_watched_ = 0, out_watched_ = 0;  // the events that the loop watches them for
  bool closed_ = false, writable_ = true, paused_ = false;
};

}  // namespace dlrun
