// Communication in fewer steps: what the ranks have in common at the end of an interval, how often they
// communicate, and that an interrupted run averages after the same steps. That the weights are PyTorch's is
// seen end to end (tests/e2e/sync_test.py).
#include "runtime/train/local_steps.hpp"

#include <doctest/doctest.h>

#include "runtime/checkpoint/catalog.hpp"
#include "tests/unit/train/fake_engine.hpp"
#include "tests/unit/train/thread_ranks.hpp"
#include "tests/unit/train/trainer_job.hpp"

using namespace dlrun;
using namespace dlrun::runtime;
using namespace dlrun::test;

namespace {

Job job_of(int world, const std::optional<SyncSpec>& sync) {
  Job out;
  out.world = world;
  out.spec.sync = sync;
  return out;
}

// A device that sums by itself: here over the ranks' threads.
class SummingDevice final : public FakeEngine {
 public:
  explicit SummingDevice(Communicator& comm) : FakeEngine(small_shape, 8), comm_(comm) {}
  DeviceReducing* reducing() override { return this; }

  bool sums_alone = false, rounds = false;
  int averages = 0;

 private:
  void set_sums(Sums sums) override { sums_alone = sums == Sums::alone; }
  Result<double> seconds_of_sums() override { return 0.0; }
  bool averages_state() const override { return !rounds; }
  Result<void> average_state(int ranks) override {
    ++averages;
    for (std::size_t i = 0; i < tensors().size(); ++i) {
      std::vector<float> values(tensors()[i].elements());
      TRY(read_tensor(i, values));
      TRY(comm_.allreduce(values));
      for (float& value : values) value /= static_cast<float>(ranks);
      TRY(write_tensor(i, values));
    }
    return {};
  }

  Communicator& comm_;
};

}  // namespace

TEST_CASE("ranks that average after some steps end with the same bits, which are others than after each") {
  Job plain = job_of(3, std::nullopt), local = job_of(3, SyncSpec{.every = 4});
  const auto expected = plain.run(), out = local.run();
  CHECK(*out[0].ending == Ending::finished);
  CHECK(out[0].position == expected[0].position);
  for (const auto& rank : out) {
    CHECK(same_bits(rank.weights, out[0].weights));
    CHECK(same_bits(rank.momentum, out[0].momentum));
    CHECK(same_bits(rank.statistics, out[0].statistics));
  }
  CHECK_FALSE(same_bits(out[0].weights, expected[0].weights));
  for (std::size_t i = 0; i < 160; ++i)
    CHECK(out[0].weights[i] == doctest::Approx(expected[0].weights[i]).epsilon(0.5));
}

TEST_CASE("they communicate once in an interval, and sum all samples") {
  Job plain = job_of(2, std::nullopt), local = job_of(2, SyncSpec{.every = 4});
  const auto before = plain.run(), after = local.run();
  // 13 steps in each of three epochs: a bucket and the last one with the totals each; averages after steps
  // 4, 8, 12 and 13, then 16, 20, 24 and 26, then 28, 32, 36 and 39. Once, rank 0 tells its statistics.
  CHECK(before[0].collectives - after[0].collectives == 3 * 13 * 2 - 12 - 1);
  CHECK(after[0].samples == 3 * 203);
}

TEST_CASE("one rank alone, and steps before `from`, are as without it") {
  Job alone = job_of(1, SyncSpec{.every = 4}), plain_alone = job_of(1, std::nullopt);
  CHECK(same_bits(alone.run()[0].weights, plain_alone.run()[0].weights));
  const auto plain = job_of(2, std::nullopt).run();
  Job never = job_of(2, SyncSpec{.every = 4, .from = {Interval::Unit::epochs, 3}});
  CHECK(same_bits(never.run()[1].weights, plain[1].weights));
  Job late = job_of(2, SyncSpec{.every = 4, .from = {Interval::Unit::epochs, 2}});
  const auto out = late.run();
  CHECK_FALSE(same_bits(out[0].weights, plain[0].weights));
  CHECK(plain[0].collectives - out[0].collectives == 13 * 2 - 4 - 1);
}

