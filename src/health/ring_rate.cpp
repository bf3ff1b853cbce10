#include "src/health/ring_rate.hpp"

#include <algorithm>
#include <cerrno>
#include <span>
#include <vector>

#include <poll.h>
#include <sys/socket.h>

#include "src/base/file.hpp"

namespace dlrun::health {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Bytes = std::span<std::byte>;

constexpr double kHardEnd = 4;  // times the time that it is to take

// Both directions of one node. What fails ends it: `problem` says why.
class Links {
 public:
  Links(int from, int to) : from_(from), to_(to) {}

  // Sends one chunk and receives another one at the same time.
  bool exchange(Bytes out, Bytes in, SteadyClock::time_point end) {
    while (problem.empty() && (!out.empty() || !in.empty())) {
      if (!wait(!out.empty(), !in.empty(), end)) return problem = "no answer", false;
      if (!out.empty()) out = out.subspan(moved(::send(to_, out.data(), out.size(), kFlags)));
      if (in.empty()) continue;
      const std::size_t got = moved(::recv(from_, in.data(), in.size(), MSG_DONTWAIT));
      received += static_cast<std::int64_t>(got);
      in = in.subspan(got);
    }
    return problem.empty();
  }

  std::string problem;
  std::int64_t received = 0;

 private:
  static constexpr int kFlags = MSG_NOSIGNAL | MSG_DONTWAIT;

  bool wait(bool out, bool in, SteadyClock::time_point end) const {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - SteadyClock::now());
    pollfd polled[] = {{out ? to_ : -1, POLLOUT, 0}, {in ? from_ : -1, POLLIN, 0}};
    const int ready = left.count() > 0 ? ::poll(polled, 2, static_cast<int>(left.count())) : 0;
    return ready > 0 || (ready < 0 && errno == EINTR);
  }
  std::size_t moved(ssize_t bytes) {
    if (bytes > 0) return static_cast<std::size_t>(bytes);
    if (bytes == 0) problem = "the previous node closed the connection";
    if (bytes < 0 && errno != EAGAIN && errno != EINTR) problem = system_reason(errno);
    return 0;
  }

  int from_, to_;
};

class Ring {
 public:
  Ring(Links& links, const RingPlace& ring, std::size_t floats)
      : links_(links), ring_(ring), floats_(floats), sum_(floats * size()), incoming_(floats) {}

  // The sum over all nodes of what each has put into `sum`: reduce-scatter, then allgather.
  bool allreduce(SteadyClock::time_point end) {
    for (int step = 0; step + 1 < ring_.size; ++step) {
      const std::span<float> mine = chunk(ring_.place - step - 1);
      if (!links_.exchange(bytes(chunk(ring_.place - step)), bytes(incoming_), end)) return false;
      add(mine.data(), incoming_.data(), mine.size());
    }
    for (int step = 0; step + 1 < ring_.size; ++step)
      if (!links_.exchange(bytes(chunk(ring_.place + 1 - step)), bytes(chunk(ring_.place - step)), end))
        return false;
    return true;
  }

  // All of the first numbers are 0 as long as the first node has time left: so all end after the same one.
  void fill(float first) {
    std::fill(sum_.begin(), sum_.end(), 1.0F);
    sum_.front() = first;
  }
  bool says_end() const { return sum_.front() > 0; }
  // Everywhere the last number of a chunk: a message that came twice or not at all would show there.
  bool is_right() const {
    for (std::size_t end = floats_; floats_ > 1 && end <= sum_.size(); end += floats_)
      if (sum_[end - 1] != static_cast<float>(ring_.size)) return false;
    return true;
  }

 private:
  std::size_t size() const { return static_cast<std::size_t>(ring_.size); }
  std::span<float> chunk(int index) {
    const auto place = static_cast<std::size_t>((index % ring_.size + ring_.size) % ring_.size);
    return std::span(sum_).subspan(place * floats_, floats_);
  }
  static void add(float* to, const float* more, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] += more[i];
  }
  static Bytes bytes(std::span<float> numbers) { return std::as_writable_bytes(numbers); }

  Links& links_;
  const RingPlace& ring_;
  std::size_t floats_;
  std::vector<float> sum_, incoming_;
};

// Nobody's time runs before all are there.
bool all_are_there(Links& links, const RingPlace& place, SteadyClock::time_point end) {
  Ring ring(links, place, 1);
  return ring.allreduce(end);
}

SteadyClock::duration ticks(Seconds time) {
  return std::chrono::duration_cast<SteadyClock::duration>(time);
}

}  // namespace

RingRate ring_rate(int from_previous, int to_next, const RingPlace& place) {
  Links links(from_previous, to_next);
  if (!all_are_there(links, place, SteadyClock::now() + ticks(place.begins)))
    return {.problem = links.problem};
  Ring ring(links, place, std::max<std::size_t>(1, place.chunk / sizeof(float)));
  links.received = 0;
  const auto began = SteadyClock::now(), hard_end = began + ticks(kHardEnd * place.time);
  const auto is_over = [&] { return place.place == 0 && SteadyClock::now() >= began + ticks(place.time); };
  RingRate out;
  do {
    ring.fill(is_over() ? 1.0F : 0.0F);
    if (!ring.allreduce(hard_end)) break;  // too slow for one more, or its neighbour says that it is
    if (!ring.is_right()) out.problem = "the sum of an allreduce is wrong";
  } while (out.problem.empty() && !ring.says_end());
  out.bytes = links.received;
  out.took = SteadyClock::now() - began;
  return out;
}

}  // namespace dlrun::health
