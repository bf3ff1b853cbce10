#include "src/agent/world_words.hpp"

#include "src/base/json.hpp"

namespace dlrun::agent {
namespace {

Json numbers(const std::vector<Rank>& ranks) {
  Json out = Json::array();
  for (const Rank rank : ranks) out.push_back(rank.get());
  return out;
}

}  // namespace

Json control_line(const protocol::to_agent::Regroup& order) {
  return {{"regroup", order.generation}, {"ranks", numbers(order.ranks)}, {"at_step", order.at_step}};
}

Json control_line(const protocol::to_agent::NewWorld& world) {
  return {{"new_world", world.generation},
          {"ranks", numbers(world.ranks)},
          {"ports", world.ports},
          {"source", world.source},
          {"behind", world.behind}};
}

Result<protocol::from_agent::LeftWorld> read_left_world(Rank rank, const Json& line) {
  constexpr std::string_view where = "control";
  protocol::from_agent::LeftWorld out{.rank = rank, .generation = 0, .done = 0, .port = {}};
  out.at_step = TRY(field<bool>(line, "at_step", where));
  out.job = TRY(field<std::string>(line, "job", where));
  out.generation = TRY(field<int>(line, "left_world", where));
  out.done = TRY(field<std::size_t>(line, "done", where));
  out.port = TRY(field<std::string>(line, "port", where));
  return out;
}

}  // namespace dlrun::agent
