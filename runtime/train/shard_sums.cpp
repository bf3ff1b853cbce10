// See shard_sums.hpp.
#include "runtime/train/shard_sums.hpp"

#include "runtime/train/number_sums.hpp"

namespace dlrun::runtime {

ShardSums::ShardSums(const ShardBatches& of, Engine& engine, Communicator& comm)
    : of_(of),
      engine_(engine),
      comm_(comm),
      range_(shards_of(of.all(), comm.rank(), comm.size())),
      own_(ShardTree(of.all()).reduce(range_)),
      plan_(tree_plan(of.all(), comm.size())) {}

Result<void> check_shards(int shards, int ranks) {
  if (shards >= ranks) return {};
  return fail(Error{.kind = ErrorKind::input,
                    .what = fmt::format("the job has {} ranks, but the training has {} shard{}", ranks,
                                        shards, shards == 1 ? "" : "s"),
                    .hint = fmt::format("start at most {} rank{}: a shard is not divided", shards,
                                        shards == 1 ? "" : "s")});
}

Result<std::unique_ptr<ShardSums>> ShardSums::make(const ShardBatches& of, Engine& engine,
                                                   Communicator& comm) {
  TRY(check_shards(of.shards, comm.size()));
  std::unique_ptr<ShardSums> out(new ShardSums(of, engine, comm));
  TRY(out->make_buffers());
  return out;
}

// The newest of what is there lies in the arena.
Result<void> ShardSums::make_buffers() {
  const std::size_t bytes = summed_part().size_bytes();
  while (kept_.size() + 1 < own_.depth) kept_.push_back(TRY(HugeBuffer::make(bytes)));
  return {};
}

// Of the arena: its end, or all of it.
std::span<float> ShardSums::summed_part() const {
  return engine_.reducing() == nullptr ? engine_.gradients() : engine_.spare_slots();
}

void ShardSums::begin() {
  done_ = depth_ = 0;
}

// Adds to the arena's numbers of a shard what is to be added to them; how many sums are kept then.
std::size_t ShardSums::add_kept(std::size_t shard, std::span<float> numbers) {
  const auto offset = numbers.data() - summed_part().data();
  std::size_t depth = depth_;
  for (int left = own_.additions[shard]; left > 0; --left)
    add_numbers(numbers.data(), kept(--depth) + offset, numbers.size());
  return depth;
}

void ShardSums::keep() {
  const std::span<float> all = summed_part();
  depth_ = add_kept(done_++, all);
  copy_numbers(kept(depth_++), all.data(), all.size());
}

Result<void> ShardSums::start(std::span<float> numbers) {
  const auto offset = numbers.data() - summed_part().data();
  const std::size_t depth = add_kept(own_.additions.size() - 1, numbers);
  TreeTerms terms{.plan = &plan_, .terms = {}, .sum = numbers};
  for (std::size_t number = 0; number < depth; ++number) terms.terms.push_back(kept(number) + offset);
  terms.terms.push_back(terms.sum.data());
  return comm_.tree_allreduce_start(terms);
}

}  // namespace dlrun::runtime
