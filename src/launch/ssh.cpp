// The ssh way: agents behind the nodes' own ssh servers, by libssh. One thread a node, because a login has a
// dozen steps that wait and names that are looked up hold up whoever asks; no more of them at work on logins
// than the fan-out says.
#include <poll.h>

#include "src/base/install.hpp"
#include "src/launch/launcher.hpp"
#include "src/launch/ssh_node.hpp"

namespace dlrun::launch {
namespace {

constexpr Seconds kEnd{4};           // for the threads to say farewell to their servers
constexpr Seconds kHeadMargin{0.5};  // our reasons come before the head's own limit

class SshLauncher final : public Launcher {
 public:
  SshLauncher(const LaunchSettings& settings, std::string program)
      : settings_(settings), program_(std::move(program)) {}

  ~SshLauncher() override {
    if (loop_ == nullptr) return;
    loop_->unwatch(shared_->bell().fd());
    shared_->alarm.ring();
    shared_->await_threads(kEnd);
  }

  std::string_view name() const override { return "ssh"; }

  Result<void> start(const plan::Plan& plan, EventLoop& loop, LaunchCallbacks callbacks) override {
    loop_ = &loop;
    callbacks_ = std::move(callbacks);
    const Seconds patience = std::max(settings_.patience - kHeadMargin, settings_.patience / 2);
    const Ticks deadline =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<Ticks::duration>(patience);
    for (const plan::NodePlan& node : plan.nodes)
      waiting_.push_back({node.index, node.host.get(), program_, settings_.ssh, deadline});
    loop.watch(shared_->bell().fd(), POLLIN, [this](short) { hear(); });
    for (int i = 0; i < settings_.fan_out; ++i) start_next();
    return {};
  }

  std::string last_words(NodeIndex node) const override { return shared_->last_words(node); }

 private:
  void start_next() {
    if (next_ < waiting_.size()) start_ssh_errand(waiting_[next_++], shared_);
  }

  void hear() {
    for (SshNews& news : shared_->take()) {
      if (const auto* note = std::get_if<SshNews::Note>(&news.what)) {
        callbacks_.note(note->text);
        continue;
      }
      start_next();
      if (auto* connected = std::get_if<SshNews::Connected>(&news.what))
        callbacks_.connected(news.node, AgentLink{std::move(connected->stream), UniqueFd()});
      else
        callbacks_.failed(news.node, std::move(std::get<SshNews::Failed>(news.what).why));
    }
  }

  LaunchSettings settings_;
  std::string program_;
  EventLoop* loop_ = nullptr;
  LaunchCallbacks callbacks_;
  std::shared_ptr<SshShared> shared_ = std::make_shared<SshShared>();
  std::vector<SshErrand> waiting_;
  std::size_t next_ = 0;
};

}  // namespace

Result<std::unique_ptr<Launcher>> make_ssh_launcher(const LaunchSettings& settings) {
  const Installation installation = TRY(this_installation());
  return std::make_unique<SshLauncher>(settings, (installation.bin / "dlrun").string());
}

}  // namespace dlrun::launch
