// Lease: the right to use something that one process at a time may use (a checkpoint folder, a chain), on any
// file system. It is renewed by a thread of its own, so that it neither holds its owner up nor is forgotten
// by one that is busy, and is given back at the end. A live owner is never robbed; an owner that stood still
// for so long that another one took over is told so (check) and must write nothing more.
#pragma once

#include <functional>
#include <memory>

#include "src/base/lease_folder.hpp"
#include "src/base/lease_watch.hpp"

namespace dlrun {

class Lease {
 public:
  Lease(Lease&&) noexcept;
  Lease& operator=(Lease&&) noexcept;
  ~Lease();  // gives it back

  int number() const;
  // An Error (lost) where another process has it since.
  Result<void> check() const;

 private:
  friend class LeaseTaker;
  struct Renewal;
  explicit Lease(std::unique_ptr<Renewal> renewal);
  std::unique_ptr<Renewal> renewal_;
};

struct LeaseRequest {
  std::filesystem::path folder;  // of the leases
  LeaseOwner owner;
  std::string what;  // "checkpoint folder /scratch/ckpt": for error texts
  ErrorKind in_use = ErrorKind::io;
  std::string hint = {};
  LeaseTimes times = {};
  // Called once, with who has it and for how long it will be waited at most.
  std::function<void(const std::string& owner, Seconds wait)> waiting = {};
  // For tests, and where something else knows that an owner has ended.
  std::function<Life(const LeaseOwner&)> life = {};
  std::function<Ticks()> now = {};
  std::function<void(Seconds)> sleep = {};
};

// Waits for an owner that may be about to end, and for one that cannot be asked whether it has ended. An
// Error names the owner.
Result<Lease> take_lease(LeaseRequest request);

}  // namespace dlrun
