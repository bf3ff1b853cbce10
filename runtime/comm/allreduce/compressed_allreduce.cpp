// See compressed_allreduce.hpp.
#include "runtime/comm/allreduce/compressed_allreduce.hpp"

#include <algorithm>
#include <numeric>

#include "runtime/comm/nccl/ranks.hpp"

namespace dlrun::runtime {
namespace {

constexpr std::size_t kPieceFloats = std::size_t{16} << 20;  // of a piece: two buffers of half their bytes
constexpr std::size_t kEven = 8;                             // numbers: sixteen bytes

// A piece, divided into a share a rank. All are equally long, so that NCCL can gather them; the last ones may
// lie beyond the piece's end, where numbers mean nothing.
struct Shares {
  Shares(std::size_t count, std::size_t ranks)
      : all(count), length(((count + ranks - 1) / ranks + kEven - 1) / kEven * kEven) {}
  std::size_t begin(std::size_t rank) const { return rank * length; }
  std::size_t filled(std::size_t rank) const {
    return std::min(all, begin(rank) + length) - std::min(all, begin(rank));
  }
  std::size_t all, length;
};

class CompressedAllreduce final : public DeviceAllreduce {
 public:
  CompressedAllreduce(std::unique_ptr<NcclRanks> nccl, const std::shared_ptr<DeviceCalls>& calls, Wire wire,
                      int rank, int ranks)
      : nccl_(std::move(nccl)),
        calls_(calls),
        wire_(wire),
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
  Result<void> check() override { return nccl_->check(); }

 private:
  Result<void> sum_piece(float* data, std::size_t count, void* stream) {
    if (choose_sum(count * sizeof(float), static_cast<int>(ranks_), wire_) != AllreduceAlgorithm::exchange)
      return nccl_->nccl().sum_floats(data, count, nccl_->comm(), stream);
    const Shares shares(count, ranks_);
    const std::size_t bytes = bytes_of(wire_, shares.length);
    auto* const packed = static_cast<std::byte*>(TRY(packed_.at_least(ranks_ * bytes)));
    auto* const terms = static_cast<std::byte*>(TRY(terms_.at_least(ranks_ * bytes)));
    std::byte* const own = packed + rank_ * bytes;
    TRY(calls_->pack(wire_, packed, data, count, stream));
    TRY(exchange(packed, terms, bytes, stream));
    if (const std::size_t filled = shares.filled(rank_); filled > 0)
      TRY(calls_->pack_sum(wire_, own,
                           {.own = data + shares.begin(rank_),
                            .others = terms,
                            .stride = shares.length,
                            .own_place = static_cast<int>(rank_),
                            .places = static_cast<int>(ranks_)},
                           filled, stream));
    TRY(nccl_->nccl().gather(own, packed, bytes, nccl_->comm(), stream));
    return calls_->unpack(wire_, data, packed, count, stream);
  }

  // Every rank's share to that rank; of mine the terms of all others, by rank. In each step every rank sends
  // one share and receives one.
  Result<void> exchange(const std::byte* packed, std::byte* terms, std::size_t bytes, void* stream) {
    const NcclLibrary& nccl = nccl_->nccl();
    return nccl.together([&]() -> Result<void> {
      for (std::size_t step = 1; step < ranks_; ++step) {
        const std::size_t to = (rank_ + step) % ranks_, from = (rank_ + ranks_ - step) % ranks_;
        TRY(nccl.send(packed + to * bytes, bytes, static_cast<int>(to), nccl_->comm(), stream));
        TRY(nccl.receive(terms + from * bytes, bytes, static_cast<int>(from), nccl_->comm(), stream));
      }
      return {};
    });
  }

  std::unique_ptr<NcclRanks> nccl_;
  std::shared_ptr<DeviceCalls> calls_;
  Wire wire_;
  std::size_t rank_, ranks_;
  DeviceBuffer packed_, terms_;
};

}  // namespace

Result<NamedAllreduce> make_packed_sum(Communicator& world, const std::shared_ptr<DeviceCalls>& calls,
                                       Wire wire, const std::filesystem::path& library) {
  std::vector<int> all(static_cast<std::size_t>(world.size()));
  std::iota(all.begin(), all.end(), 0);
  auto nccl = TRY(NcclRanks::connect(world, all, library));
  const std::string description = fmt::format("{} as {}", nccl->name(), name_of(wire));
  return NamedAllreduce{
      std::make_unique<CompressedAllreduce>(std::move(nccl), calls, wire, world.rank(), world.size()),
      description};
}

}  // namespace dlrun::runtime
