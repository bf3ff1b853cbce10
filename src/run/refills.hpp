// Refills: places of an elastic run whose ranks were lost while their node lives, and when others are to be
// started in them. Pure: the head decides whether they can be. A host waits 5 s, twice as long after each
// further time in a row, at most a minute; a row ends with ranks that have lived for ten minutes. Whoever was
// lost after as many starts in a row as the job allows is not started again.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/clock.hpp"
#include "src/base/types.hpp"

namespace dlrun::job {

class Refills {
 public:
  static constexpr Seconds kFirstWait{5}, kMaxWait{60}, kLongLife{600};

  /// `starts`: how many in a row; 0: nobody is started again.
  explicit Refills(int starts) : starts_(starts) {}

  enum class Chance { again, none };
  /// A rank of this living host is lost. none: and was the last time, which is said once.
  Chance lost(const std::string& host, Rank rank, Ticks now);
  /// Hosts whose time has come.
  std::vector<std::string> due(Ticks now) const;
  /// How many ranks it lacks.
  std::size_t places(const std::string& host) const { return hosts_.at(host).free.size(); }
  /// Ranks are being started there: in place of these.
  std::vector<Rank> begin(const std::string& host);
  /// They are members.
  void joined(const std::string& host, Ticks now);
  /// They came to nothing.
  Chance failed(const std::string& host, Ticks now);
  /// The host is lost, or is to have no ranks.
  void forget(const std::string& host) { hosts_.erase(host); }
  /// Whether there is a host whose time will come.
  bool waits() const;

 private:
  struct Host {
    std::vector<Rank> free;            // lost, and nobody is in their places
    std::vector<Rank> begun;           // somebody is about to be
    std::optional<Ticks> filled = {};  // when ranks joined there last
    int row = 0;                       // of losses
    Ticks next{};
  };
  bool is_over(const Host& host) const { return host.row > starts_; }
  Chance count(Host& host, Ticks now) const;

  int starts_;
  std::map<std::string, Host> hosts_;
};

}  // namespace dlrun::job
