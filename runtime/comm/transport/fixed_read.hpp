// FixedRead: one message of a fixed size from a socket that does not block, as far as it has come. What comes
// after it stays in the socket.
#pragma once

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <type_traits>

#include <sys/socket.h>

namespace dlrun::runtime {

using Deadline = std::chrono::steady_clock::time_point;

inline Deadline steady_now() {
  return std::chrono::steady_clock::now();
}

/// For poll(): rounded up, so that the deadline has passed when it returns.
inline int milliseconds_until(Deadline end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - steady_now()).count();
  return left < 0 ? 0 : static_cast<int>(left);
}

enum class ReadState { under_way, whole, ended };

template <class T>
class FixedRead {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  ReadState read(int socket) {
    while (have_ < sizeof(T)) {
      const ssize_t got = ::recv(socket, reinterpret_cast<std::byte*>(&value_) + have_, sizeof(T) - have_, 0);
      if (got > 0)
        have_ += static_cast<std::size_t>(got);
      else if (got == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
        return ReadState::ended;
      else if (errno != EINTR)
        return ReadState::under_way;
    }
    return ReadState::whole;
  }
  const T& value() const { return value_; }

 private:
  T value_{};
  std::size_t have_ = 0;
};

// A message so small that a fresh connection takes it at once.
template <class T>
bool send_whole(int socket, const T& message) {
  return ::send(socket, &message, sizeof message, MSG_NOSIGNAL) == static_cast<ssize_t>(sizeof message);
}

}  // namespace dlrun::runtime
