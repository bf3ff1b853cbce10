// See part_writer.hpp.
#include "runtime/checkpoint/part_writer.hpp"

namespace dlrun::runtime {
namespace {

template <class Future>
bool is_running(const Future& future) {
  return future.valid() && future.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

}  // namespace

bool PartWriter::busy() const {
  return is_running(writing_) || is_running(committing_);
}

Result<void> PartWriter::start(const Engine& engine, const Manifest& manifest) {
  TRY(snapshot_.take(engine));
  manifest_ = manifest;
  began_ = std::chrono::steady_clock::now();
  writing_ = std::async(std::launch::async, [this] {
    return write_part(files_, place_.folder, manifest_.position.step, part_,
                      {snapshot_.file(0), snapshot_.file(1)});
  });
  return {};
}

Result<std::vector<ManifestFile>> PartWriter::written() {
  return writing_.get();
}

void PartWriter::commit(std::vector<ManifestFile> files) {
  manifest_.files = std::move(files);
  committing_ = std::async(std::launch::async, [this]() -> Result<Saved> {
    if (may_write_) TRY(may_write_());
    TRY(commit_parts(files_, place_.folder, manifest_));
    TRY(prune_checkpoints(files_, place_, manifest_.identity));
    return Saved{
        .step = manifest_.position.step, .began = began_, .took = std::chrono::steady_clock::now() - began_};
  });
}

Result<Saved> PartWriter::committed() {
  return committing_.get();
}

}  // namespace dlrun::runtime
