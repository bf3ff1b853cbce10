#include "src/base/lease.hpp"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "src/base/file.hpp"
#include "src/base/thread_without_signals.hpp"
#include "src/base/units.hpp"

namespace dlrun {
namespace {

constexpr Seconds kLookInterval{0.05};

}  // namespace

struct Lease::Renewal {
  Renewal(LeaseFolder where, int which, LeaseOwner who, std::string of, UniqueFd open, Seconds interval)
      : folder(std::move(where)),
        number(which),
        owner(std::move(who)),
        what(std::move(of)),
        fd(std::move(open)) {
    thread = thread_without_signals([this, interval] { run(interval); });
  }
  ~Renewal() {
    {
      const std::lock_guard lock(mutex);
      ended = true;
    }
    wake.notify_all();
    thread.join();
    if (auto mine = check()) mine = folder.release(number);  // else it is another's
  }
  // In place: a file that was taken out of the folder is not brought back by it.
  void run(Seconds interval) {
    std::unique_lock lock(mutex);
    for (std::uint64_t count = 1; !wake.wait_for(lock, interval, [this] { return ended; }); ++count) {
      lock.unlock();
      const std::string text = lease_text(owner, count);
      // Until it has reached the server, other hosts do not see it.
      if (::pwrite(fd.get(), text.data(), text.size(), 0) > 0) ::fdatasync(fd.get());
      lock.lock();
    }
  }
  // Somebody who clears the folder away takes the lease with it: where nobody else has one, it is made again.
  Result<void> check() {
    TRY(folder.create());
    const LeaseFile newest = TRY(folder.newest());
    if (newest.number == number || (newest.number == 0 && restore())) return {};
    return fail(ErrorKind::lost, "{} was taken over by {}", what,
                newest.number == 0 ? "another run" : text_of(newest.owner));
  }
  bool restore() {
    auto made = folder.make(number, owner);
    if (!made || !*made) return false;
    const std::lock_guard lock(mutex);
    return ::dup3((*made)->get(), fd.get(), O_CLOEXEC) >= 0;
  }

  LeaseFolder folder;
  int number;
  LeaseOwner owner;
  std::string what;
  UniqueFd fd;
  std::mutex mutex;
  std::condition_variable wake;
  bool ended = false;
  std::thread thread;
};

Lease::Lease(std::unique_ptr<Renewal> renewal) : renewal_(std::move(renewal)) {}
Lease::Lease(Lease&&) noexcept = default;
Lease& Lease::operator=(Lease&&) noexcept = default;
Lease::~Lease() = default;

int Lease::number() const {
  return renewal_->number;
}

Result<void> Lease::check() const {
  return renewal_->check();
}

class LeaseTaker {
 public:
  explicit LeaseTaker(LeaseRequest request)
      : request_(std::move(request)), folder_(request_.folder), watch_(request_.times) {
    if (!request_.now) request_.now = [] { return std::chrono::steady_clock::now(); };
    if (!request_.sleep) request_.sleep = [](Seconds time) { std::this_thread::sleep_for(time); };
    if (!request_.life)
      request_.life = [folder = folder_.path()](const LeaseOwner& owner) {
        return life_of(owner.process, folder);
      };
  }

  Result<Lease> take() {
    TRY(folder_.create());
    began_ = request_.now();
    for (;;) {
      const auto newest = folder_.newest();
      // Between the list and the read it may have been removed as an old one; then there is a newer one.
      if (!newest && ++failed_reads_ > 3) return tl::unexpected(newest.error());
      if (newest) {
        const LeaseState state = watch_.observe(*newest, request_.life(newest->owner), request_.now());
        if (state == LeaseState::free) {
          if (auto mine = TRY(claim(newest->number + 1))) return std::move(*mine);
          continue;
        }
        TRY(wait_for(*newest, state));
      }
      request_.sleep(kLookInterval);
    }
  }

 private:
  // Somebody else may have made this number, or a later one from an older state of the folder.
  Result<std::optional<Lease>> claim(int number) {
    auto fd = TRY(folder_.make(number, request_.owner));
    if (!fd || TRY(folder_.newest_number()) != number) return std::optional<Lease>();
    folder_.remove_old(number);
    return std::optional<Lease>(Lease(std::make_unique<Lease::Renewal>(
        folder_, number, request_.owner, request_.what, std::move(*fd), request_.times.renewal)));
  }

  Result<void> wait_for(const LeaseFile& newest, LeaseState state) {
    const Ticks now = request_.now();
    if (state == LeaseState::in_use && now - began_ >= request_.times.wait) return refuse(newest.owner, now);
    if (!std::exchange(told_, true) && request_.waiting)
      request_.waiting(text_of(newest.owner),
                       state == LeaseState::in_use ? request_.times.wait : request_.times.silence);
    return {};
  }

  Result<void> refuse(const LeaseOwner& owner, Ticks now) const {
    const auto renewed = watch_.since_renewal(now);
    return fail(
        Error{.kind = request_.in_use,
              .what = fmt::format("{} is in use by {}{}", request_.what, text_of(owner),
                                  renewed ? fmt::format(" (renewed {} ago)", format_duration(*renewed)) : ""),
              .where = {},
              .hint = request_.hint,
              .also = {}});
  }

  LeaseRequest request_;
  LeaseFolder folder_;
  LeaseWatch watch_;
  Ticks began_{};
  int failed_reads_ = 0;
  bool told_ = false;
};

Result<Lease> take_lease(LeaseRequest request) {
  return LeaseTaker(std::move(request)).take();
}

}  // namespace dlrun
