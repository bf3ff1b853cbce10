#include "runtime/base/mapped_file.hpp"

#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "src/base/file.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::runtime {

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const auto failed = [&] {
    return fail(Error{.kind = ErrorKind::input,
                      .what = fmt::format("cannot be read: {}", system_reason(errno)),
                      .where = path.string()});
  };
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return failed();
  if (status.st_size == 0) return MappedFile(nullptr, 0);
  const auto size = static_cast<std::size_t>(status.st_size);
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (data == MAP_FAILED) return failed();
  return MappedFile(static_cast<const std::byte*>(data), size);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace dlrun::runtime
