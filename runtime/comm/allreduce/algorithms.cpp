// See algorithms.hpp.
#include "runtime/comm/allreduce/algorithms.hpp"

#include <algorithm>
#include <array>

#include "src/base/strings.hpp"

namespace dlrun::runtime {

// Each in a file of its name.
AllreduceAlgorithm::Run direct_allreduce, recursive_halving_doubling, ring_allreduce;
AllreduceAlgorithm::Make make_hierarchical_allreduce;

namespace {

// Below this, a message costs more by its start than by its bytes. Two ranks have equally many messages
// either way, and the ring's pieces overlap.
constexpr std::size_t kRingFromBytesPerRank = 32 * 1024;
// Below this, 16 bits are not worth their conversions: latency decides, and such arrays travel as f32.
constexpr std::size_t kCompressFromBytes = 64 * 1024;

bool compresses(const Transfer& transfer) {
  return transfer.dtype != CommDtype::f32 && transfer.bytes >= kCompressFromBytes;
}
bool is_small(const Transfer& transfer) {
  return transfer.bytes < kRingFromBytesPerRank * static_cast<std::size_t>(transfer.ranks);
}
bool always(const Transfer&) {
  return true;
}

using Dtypes = AllreduceAlgorithm::Dtypes;

// In the order in which `auto` asks them.
constexpr std::array kAlgorithms = {
    AllreduceAlgorithm{.name = "direct", .dtypes = Dtypes::all, .suits = compresses, .run = direct_allreduce},
    AllreduceAlgorithm{.name = "recursive-halving-doubling",
                       .alias = "halving",
                       .suits = is_small,
                       .run = recursive_halving_doubling},
    AllreduceAlgorithm{.name = "ring", .suits = always, .run = ring_allreduce},
    AllreduceAlgorithm{.name = "hierarchical", .dtypes = Dtypes::all, .make = make_hierarchical_allreduce},
    AllreduceAlgorithm{.name = "parameter-server", .dtypes = Dtypes::all},
    AllreduceAlgorithm{.name = "mpi"},
};

// The loop places tensors on servers before the ranks are connected, so a variable comes too late for them.
std::vector<std::string> names_of_variable() {
  std::vector<std::string> out = allreduce_names();
  std::erase(out, "parameter-server");
  return out;
}

}  // namespace

std::span<const AllreduceAlgorithm> allreduce_algorithms() {
  return kAlgorithms;
}

const AllreduceAlgorithm* find_allreduce(std::string_view name) {
  const auto found = std::find_if(kAlgorithms.begin(), kAlgorithms.end(), [&](const AllreduceAlgorithm& row) {
    return row.name == name || (!row.alias.empty() && row.alias == name);
  });
  return found == kAlgorithms.end() ? nullptr : &*found;
}

std::vector<std::string> allreduce_names() {
  std::vector<std::string> out{"auto"};
  for (const AllreduceAlgorithm& row : kAlgorithms) out.emplace_back(row.name);
  return out;
}

bool AllreduceChoice::is_of_host() const {
  return algorithm != nullptr && algorithm->make == nullptr && !is("parameter-server");
}

std::string AllreduceChoice::text() const {
  return fmt::format("{} is '{}'", asked_by, is_auto() ? "auto" : algorithm->name);
}

Result<AllreduceChoice> choose_allreduce(const Environment& environment, const AllreduceChoice& of_job) {
  constexpr std::string_view kVariable = "DLRUN_ALLREDUCE";
  const auto asked = environment.find(kVariable);
  if (!asked) return of_job;
  if (*asked == "auto") return AllreduceChoice{.algorithm = nullptr, .asked_by = kVariable};
  const AllreduceAlgorithm* const found = find_allreduce(*asked);
  if (found != nullptr && found->name != "parameter-server")
    return AllreduceChoice{.algorithm = found, .asked_by = kVariable};
  return fail(Error{.kind = ErrorKind::usage,
                    .what = fmt::format("{} is '{}'", kVariable, *asked),
                    .hint = "valid values: " + join(names_of_variable(), ", ")});
}

Result<AllreduceChoice> choose_host_allreduce(const Environment& environment, const AllreduceChoice& of_job) {
  const AllreduceChoice asked = TRY(choose_allreduce(environment, of_job));
  return asked.is_of_host() || asked.is("hierarchical") ? asked : AllreduceChoice{};
}

const AllreduceAlgorithm& choose_by_size(const Transfer& transfer) {
  return *std::find_if(kAlgorithms.begin(), kAlgorithms.end(), [&](const AllreduceAlgorithm& row) {
    return row.suits != nullptr && row.suits(transfer);
  });
}

Result<void> allreduce_by_size(Transport& link, std::span<float> data, CommDtype dtype, Scratch& scratch) {
  if (link.size() == 1) return {};
  return choose_by_size({data.size_bytes(), link.size(), dtype}).run(link, data, dtype, scratch);
}

}  // namespace dlrun::runtime
