// See compressed_allreduce.hpp.
#include "runtime/comm/allreduce/compressed_allreduce.hpp"

#include <algorithm>

#include "runtime/comm/nccl/communicator.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kPieceFloats = std::size_t{16} << 20;  // of a piece: two buffers of half their bytes
constexpr std::size_t kEven = 8;                             // numbers: sixteen bytes

// A piece, divided into a shard per rank. All are equally long, so that NCCL can gather them; the last ones
// may lie beyond the piece's end, where numbers mean nothing.
struct Shards {
  Shards(std::size_t count, std::size_t ranks)
      : all(count), length(((count + ranks - 1) / ranks + kEven - 1) / kEven * kEven) {}
  std::size_t begin(std::size_t rank) const { return rank * length; }
  std::size_t filled(std::size_t rank) const {
    return std::min(all, begin(rank) + length) - std::min(all, begin(rank));
  }
  std::size_t all, length;
};

class CompressedAllreduce final : public DeviceAllreduce {
 public:
  CompressedAllreduce(std::unique_ptr<NcclCommunicator> nccl, const std::shared_ptr<DeviceCalls>& calls,
                      CommDtype dtype, int rank, int ranks)
      : nccl_(std::move(nccl)),
        calls_(calls),
        dtype_(dtype),
        rank_(static_cast<std::size_t>(rank)),
        ranks_(static_cast<std::size_t>(ranks)),
        packed_(calls, DeviceCalls::Place::device),
        terms_(calls, DeviceCalls::Place::device) {}

  Result<void> sum(float* data, std::size_t count, void* stream) override {
    TRY(nccl_->state());
    for (std::size_t at = 0; at < count; at += kPieceFloats)
      TRY(sum_piece(data + at, std::min(kPieceFloats, count - at), stream));
    return {};
  }
  bool is_exact() const override { return false; }
  Result<void> check() override { return nccl_->check(); }

 private:
  using Dtypes = AllreduceAlgorithm::Dtypes;

  Result<void> sum_piece(float* data, std::size_t count, void* stream) {
    if (choose_by_size({count * sizeof(float), static_cast<int>(ranks_), dtype_}).dtypes == Dtypes::f32_only)
      return nccl_->allreduce(data, count, stream);
    const Shards shards(count, ranks_);
    const std::size_t bytes = bytes_of(dtype_, shards.length);
    auto* const packed = static_cast<std::byte*>(TRY(packed_.at_least(ranks_ * bytes)));
    auto* const terms = static_cast<std::byte*>(TRY(terms_.at_least(ranks_ * bytes)));
    std::byte* const own = packed + rank_ * bytes;
    TRY(calls_->pack(dtype_, packed, data, count, stream));
    TRY(exchange(packed, terms, bytes, stream));
    if (const std::size_t filled = shards.filled(rank_); filled > 0)
      TRY(calls_->pack_sum(dtype_, own,
                           {.own = data + shards.begin(rank_),
                            .others = terms,
                            .stride = shards.length,
                            .own_place = static_cast<int>(rank_),
                            .places = static_cast<int>(ranks_)},
                           filled, stream));
    TRY(nccl_->allgather(own, packed, bytes, stream));
    return calls_->unpack(dtype_, data, packed, count, stream);
  }

  // Every rank's shard to that rank; of mine the terms of all others, by rank. In each step every rank sends
  // one shard and receives one.
  Result<void> exchange(const std::byte* packed, std::byte* terms, std::size_t bytes, void* stream) {
    return nccl_->together([&]() -> Result<void> {
      for (std::size_t step = 1; step < ranks_; ++step) {
        const std::size_t to = (rank_ + step) % ranks_, from = (rank_ + ranks_ - step) % ranks_;
        TRY(nccl_->send(packed + to * bytes, bytes, static_cast<int>(to), stream));
        TRY(nccl_->receive(terms + from * bytes, bytes, static_cast<int>(from), stream));
      }
      return {};
    });
  }

  std::unique_ptr<NcclCommunicator> nccl_;
  std::shared_ptr<DeviceCalls> calls_;
  CommDtype dtype_;
  std::size_t rank_, ranks_;
  DeviceBuffer packed_, terms_;
};

}  // namespace

Result<NamedAllreduce> make_compressed_allreduce(Communicator& world,
                                                 const std::shared_ptr<DeviceCalls>& calls, CommDtype dtype,
                                                 const std::filesystem::path& library) {
  auto nccl = TRY(NcclCommunicator::connect(world, world, library));
  const std::string description = fmt::format("{} as {}", nccl->name(), name_of(dtype));
  return NamedAllreduce{
      std::make_unique<CompressedAllreduce>(std::move(nccl), calls, dtype, world.rank(), world.size()),
      description};
}

}  // namespace dlrun::runtime
