#include "src/record/outcome.hpp"

#include <fmt/core.h>

namespace dlrun::job {

std::string FirstFailure::text() const {
  const std::string said = cause.empty() ? reason : reason + ": " + cause;
  if (!rank) return fmt::format("{}: {}", host, said);
  return fmt::format("{} {} (rank {}) on {}: {}", role, task_index, *rank, host, said);
}

Error hidden(const plan::SecretValues& secrets, Error error) {
  error.what = secrets.hidden(std::move(error.what));
  error.also = secrets.hidden(std::move(error.also));
  return error;
}

void hide(const plan::SecretValues& secrets, Outcome& outcome) {
  if (outcome.error) outcome.error = secrets.hidden(*std::move(outcome.error));
  if (outcome.unreachable) outcome.unreachable = hidden(secrets, *std::move(outcome.unreachable));
  if (outcome.first_failure) {
    FirstFailure& failed = *outcome.first_failure;
    failed.last_lines = secrets.hidden(std::move(failed.last_lines));
    for (std::string* text : {&failed.reason, &failed.cause, &failed.failed_after_cause})
      *text = secrets.hidden(std::move(*text));
  }
  for (Json* said : {&outcome.result, &outcome.last_progress, &outcome.walltime.saved})
    *said = secrets.hidden(std::move(*said));
}

Json to_json(const std::vector<Loss>& losses) {
  Json out = Json::array();
  for (const Loss& loss : losses) {
    Json ranks = Json::array();
    for (const Rank rank : loss.ranks) ranks.push_back(rank.get());
    out.push_back({{"ranks", std::move(ranks)},
                   {"host", loss.host},
                   {"reason", loss.reason},
                   {"on_request", loss.on_request},
                   {"went_on_after", loss.went_on_after ? Json(loss.went_on_after->count()) : Json(nullptr)},
                   {"first_rank_left", loss.leads ? Json(loss.leads->get()) : Json(nullptr)}});
  }
  return out;
}

Json to_json(const std::vector<Join>& joins) {
  Json out = Json::array();
  for (const Join& join : joins) {
    Json ranks = Json::array();
    for (const Rank rank : join.ranks) ranks.push_back(rank.get());
    out.push_back(
        {{"ranks", std::move(ranks)},
         {"host", join.host},
         {"seconds", join.took.count()},
         {"went_on_after", join.went_on_after ? Json(join.went_on_after->count()) : Json(nullptr)}});
  }
  return out;
}

}  // namespace dlrun::job
