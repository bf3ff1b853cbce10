#include "src/protocol/message_stream.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>

#include "src/base/file.hpp"

namespace dlrun {
namespace {

constexpr std::size_t kPrefix = 8;  // u32 length of the header, u32 length of the body, little endian

void put_u32(std::string& out, std::size_t value) {
  for (int shift = 0; shift < 32; shift += 8) out += static_cast<char>((value >> shift) & 0xff);
}

std::size_t get_u32(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = 0; i < 4; ++i)
    value |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  return value;
}

void set_nonblocking(int fd) {
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
}

}  // namespace

std::string_view Message::type() const {
  if (!header.is_object()) return {};
  const auto found = header.find("type");
  return found != header.end() && found->is_string() ? std::string_view(found->get_ref<const std::string&>())
                                                     : std::string_view();
}

std::string encode(const Message& message) {
  const std::string header = to_text(message.header);
  std::string out;
  out.reserve(kPrefix + header.size() + message.body.size());
  put_u32(out, header.size());
  put_u32(out, message.body.size());
  out.append(header).append(message.body);
  return out;
}

Result<std::optional<Message>> MessageDecoder::next() {
  const std::string_view rest = std::string_view(buffer_).substr(used_);
  if (rest.size() < kPrefix) return std::nullopt;
  const std::size_t header = get_u32(rest), body = get_u32(rest.substr(4));
  if (header < 2 || header + body > kMaxMessage)
    return fail(
        {.kind = ErrorKind::unavailable,
         .what = fmt::format("not a dlrun message: lengths {} and {}", header, body),
         .hint = "something else wrote into the stream, such as a shell's start file that prints text"});
  if (rest.size() < kPrefix + header + body) return std::nullopt;
  Json parsed = TRY(parse_json(rest.substr(kPrefix, header), "message"));
  Message message{std::move(parsed), std::string(rest.substr(kPrefix + header, body))};
  if (message.type().empty()) return fail(ErrorKind::unavailable, "a message without a type");
  used_ += kPrefix + header + body;
  forget_used();
  return message;
}

// A head has thousands of these: one that is empty keeps no memory.
void MessageDecoder::forget_used() {
  constexpr std::size_t kMaxKept = 512, kMaxUsed = std::size_t{1} << 20;
  if (used_ == buffer_.size() && buffer_.capacity() > kMaxKept) std::string().swap(buffer_);
  if (used_ >= buffer_.size() || used_ > kMaxUsed) buffer_.erase(0, std::exchange(used_, 0));
}

MessageStream::MessageStream(EventLoop& loop, UniqueFd in, UniqueFd out, Handlers handlers)
    : loop_(&loop), in_(std::move(in)), out_(std::move(out)), handlers_(std::move(handlers)) {
  set_nonblocking(in_.get());
  if (out_) set_nonblocking(out_.get());
  update_watches();
}

MessageStream::~MessageStream() {
  close();
}

void MessageStream::close() {
  if (closed_) return;
  leave_loop();
  closed_ = true;
  in_.reset();
  out_.reset();
  outgoing_.clear();
  queued_ = 0;
}

void MessageStream::leave_loop() {
  if (closed_ || loop_ == nullptr) return;
  loop_->unwatch(in_.get());
  if (out_) loop_->unwatch(out_.get());
  in_watched_ = out_watched_ = 0;
  loop_ = nullptr;
}

void MessageStream::join_loop(EventLoop& loop, Handlers handlers) {
  handlers_ = std::move(handlers);
  if (closed_) return;
  loop_ = &loop;
  paused_ = false;
  update_watches();
}

std::pair<UniqueFd, UniqueFd> MessageStream::release() {
  leave_loop();
  closed_ = true;
  return {std::move(in_), std::move(out_)};
}

void MessageStream::fail_stream(const std::string& reason) {
  if (closed_) return;
  close();
  handlers_.closed(reason);
}

