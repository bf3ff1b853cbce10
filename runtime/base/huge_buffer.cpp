// See huge_buffer.hpp.
#include "runtime/base/huge_buffer.hpp"

#include <cerrno>
#include <cstdint>

#include <sys/mman.h>

#include "src/base/file.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

}  // namespace

Result<HugeBuffer> HugeBuffer::make(std::size_t size) {
  if (size > SIZE_MAX / 2) return fail(ErrorKind::input, "a buffer of {} bytes is too large", size);
  if (size == 0) return HugeBuffer();
  // Small buffers stay in small pages: a huge one for a kilobyte would be waste.
  const bool huge = size >= huge_page / 2;
  HugeBuffer out;
  const std::size_t rounded =
      huge ? (size + huge_page - 1) / huge_page * huge_page : (size + 4095) / 4096 * 4096;
  out.mapped_ = rounded + (huge ? huge_page : 4096);
  void* base = ::mmap(nullptr, out.mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED)
    return fail(Error{
        .kind = ErrorKind::unavailable,
        .what = fmt::format("cannot allocate {} of memory: {}", format_size(size), system_reason(errno)),
        .hint = "use a smaller batch or fewer ranks on this node, or see its limits (ulimit -v, the "
                "batch job's memory)"});
  out.base_ = base;
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  const std::uintptr_t align = huge ? huge_page : 4096;
  out.data_ = static_cast<std::byte*>(base) + ((align - address % align) % align);
  out.size_ = size;
  if (huge) ::madvise(out.data_, rounded, MADV_HUGEPAGE);  // advice: without huge pages it works all the same
  return out;
}

HugeBuffer::~HugeBuffer() {
  if (base_ != nullptr) ::munmap(base_, mapped_);
}

}  // namespace dlrun::runtime