TEST_CASE("a rank averages batches that it has accumulated") {
  Job whole = job_of(2, SyncSpec{.every = 3}), parts = job_of(2, SyncSpec{.every = 3});
  whole.spec.batch = 12;
  parts.spec.batch = 4;
  parts.spec.accumulate = 3;
  for (Job* job : {&whole, &parts}) job->data = *make_synthetic(small_shape, 192, 1);  // whole steps alone
  const auto expected = whole.run(), out = parts.run();
  CHECK(out[0].position == expected[0].position);
  for (std::size_t i = 0; i < 160; ++i)
    CHECK(out[0].weights[i] == doctest::Approx(expected[0].weights[i]).epsilon(1e-4));
}

TEST_CASE("a run that is asked to stop within an interval stops at its end, and goes on with the same bits") {
  const Folder folder;
  Job whole = job_of(2, SyncSpec{.every = 5}), parts = job_of(2, SyncSpec{.every = 5});
  const auto expected = whole.run();
  parts.spec.checkpoint.folder = folder.path / "ckpt";
  for (const auto& [asked, stops] : {std::pair{3U, 5U}, {11U, 13U}, {16U, 20U}}) {
    parts.stop_at = asked;
    parts.who_wants_to_stop = 1;
    for (const auto& rank : parts.run()) CHECK(rank.position.step == stops);
  }
  parts.stop_at.reset();
  const auto out = parts.run();
  CHECK(same_bits(out[1].weights, expected[0].weights));
  CHECK(same_bits(out[1].momentum, expected[0].momentum));
}

// A checkpoint has the running statistics of rank 0 alone, and averages are of those of all ranks.
TEST_CASE("a run that is interrupted before its first local step goes on with the same statistics, too") {
  const Folder folder;
  const SyncSpec late{.every = 4, .from = {Interval::Unit::steps, 5}};
  Job whole = job_of(3, late), parts = job_of(3, late);
  whole.spec.epochs = parts.spec.epochs = 1;
  parts.spec.checkpoint.folder = folder.path / "ckpt";
  parts.stop_at = 3;
  for (const auto& rank : parts.run()) CHECK(rank.position.step == 3);
  parts.stop_at.reset();
  CHECK(same_bits(parts.run()[0].statistics, whole.run()[0].statistics));
}

TEST_CASE(
    "a device that sums by itself sums no gradients in local steps, and averages where it rounds nothing") {
  for (const bool rounds : {false, true})
    on_ranks(2, [&](Communicator& comm) {
      SummingDevice device(comm);
      device.rounds = rounds;
      LocalSteps local({.every = 2}, 203, device, comm);
      REQUIRE(local.begin().has_value());
      CHECK(device.sums_alone);
      std::vector<float> weights(160, static_cast<float>(comm.rank()));
      REQUIRE(device.write_tensor(0, weights).has_value());
      local.add({.totals = {.rows = 3}, .requests = {}});
      const auto all = local.average();
      REQUIRE(all.has_value());
      CHECK(all->totals.rows == 6);
      CHECK_FALSE(local.differs());
      REQUIRE(device.read_tensor(0, weights).has_value());
      CHECK(same_bits(weights, std::vector<float>(160, 0.5F)));
      CHECK(device.averages == (rounds ? 0 : 1));
    });
}

TEST_CASE("checkpoints wait for the end of an interval") {
  const Folder folder;
  Job job = job_of(2, SyncSpec{.every = 4});
  job.spec.checkpoint = {
      .folder = folder.path / "ckpt", .every = Interval{Interval::Unit::steps, 3}, .keep = 100};
  CHECK(*job.run()[0].ending == Ending::finished);
  const auto found = list_checkpoints(*real_file_system(), job.spec.checkpoint.folder);
  REQUIRE(found.has_value());
  CHECK(found->size() > 1);
  for (const auto& one : *found) CHECK_MESSAGE((one.step % 4 == 0 || one.step % 13 == 0), one.step);
}

TEST_CASE("a rank whose weights became no numbers says so in its own step") {
  Job job = job_of(2, SyncSpec{.every = 13});
  job.poison_after = 3;
  const auto out = job.run();
  REQUIRE_FALSE(out[0].ending.has_value());
  CHECK(out[0].ending.error().text().find("training diverged") != std::string::npos);
  CHECK(out[0].position.step == 3);
}
