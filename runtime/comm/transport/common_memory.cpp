// See common_memory.hpp.
#include "runtime/comm/transport/common_memory.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/token.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kMarkSpace = 4096;  // ahead of the data: the mark, alone in its page

tl::unexpected<Error> no_memory(const char* what) {
  return fail(ErrorKind::unavailable, "{} failed: {}", what, system_reason(errno));
}

}  // namespace

CommonMemory& CommonMemory::operator=(CommonMemory&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(base_, other.base_);
  std::swap(ticket_, other.ticket_);
  return *this;
}

CommonMemory::~CommonMemory() {
  if (base_ != nullptr) ::munmap(base_, kMarkSpace + ticket_.size);
}

void* CommonMemory::data() const {
  return static_cast<std::byte*>(base_) + kMarkSpace;
}

Result<CommonMemory> CommonMemory::map(UniqueFd fd, const Ticket& ticket) {
  void* base = ::mmap(nullptr, kMarkSpace + ticket.size, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (base == MAP_FAILED) return no_memory("mapping shared memory");
  return CommonMemory(std::move(fd), base, ticket);
}

Result<CommonMemory> CommonMemory::make(std::size_t size) {
  UniqueFd fd(::memfd_create("dlrun-ranks", MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(kMarkSpace + size)) != 0)
    return no_memory("creating shared memory");
  Ticket ticket{.process = ::getpid(), .descriptor = fd.get(), .size = size, .mark = {}};
  const std::string mark = random_challenge();
  std::memcpy(ticket.mark.data(), mark.data(), std::min(mark.size(), ticket.mark.size()));
  CommonMemory out = TRY(map(std::move(fd), ticket));
  std::memcpy(out.base_, ticket.mark.data(), ticket.mark.size());
  return out;
}

Result<CommonMemory> CommonMemory::open(const Ticket& ticket) {
  const std::string path = fmt::format("/proc/{}/fd/{}", ticket.process, ticket.descriptor);
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) return no_memory("opening shared memory");
  if (!S_ISREG(status.st_mode) || static_cast<std::uint64_t>(status.st_size) != kMarkSpace + ticket.size)
    return fail(ErrorKind::unavailable, "{} is not the shared memory", path);
  CommonMemory out = TRY(map(std::move(fd), ticket));
  if (std::memcmp(out.base_, ticket.mark.data(), ticket.mark.size()) != 0)
    return fail(ErrorKind::unavailable, "{} is not the shared memory", path);
  out.close_descriptor();
  return out;
}

}  // namespace dlrun::runtime
