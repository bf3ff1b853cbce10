// CommonMemory: zeroed memory that several processes of one node see, without a name in any file system, so
// that nothing is left when they die. One makes it; the others open it through that one's descriptor in /proc
// and check that it is the same: a process of another container or machine gets an Error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "src/base/result.hpp"
#include "src/base/unique_fd.hpp"

namespace dlrun::runtime {

class CommonMemory {
 public:
  // What the others need to open it. The maker keeps it until they have.
  struct Ticket {
    std::int64_t process = 0;
    std::int32_t descriptor = -1;
    std::uint64_t size = 0;
    std::array<char, 64> mark{};
  };

  static Result<CommonMemory> make(std::size_t size);
  static Result<CommonMemory> open(const Ticket& ticket);
  CommonMemory(CommonMemory&& other) noexcept { *this = std::move(other); }
  CommonMemory& operator=(CommonMemory&& other) noexcept;
  CommonMemory(const CommonMemory&) = delete;
  CommonMemory& operator=(const CommonMemory&) = delete;
  ~CommonMemory();

  const Ticket& ticket() const { return ticket_; }
  void* data() const;
  /// Nobody opens it any more.
  void close_descriptor() { fd_.reset(); }

 private:
  CommonMemory(UniqueFd fd, void* base, const Ticket& ticket)
      : fd_(std::move(fd)), base_(base), ticket_(ticket) {}
  static Result<CommonMemory> map(UniqueFd fd, const Ticket& ticket);

  UniqueFd fd_;
  void* base_ = nullptr;
  Ticket ticket_;
};

}  // namespace dlrun::runtime
