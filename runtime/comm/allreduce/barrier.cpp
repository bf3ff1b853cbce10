// A barrier of messages (dissemination): after round k each rank has heard, through others, of 2^k ranks.
// Unlike an MPI's own it leaves the processor alone while it waits, as waiting on a Transport does.
#include "runtime/comm/allreduce/allreduce.hpp"

namespace dlrun::runtime {

Result<void> meet(Transport& link) {
  for (int distance = 1; distance < link.size(); distance *= 2) {
    const int ahead = (link.rank() + distance) % link.size();
    const int behind = (link.rank() + link.size() - distance) % link.size();
    const Transport::Ticket heard = TRY(link.receive_start({}, behind));
    TRY(link.wait(TRY(link.send_start({}, ahead))));
    TRY(link.wait(heard));
  }
  return {};
}

}  // namespace dlrun::runtime
