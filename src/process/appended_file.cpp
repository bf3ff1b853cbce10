#include "src/process/appended_file.hpp"

#include <utility>

#include "src/base/file.hpp"

namespace dlrun {

AppendedFile::AppendedFile(FileWriter& writer, UniqueFd file, std::string path, Callbacks callbacks)
    : writer_(writer),
      target_(std::make_shared<Target>(Target{std::move(file), std::move(path)})),
      callbacks_(std::move(callbacks)),
      self_(std::make_shared<AppendedFile*>(this)) {}

// The close, too, is the writer's: over NFS it waits for the server.
AppendedFile::~AppendedFile() {
  *self_ = nullptr;
  writer_.run([write = write_pending(), target = std::move(target_)] { return write(); });
}

void AppendedFile::append(std::string_view bytes) {
  if (failed_ || bytes.empty()) return;
  pending_ += bytes;
  queued_ += bytes.size();
  was_full_ = was_full_ || full();
  if (!writing_) write_next();
}

FileWriter::Work AppendedFile::write_pending() {
  return [target = target_, bytes = std::exchange(pending_, {})]() -> Result<void> {
    return write_all(target->file.get(), bytes, target->path);
  };
}

// One write at a time: what comes meanwhile goes out together.
void AppendedFile::write_next() {
  writing_ = true;
  const std::size_t size = pending_.size();
  writer_.run(write_pending(), [self = self_, size](const Result<void>& result) {
    if (*self != nullptr) (*self)->on_written(size, result);
  });
}

void AppendedFile::on_written(std::size_t size, const Result<void>& result) {
  writing_ = false;
  queued_ -= size;
  if (!result) {
    failed_ = true;
    pending_.clear();
    queued_ = 0;
  } else if (!pending_.empty()) {
    write_next();
  }
  if (!full() && std::exchange(was_full_, false) && callbacks_.drained) callbacks_.drained();
  if (!result && callbacks_.failed) callbacks_.failed(result.error());
}

}  // namespace dlrun
