// Launching over ssh: agents behind the nodes' own ssh servers, by libssh in a plug-in. One thread per node,
// because a login has a dozen steps that wait and names that are looked up hold up whoever asks; no more of
// them at work on logins than the fan-out says.
#include "src/launch/launcher.hpp"

#include <poll.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/install.hpp"
#include "src/base/shared_library.hpp"
#include "src/launch/agent_program.hpp"
#include "src/launch/ssh/node.hpp"
#include "src/launch/stage.hpp"

namespace dlrun::launch {
namespace {

constexpr Seconds kEnd{4};           // for the threads to disconnect from their servers
constexpr Seconds kHeadMargin{0.5};  // our reasons come before the head's own limit

class SshLauncher final : public Launcher {
 public:
  SshLauncher(const LaunchSettings& settings, Installation own, const DlrunSshTable& table)
      : settings_(settings), own_(std::move(own)), table_(table) {}

  ~SshLauncher() override {
    leave_loop();
    if (waiting_.empty()) return;
    shared_->alarm.ring();
    shared_->await_threads(kEnd);
  }

  std::string_view name() const override { return "ssh"; }

  Result<void> start(const plan::Plan& plan, EventLoop& loop, LaunchCallbacks callbacks) override {
    const Seconds timeout = std::max(settings_.timeout - kHeadMargin, settings_.timeout / 2);
    const Ticks deadline =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<Ticks::duration>(timeout);
    const std::string program = own_.agent();
    const std::shared_ptr<const std::string> copy =
        settings_.staging == Staging::never ? nullptr : TRY(packed(plan));
    for (const plan::NodePlan& node : plan.nodes)
      waiting_.push_back(
          {node.index, node.host.get(), program, copy, settings_.ssh, deadline, plan.limits.lost_after});
    join_loop(loop, callbacks);
    for (int i = 0; i < settings_.fan_out; ++i) start_next();
    return {};
  }

  std::string last_words(NodeIndex node) const override { return shared_->last_words(node); }

  void leave_loop() override {
    if (loop_ != nullptr) loop_->unwatch(shared_->bell().fd());
    loop_ = nullptr;
  }
  void join_loop(EventLoop& loop, const LaunchCallbacks& callbacks) override {
    loop_ = &loop;
    callbacks_ = callbacks;
    loop.watch(shared_->bell().fd(), POLLIN, [this](short) { hear(); });
  }

 private:
  Result<std::shared_ptr<const std::string>> packed(const plan::Plan& plan) const {
    const std::string path = plan.run_directory + "/dlrun-copy.tar.gz";
    TRY(write_archive(files_to_stage(plan, own_), path, settings_.environment));
    auto out = std::make_shared<const std::string>(TRY(read_file(path)));
    ::unlink(path.c_str());
    return out;
  }

  void start_next() {
    if (next_ < waiting_.size()) start_ssh_request(waiting_[next_++], table_, shared_);
  }

  void hear() {
    for (SshEvent& news : shared_->take()) {
      if (const auto* note = std::get_if<SshEvent::Note>(&news.what)) {
        callbacks_.note(note->text);
        continue;
      }
      start_next();
      if (auto* connected = std::get_if<SshEvent::Connected>(&news.what))
        callbacks_.connected(news.node, AgentLink{std::move(connected->stream), UniqueFd()});
      else
        callbacks_.failed(news.node, std::move(std::get<SshEvent::Failed>(news.what).why));
    }
  }

  LaunchSettings settings_;
  Installation own_;
  const DlrunSshTable& table_;
  EventLoop* loop_ = nullptr;
  LaunchCallbacks callbacks_;
  std::shared_ptr<SshShared> shared_ = std::make_shared<SshShared>();
  std::vector<SshRequest> waiting_;
  std::size_t next_ = 0;
};

// Never unloaded, so the table stays.
Result<const DlrunSshTable*> load_table(const std::filesystem::path& path) {
  auto library = SharedLibrary::open(path);
  if (!library)
    return fail(
        {.kind = ErrorKind::unavailable,
         .what = "launch.via: ssh needs a plug-in: " + library.error().what,
         .hint = "install libssh and dlrun's plug-ins, or use another launcher: --via slurm, pbs, mpiexec"});
  auto* const table_of = TRY(library->symbol<const DlrunSshTable*()>(DLRUN_SSH_TABLE_SYMBOL));
  const DlrunSshTable* table = table_of();
  if (table->version == DLRUN_SSH_TABLE_VERSION) return table;
  return fail(
      {.kind = ErrorKind::unavailable,
       .what = fmt::format("version mismatch: the plug-in has version {} of the table, this program {}",
                           table->version, DLRUN_SSH_TABLE_VERSION),
       .where = path.string(),
       .hint = "install the plug-ins of the same build as the program"});
}

}  // namespace

Result<std::unique_ptr<Launcher>> make_ssh_launcher(const LaunchSettings& settings) {
  Installation own = TRY(this_installation());
  TRY(agent_program());
  const DlrunSshTable* table = TRY(load_table(own.plugins / "libdlrun-ssh.so"));
  return std::make_unique<SshLauncher>(settings, std::move(own), *table);
}

}  // namespace dlrun::launch
