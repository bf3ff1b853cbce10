#include "src/launch/ssh/node.hpp"

#include <thread>

namespace dlrun::launch {
namespace {

// The callbacks of a request, on its own thread.
struct SshCallbacks {
  NodeIndex node;
  SshShared& shared;

  static void tell(void* context, decltype(SshEvent::what) what) {
    const SshCallbacks& self = *static_cast<SshCallbacks*>(context);
    self.shared.tell({self.node, std::move(what)});
  }
  DlrunSshHost table() {
    return {.context = this,
            .note = [](void* self, const char* text) { tell(self, SshEvent::Note{text}); },
            .connected = [](void* self, int stream) { tell(self, SshEvent::Connected{UniqueFd(stream)}); },
            .failed =
                [](void* self, const char* what, const char* hint) {
                  tell(self, SshEvent::Failed{
                                 {.kind = ErrorKind::unavailable, .what = what, .where = {}, .hint = hint}});
                },
            .ended =
                [](void* self, const char* text) {
                  const SshCallbacks& callbacks = *static_cast<SshCallbacks*>(self);
                  callbacks.shared.keep_last_words(callbacks.node, text);
                }};
  }
};

void run(const SshRequest& request, const DlrunSshTable& table, SshShared& shared) {
  const plan::SshSpec& settings = request.settings;
  const DlrunSshRequest what{
      .host = request.host.c_str(),
      .program = request.program.c_str(),
      .copy = request.copy ? request.copy->data() : nullptr,
      .copy_size = request.copy ? request.copy->size() : 0,
      .user = settings.user.c_str(),
      .port = settings.port ? settings.port->get() : std::uint16_t{0},
      .accept_new_keys = settings.host_keys == plan::HostKeys::accept_new ? 1 : 0,
      .connect_timeout = settings.connect_timeout.count(),
      .deadline =
          std::chrono::duration_cast<std::chrono::nanoseconds>(request.deadline.time_since_epoch()).count(),
      .lost_after = request.lost_after.count(),
      .alarm_fd = shared.alarm.fd()};
  SshCallbacks callbacks{request.node, shared};
  const DlrunSshHost host = callbacks.table();
  table.run(&what, &host);
}

}  // namespace

void SshShared::tell(SshEvent news) {
  const std::scoped_lock lock(lock_);
  news_.push_back(std::move(news));
  bell_.ring();
}

std::vector<SshEvent> SshShared::take() {
  const std::scoped_lock lock(lock_);
  bell_.silence();
  return std::exchange(news_, {});
}

void SshShared::keep_last_words(NodeIndex node, std::string text) {
  const std::scoped_lock lock(lock_);
  last_words_[node.get()] = std::move(text);
}

std::string SshShared::last_words(NodeIndex node) const {
  const std::scoped_lock lock(lock_);
  const auto found = last_words_.find(node.get());
  return found == last_words_.end() ? std::string() : found->second;
}

void SshShared::thread_began() {
  const std::scoped_lock lock(lock_);
  ++threads_;
}

void SshShared::thread_ended() {
  const std::scoped_lock lock(lock_);
  --threads_;
  ended_.notify_all();
}

void SshShared::await_threads(Seconds limit) {
  std::unique_lock lock(lock_);
  ended_.wait_for(lock, limit, [this] { return threads_ == 0; });
}

// Detached: a name service that does not answer can block a thread for half a minute, and Ctrl-C must not
// wait for that.
void start_ssh_request(SshRequest request, const DlrunSshTable& table, std::shared_ptr<SshShared> shared) {
  shared->thread_began();
  std::thread([request = std::move(request), &table, shared = std::move(shared)] {
    run(request, table, *shared);
    shared->thread_ended();
  }).detach();
}

}  // namespace dlrun::launch
