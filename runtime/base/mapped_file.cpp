#include "runtime/base/mapped_file.hpp"

#include <cerrno>

#include <sys/mman.h>

#include "runtime/base/mapped_faults.hpp"
#include "src/base/file.hpp"
#include "src/base/regular_file.hpp"

namespace dlrun::runtime {

Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  const RegularFile file = TRY(open_regular_file(path));
  if (file.size == 0) return MappedFile(path.string(), nullptr, 0);
  void* data = ::mmap(nullptr, file.size, PROT_READ, MAP_SHARED, file.fd.get(), 0);
  if (data == MAP_FAILED)
    return bad_input(path.string(), fmt::format("cannot be read: {}", system_reason(errno)));
  return MappedFile(path.string(), static_cast<const std::byte*>(data), file.size);
}

MappedFile::MappedFile(std::string name, const std::byte* data, std::size_t size)
    : name_(std::move(name)),
      data_(data),
      size_(size),
      range_(data == nullptr ? nullptr : know_mapped_file(data, size, name_)) {}

MappedFile::~MappedFile() {
  forget_mapped_file(range_);
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace dlrun::runtime
