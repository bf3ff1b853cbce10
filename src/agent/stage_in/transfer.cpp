#include "src/agent/stage_in/transfer.hpp"

#include <cerrno>
#include <system_error>
#include <thread>

#include <poll.h>
#include <sys/socket.h>

#include "src/agent/stage_in/block_queue.hpp"
#include "src/agent/stage_in/source_reader.hpp"
#include "src/agent/stage_in/tree_writer.hpp"
#include "src/agent/stage_in/unpacker.hpp"
#include "src/base/file.hpp"
#include "src/base/thread_without_signals.hpp"
#include "src/base/uncaught.hpp"
#include "src/protocol/call_agent_port.hpp"

namespace dlrun::agent {
namespace {

constexpr int kLookMilliseconds = 100;
constexpr Seconds kCallTimeout{10}, kPause{0.1};

void await(int fd, short events) {
  pollfd polled{.fd = fd, .events = events, .revents = 0};
  (void)::poll(&polled, 1, kLookMilliseconds);
}

tl::unexpected<Error> lost(const std::string& host, const std::string& why) {
  return fail(ErrorKind::lost, "staging: the connection to the agent of {} was lost: {}", host, why);
}

// As many bytes as there are, up to a block; empty at the end.
Result<std::string> receive_block(int fd, const std::string& host, const StageControl& control) {
  std::string out(BlockQueue::kBlock, '\0');
  std::size_t size = 0;
  while (size < out.size() && !control.stopped()) {
    const ssize_t got = ::recv(fd, out.data() + size, out.size() - size, MSG_DONTWAIT);
    if (got == 0) break;
    if (got > 0) {
      size += static_cast<std::size_t>(got);
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return lost(host, system_reason(errno));
    if (size > 0 && errno == EAGAIN) break;
    await(fd, POLLIN);
  }
  out.resize(size);
  return out;
}

Result<void> send_block(int fd, std::string_view bytes, const std::string& host,
                        const StageControl& control) {
  while (!bytes.empty() && !control.stopped()) {
    const ssize_t put = ::send(fd, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (put > 0) bytes.remove_prefix(static_cast<std::size_t>(put));
    if (put < 0 && errno != EAGAIN && errno != EINTR) return lost(host, system_reason(errno));
    if (put < 0) await(fd, POLLOUT);
  }
  return {};
}

class Pipeline {
 public:
  Pipeline(const Transfer& transfer, StageControl& control)
      : transfer_(transfer), control_(control), to_write_(control), to_send_(control) {}

  Result<void> run() {
    std::thread writer, sender;
    try {
      writer = thread_without_signals([this] { note(write()); });
      sender = thread_without_signals([this] { note(transfer_.next ? send() : Result<void>()); });
      note(transfer_.previous ? receive() : read());
    } catch (const std::system_error& uncaught) {  // the system gives no thread
      control_.fail(error_of(uncaught));
    }
    to_write_.close();
    to_send_.close();
    for (std::thread* each : {&writer, &sender})
      if (each->joinable()) each->join();
    return control_.result();
  }

 private:
  void note(Result<void> done) {
    if (!done) control_.fail(std::move(done).error());
  }

  bool put(const Block& block) {
    control_.moved(block->size());
    return to_write_.push(block) && (!transfer_.next || to_send_.push(block));
  }

  Result<void> read() {
    BlockWriter out([this](const Block& block) { return put(block); });
    for (const int item : transfer_.sent)
      TRY(read_source(transfer_.sources.at(static_cast<std::size_t>(item)), item, out));
    end_stream(out);
    return {};
  }

  Result<void> receive() {
    const PreviousNode& previous = *transfer_.previous;
    const UniqueFd connection =
        TRY(call_agent_port("the agent of " + previous.host, previous.addresses, previous.port,
                            previous.token, previous.own, kCallTimeout));
    for (;;) {
      std::string bytes = TRY(receive_block(connection.get(), previous.host, control_));
      if (bytes.empty() || !put(std::make_shared<const std::string>(std::move(bytes)))) return {};
    }
  }

  Result<void> send() {
    const UniqueFd connection = transfer_.next->await(control_);
    while (const Block block = connection ? to_send_.pop() : Block())
      TRY(send_block(connection.get(), *block, transfer_.next_host, control_));
    return {};
  }

  Result<void> write() {
    Block block;
    std::size_t used = 0;
    const auto next = [&](std::size_t maximum) -> Result<std::string_view> {
      if (!block || used == block->size()) {
        block = to_write_.pop();
        used = 0;
      }
      if (!block) return std::string_view();
      const std::string_view out = std::string_view(*block).substr(used, maximum);
      used += out.size();
      return out;
    };
    return StreamReader(next, transfer_.sent, [this](int item) { return sink_of(item); }).run();
  }

  Result<std::unique_ptr<EntrySink>> sink_of(int item) {
    const auto folder = transfer_.folders.find(item);
    if (folder == transfer_.folders.end()) return std::unique_ptr<EntrySink>();
    const plan::StageIn& what = transfer_.items.at(static_cast<std::size_t>(item));
    const std::filesystem::path root = folder->second / what.name;
    if (!what.unpack) return std::unique_ptr<EntrySink>(std::make_unique<TreeWriter>(root));
    return std::unique_ptr<EntrySink>(std::make_unique<Unpacker>(
        what.from, root, folder->second / ".messages", transfer_.environment, control_));
  }

  const Transfer& transfer_;
  StageControl& control_;
  BlockQueue to_write_, to_send_;
};

}  // namespace

void NextNode::called(UniqueFd connection) {
  const std::lock_guard lock(mutex_);
  connection_ = std::move(connection);
  changed_.notify_all();
}

UniqueFd NextNode::await(const StageControl& control) {
  std::unique_lock lock(mutex_);
  while (!connection_ && !control.stopped()) changed_.wait_for(lock, kPause);
  return std::move(connection_);
}

Result<void> run_transfer(const Transfer& transfer, StageControl& control) {
  return Pipeline(transfer, control).run();
}

}  // namespace dlrun::agent