// One that is paused and has nothing to say is not watched: the loop would tell of a hang-up again and again.
void MessageStream::update_watches() {
  if (loop_ == nullptr) return;
  const short reading = paused_ ? 0 : POLLIN, writing = outgoing_.empty() ? 0 : POLLOUT;
  const short both = static_cast<short>(reading | writing);
  update_watch(in_.get(), in_watched_, out_ ? reading : both, [this](short ready) { in_ready(ready); });
  if (out_) update_watch(out_.get(), out_watched_, writing, [this](short) { write_ready(); });
}

void MessageStream::update_watch(int fd, short& now, short wanted, EventLoop::FdHandler handler) {
  const short before = std::exchange(now, wanted);
  if (before == wanted) return;
  if (wanted == 0) return loop_->unwatch(fd);
  before == 0 ? loop_->watch(fd, wanted, std::move(handler)) : loop_->change(fd, wanted);
}

void MessageStream::in_ready(short ready) {
  if (out_) return read_ready();
  if ((ready & POLLOUT) != 0) write_ready();
  if (closed_) return;
  if (paused_ && (ready & (POLLHUP | POLLERR)) != 0) return give_up_writing();
  if (!paused_ && (ready & (POLLIN | POLLHUP | POLLERR)) != 0) read_ready();
}

void MessageStream::pause() {
  if (closed_ || std::exchange(paused_, true)) return;
  update_watches();
}

void MessageStream::resume() {
  if (closed_ || !std::exchange(paused_, false)) return;
  update_watches();
}

void MessageStream::send(const Message& message) {
  send(std::make_shared<const std::string>(encode(message)));
}

void MessageStream::send(std::shared_ptr<const std::string> encoded) {
  if (closed_ || !writable_) return;
  queued_ += encoded->size();
  outgoing_.push_back(std::move(encoded));
  if (outgoing_.size() == 1) write_queue();  // most messages leave at once
}

void MessageStream::send_ahead(const Message& message) {
  if (closed_ || !writable_ || outgoing_.empty()) return send(message);
  auto bytes = std::make_shared<const std::string>(encode(message));
  queued_ += bytes->size();
  // The first one may be half sent.
  outgoing_.insert(outgoing_.begin() + static_cast<std::ptrdiff_t>(++ahead_), std::move(bytes));
}

void MessageStream::write_ready() {
  write_queue();
  if (!closed_ && outgoing_.empty() && handlers_.drained) handlers_.drained();
}

void MessageStream::write_queue() {
  while (!outgoing_.empty()) {
    const std::string& first = *outgoing_.front();
    const ssize_t put = ::write(out_fd(), first.data() + sent_of_first_, first.size() - sent_of_first_);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) break;
    if (put < 0) return give_up_writing();
    sent_of_first_ += static_cast<std::size_t>(put);
    queued_ -= static_cast<std::size_t>(put);
    if (sent_of_first_ < first.size()) continue;
    outgoing_.pop_front();
    ahead_ -= ahead_ > 0 ? 1 : 0;
    sent_of_first_ = 0;
  }
  update_watches();
}

// The peer takes nothing any more, but what it said before may still be unread: the end of its stream closes
// ours.
void MessageStream::give_up_writing() {
  writable_ = false;
  outgoing_.clear();
  queued_ = sent_of_first_ = ahead_ = 0;
  update_watches();
}

void MessageStream::read_ready() {
  static thread_local std::array<char, 65536> chunk;  // a stack may be as small as that
  const ssize_t got = ::read(in_.get(), chunk.data(), chunk.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got < 0) return fail_stream(system_reason(errno));
  if (got == 0) return fail_stream(decoder_.empty() ? "" : "the stream ended inside a message");
  decoder_.add({chunk.data(), static_cast<std::size_t>(got)});
  while (!closed_) {
    auto message = decoder_.next();
    if (!message) return fail_stream(message.error().text());
    if (!*message) return;
    handlers_.message(std::move(**message));
  }
}

}  // namespace dlrun
