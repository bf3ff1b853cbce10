#include "src/protocol/tcp_acknowledgement.hpp"

#include <algorithm>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace dlrun {
namespace {

constexpr Seconds kMinLimit{3};  // networks that change their routes are silent for a moment
constexpr int kRepeats = 3;      // a packet that is lost once means nothing

}  // namespace

Seconds acknowledge_limit(Seconds lost_after) {
  return std::max(lost_after / 3, kMinLimit);
}

Seconds unacknowledged_for(int fd) {
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return Seconds(0);
  if (info.tcpi_state != TCP_ESTABLISHED || info.tcpi_unacked == 0 || info.tcpi_retransmits < kRepeats)
    return Seconds(0);
  return Milliseconds(info.tcpi_last_ack_recv);
}

}  // namespace dlrun
