#include "src/agent/stage_in/item_folders.hpp"

#include <cerrno>
#include <thread>

#include <sys/statvfs.h>
#include <unistd.h>

#include "src/agent/stage_in/checksum.hpp"
#include "src/base/file.hpp"
#include "src/base/host_name.hpp"
#include "src/base/json.hpp"
#include "src/base/units.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;
using State = CopyFolder::State;
using Lifetime = CopyFolder::Lifetime;

std::string source_name(const plan::StageIn& item) {
  Checksum sum;
  sum.add(item.from);
  sum.add(item.unpack ? "\nunpacked" : "");
  return sum.text().substr(0, 16);
}

Result<void> check_space(const fs::path& folder, const plan::StageIn& item, std::uint64_t bytes) {
  struct statvfs space {};
  if (::statvfs(folder.c_str(), &space) != 0) return {};  // writing will tell
  const std::uint64_t free = std::uint64_t{space.f_bavail} * space.f_frsize;
  if (free >= bytes) return {};
  return fail(Error{.kind = ErrorKind::io,
                    .what = fmt::format("staging {} needs {} in {}, and {} are free there", item.from,
                                        format_size(bytes), folder.parent_path().string(), format_size(free)),
                    .where = {},
                    .hint = "stage.to names another place on the nodes",
                    .also = {}});
}

}  // namespace

Result<std::vector<SourceSummary>> read_sources(const Json& sources, std::size_t items) {
  const auto malformed = [] { return fail(ErrorKind::internal, "the list of what is staged is malformed"); };
  if (!sources.is_array() || sources.size() != items) return malformed();
  std::vector<SourceSummary> out;
  for (const Json& source : sources) {
    const auto fingerprint = field<std::string>(source, "fingerprint", "stage");
    const auto bytes = field<std::uint64_t>(source, "bytes", "stage");
    if (!fingerprint || !bytes || fingerprint->empty() ||
        fingerprint->find_first_not_of("0123456789abcdef") != std::string::npos)
      return malformed();
    out.push_back({*fingerprint, *bytes});
  }
  return out;
}

ItemFolders::ItemFolders(plan::Stage stage, std::string run, std::string node_local, CleanupList& cleanup)
    : stage_(std::move(stage)),
      run_(std::move(run)),
      node_local_(std::move(node_local)),
      host_(host_name()),
      cleanup_(cleanup) {}

fs::path ItemFolders::root_of(const plan::StageIn& item) const {
  return item.to == "node-local" ? node_local_ : item.to == "shm" ? "/dev/shm" : item.to;
}

Result<CopyFolder> ItemFolders::take_at(const fs::path& path, Lifetime lifetime) {
  TRY(cleanup_.add(path));
  return CopyFolder::take(path, run_, lifetime);
}

// A copy that is kept and that another run just makes is not waited for: this run makes its own.
Result<CopyFolder> ItemFolders::take(const plan::StageIn& item, const SourceSummary& source) {
  const fs::path root = root_of(item);
  sweep_abandoned(root, host_);
  if (item.reuse) {
    const std::string name = source_name(item);
    sweep_older(root, host_, name, source.fingerprint);
    CopyFolder kept = TRY(take_at(root / kept_folder_name(host_, name, source.fingerprint), Lifetime::kept));
    if (kept.state() != State::of_another_run) return kept;
  }
  return take_at(root / run_folder_name(host_, run_, item.name), Lifetime::run);
}

Result<std::vector<int>> ItemFolders::claim(const std::vector<SourceSummary>& sources) {
  sweep_abandoned_links(stage_.folder);
  links_ = TRY(take_at(stage_.folder, Lifetime::run));
  std::vector<int> out;
  for (std::size_t i = 0; i < stage_.items.size(); ++i) {
    folders_.push_back(TRY(take(stage_.items[i], sources.at(i))));
    if (folders_.back().state() != State::ours) continue;
    TRY(check_space(folders_.back().path(), stage_.items[i], sources[i].bytes));
    out.push_back(static_cast<int>(i));
  }
  return out;
}

std::map<int, fs::path> ItemFolders::to_write() const {
  std::map<int, fs::path> out;
  for (std::size_t i = 0; i < folders_.size(); ++i)
    if (folders_[i].state() == State::ours) out.emplace(static_cast<int>(i), folders_[i].path());
  return out;
}

Result<void> ItemFolders::await(CopyFolder& folder, const StageControl& control) {
  while (folder.state() != State::complete) {
    if (control.stopped()) return fail(ErrorKind::lost, "the staging was stopped");
    std::this_thread::sleep_for(Milliseconds(50));
    CopyFolder now = TRY(CopyFolder::take(folder.path(), run_, folder.lifetime()));
    if (now.state() == State::ours)
      return fail(ErrorKind::lost, "another agent of this machine has not completed {}",
                  folder.path().string());
    folder = std::move(now);
  }
  return {};
}

Result<void> ItemFolders::link_all() {
  for (std::size_t i = 0; i < folders_.size(); ++i) {
    const std::string& name = stage_.items[i].name;
    const fs::path link = links_->path() / name;
    if (::symlink((folders_[i].path() / name).c_str(), link.c_str()) != 0)
      return fail(ErrorKind::io, "cannot create {}: {}", link.string(), system_reason(errno));
  }
  return links_->complete();
}

Result<void> ItemFolders::complete(const StageControl& control) {
  for (CopyFolder& folder : folders_)
    if (folder.state() == State::ours) TRY(folder.complete());
  for (CopyFolder& folder : folders_) TRY(await(folder, control));
  return links_->state() == State::ours ? link_all() : await(*links_, control);
}

std::vector<std::string> ItemFolders::release() {
  std::vector<std::string> out;
  if (links_)
    if (auto released = links_->release(); !released) out.push_back(released.error().text());
  for (CopyFolder& folder : folders_)
    if (auto released = folder.release(); !released) out.push_back(released.error().text());
  links_.reset();
  folders_.clear();
  return out;
}

}  // namespace dlrun::agent
