// HangDetector: has the job stopped moving, and which rank holds it up? Pure: it is told what was heard of
// the ranks and when, and asked at each beat; it reads no clock and ends nothing. Three limits, each off
// where it is zero:
//   no output     nothing was printed by any rank for so long;
//   no progress   a rank that reports its steps has not reported a new one for so long, or none ever did;
//   finalize      every rank left is inside MPI_Finalize and nothing moved for so long. One that still works
//                 while the others wait for it there is no hang.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/json_fwd.hpp"
#include "src/base/types.hpp"
#include "src/protocol/messages.hpp"

namespace dlrun::job {

class HangDetector {
 public:
  struct Limits {
    Seconds no_output{0}, no_progress{0}, finalize{0};
  };
  enum class Kind { no_output, no_progress, finalize };
  struct Hang {
    Rank rank;
    Kind kind;
    std::string reason;
    bool node_is_bad = false;  // its kernel holds it up: another attempt is not for this node
  };

  HangDetector(std::size_t ranks, const Limits& limits) : limits_(limits), ranks_(ranks) {}

  /// There are more ranks now.
  void grow(std::size_t ranks) { ranks_.resize(ranks); }
  bool watches() const;
  // How often to beat.
  Seconds interval() const;

  void started(Rank rank, Ticks now);
  void printed(Rank rank, Ticks now);
  void reported(Rank rank, const Json& report, Ticks now);
  void exited(Rank rank, Ticks now);
  // The agents are asked to probe their ranks; each rank's probe comes in, and then the round is over.
  void begin_probing();
  void probed(const protocol::from_agent::RankProbe& probe) { at(probe.rank).probe = probe; }
  void all_probed(Ticks now);

  // One beat. True where a limit has passed and every rank's agent should probe it now. A caller that did
  // not run for a while itself (stopped, held up by a slow terminal) does not count that while.
  bool suspicious(Ticks now);
  // After the probes: who holds it up. Unset where it has moved again meanwhile.
  std::optional<Hang> verdict(Ticks now);

 private:
  struct State {
    bool running = false;
    Ticks started{}, output{}, progress{};
    int prints = 0, steps = 0;  // 0, 1 or more
    std::optional<double> step;
    std::optional<protocol::from_agent::RankProbe> probe;
  };
  State& at(Rank rank) { return ranks_.at(static_cast<std::size_t>(rank.get())); }
  std::optional<Kind> passed(Ticks now) const;
  bool output_is_late(Ticks now) const;
  bool progress_is_late(Ticks now) const;
  bool all_finalize() const;
  std::vector<std::size_t> running() const;
  std::size_t suspect(Kind kind) const;
  std::string reason_of(Kind kind, std::size_t rank, Ticks now) const;
  void skip(Seconds slept);

  Limits limits_;
  std::vector<State> ranks_;
  std::optional<Ticks> finalizing_;  // since when every rank left was seen in there
  Ticks last_beat_{};
};

}  // namespace dlrun::job
