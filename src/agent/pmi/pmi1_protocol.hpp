// Pmi1Protocol: the PMI-1 wire protocol for the ranks of one node, as a value machine: a line comes in,
// replies and events go out. It knows no socket. Whatever a rank sends is answered or ends that rank's
// service; it never crashes. Not offered: spawn and name publishing, which are refused in the protocol's own
// words.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/result.hpp"
#include "src/base/types.hpp"

namespace dlrun::agent {

struct Pmi1World {
  std::string kvs_name;  // unique a job and attempt
  int size = 1;          // of the whole job
  int nodes = 1;
  std::string process_mapping;
  std::vector<Rank> local_ranks;
};

class Pmi1Protocol {
 public:
  struct Events {
    std::function<void(Rank, const std::string& line)> reply;  // one line, newline included
    std::function<void(Rank)> connected;
    std::function<void(Rank)> finalized;
    std::function<void(Rank, int code, const std::string& text)> aborted;
    std::function<void(const std::string& key, std::string blob)> exchange;
    std::function<void(Rank, const std::string& reason)> dropped;  // garbage: serve this rank no longer
  };

  Pmi1Protocol(Pmi1World world, Events events);

  void line(Rank rank, std::string_view text);
  bool waits(Rank rank) const { return in_barrier_.contains(rank); }
  // All nodes' new pairs of the barrier `key`: what every rank of this node waits for.
  void exchanged(const std::string& key, const std::vector<std::string>& blobs);

 private:
  using Fields = std::map<std::string, std::string, std::less<>>;
  using Handler = void (Pmi1Protocol::*)(Rank, const Fields&);
  static const std::map<std::string, Handler, std::less<>>& handlers();

  void request(Rank rank, const Fields& fields);
  void init(Rank rank, const Fields& fields);
  void get_maxes(Rank rank, const Fields& fields);
  void get_appnum(Rank rank, const Fields& fields);
  void get_my_kvsname(Rank rank, const Fields& fields);
  void get_universe_size(Rank rank, const Fields& fields);
  void put(Rank rank, const Fields& fields);
  void get(Rank rank, const Fields& fields);
  void barrier_in(Rank rank, const Fields& fields);
  void finalize(Rank rank, const Fields& fields);
  void abort(Rank rank, const Fields& fields);

  void refuse_name_service(Rank rank, std::string_view command);
  void complete_barrier();
  void store(std::string_view pairs);
  std::string barrier_key() const;

  Pmi1World world_;
  Events events_;
  std::map<std::string, std::string, std::less<>> pairs_;  // visible to get
  std::string new_pairs_;                                  // "key=value\n" put since the last barrier
  std::set<Rank> in_barrier_;
  std::set<Rank> in_spawn_;  // within a multi-line mcmd=spawn
  int barriers_ = 0;
};

}  // namespace dlrun::agent
