// The order of a pipeline's stages: each pass once, few values kept, and no two stages that wait for each
// other, with messages that wait for the other side as PipelineLinks sends them.
#include "runtime/train/pipeline_schedule.hpp"

#include <algorithm>
#include <set>

#include <doctest/doctest.h>

using namespace dlrun;
using namespace dlrun::runtime;

namespace {

using Pass = PipelineStep::Pass;

template <class Body>
void for_each_size(Body body) {
  for (int stages = 1; stages <= 8; ++stages)
    for (int batches = 1; batches <= 16; ++batches) {
      CAPTURE(stages);
      CAPTURE(batches);
      body(stages, batches);
    }
}

// What a stage does with those beside it, in its order.
struct Message {
  enum class Kind { values, gradients };
  Kind kind;
  int from, to, micro_batch;
  friend bool operator==(const Message&, const Message&) = default;
};

std::vector<Message> messages_of(const StageRank& rank, int batches) {
  using Kind = Message::Kind;
  std::vector<Message> out, waiting;
  int to_come = batches;
  for (const PipelineStep& step : one_forward_one_backward(rank, batches)) {
    const int before = rank.stage - 1, behind = rank.stage + 1;
    if (step.pass == Pass::forward) {
      if (!rank.is_first()) {
        out.push_back({Kind::values, before, rank.stage, step.micro_batch});
        --to_come;
        out.insert(out.end(), waiting.begin(), waiting.end());
        waiting.clear();
      }
      if (!rank.is_last()) out.push_back({Kind::values, rank.stage, behind, step.micro_batch});
    } else {
      if (!rank.is_last()) out.push_back({Kind::gradients, behind, rank.stage, step.micro_batch});
      if (!rank.is_first()) {
        CHECK(waiting.empty());
        (to_come > 0 ? waiting : out).push_back({Kind::gradients, rank.stage, before, step.micro_batch});
      }
    }
  }
  CHECK(waiting.empty());
  return out;
}

}  // namespace

TEST_CASE("each stage has both passes of all micro-batches in ascending order, the forward first") {
  for_each_size([](int stages, int batches) {
    for (int stage = 0; stage < stages; ++stage) {
      int forwards = 0, backwards = 0;
      for (const PipelineStep& step : one_forward_one_backward({stage, stages}, batches)) {
        int& next = step.pass == Pass::forward ? forwards : backwards;
        CHECK(step.micro_batch == next++);
        CHECK(backwards <= forwards);
      }
      CHECK(forwards == batches);
      CHECK(backwards == batches);
    }
  });
}

TEST_CASE("a stage keeps the values of at most as many micro-batches as there are stages from it on") {
  for_each_size([](int stages, int batches) {
    for (int stage = 0; stage < stages; ++stage) {
      std::set<std::size_t> kept;
      int under_way = 0;
      CHECK(places_of({stage, stages}, batches) == std::min(stages - stage, batches));
      const std::vector<PipelineStep> steps = one_forward_one_backward({stage, stages}, batches);
      for (std::size_t i = 0; i < steps.size(); ++i) {
        const PipelineStep& step = steps[i];
        under_way += step.pass == Pass::forward ? 1 : -1;
        CHECK(under_way <= std::min(stages - stage, batches));
        if (!step.place) {  // nothing comes between
          if (step.pass == Pass::forward)
            CHECK(steps[i + 1] == PipelineStep{Pass::backward, step.micro_batch, {}});
          continue;
        }
        CHECK(*step.place < static_cast<std::size_t>(places_of({stage, stages}, batches)));
        if (step.pass == Pass::forward)
          CHECK(kept.insert(*step.place).second);
        else
          CHECK(kept.erase(*step.place) == 1);
      }
    }
  });
}

TEST_CASE("two stages, three micro-batches") {
  using Steps = std::vector<PipelineStep>;
  const std::size_t a = 0, b = 1;
  CHECK(one_forward_one_backward({0, 2}, 3) == Steps{{Pass::forward, 0, a},
                                                     {Pass::forward, 1, b},
                                                     {Pass::backward, 0, a},
                                                     {Pass::forward, 2, a},
                                                     {Pass::backward, 1, b},
                                                     {Pass::backward, 2, a}});
  CHECK(one_forward_one_backward({1, 2}, 2) == Steps{{Pass::forward, 0, {}},
                                                     {Pass::backward, 0, {}},
                                                     {Pass::forward, 1, {}},
                                                     {Pass::backward, 1, {}}});
}

TEST_CASE("no stages wait for each other, whatever their number") {
  for_each_size([](int stages, int batches) {
    std::vector<std::vector<Message>> left;
    for (int stage = 0; stage < stages; ++stage) {
      left.push_back(messages_of({stage, stages}, batches));
      std::reverse(left.back().begin(), left.back().end());
    }
    const auto next = [&](int stage) -> std::vector<Message>& {
      return left[static_cast<std::size_t>(stage)];
    };
    for (bool moved = true; moved;) {
      moved = false;
      for (int stage = 0; stage + 1 < stages; ++stage)
        if (!next(stage).empty() && !next(stage + 1).empty() &&
            next(stage).back() == next(stage + 1).back()) {
          next(stage).pop_back(), next(stage + 1).pop_back();
          moved = true;
        }
    }
    for (const std::vector<Message>& one : left) CHECK(one.empty());
  });
}
