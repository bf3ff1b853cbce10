// See server_placement.hpp.
#include "runtime/train/server_placement.hpp"

#include <algorithm>

#include "runtime/comm/allreduce/partition.hpp"
#include "src/base/json.hpp"

namespace dlrun::runtime {
namespace {

// A part is at most 1/4 of the average load of a server, so that the last parts balance the servers.
constexpr std::size_t parts_per_server = 4;

std::vector<PlacedSlice> cut(const std::vector<GradientSlice>& slices, std::size_t longest) {
  std::vector<PlacedSlice> out;
  for (const GradientSlice& slice : slices) {
    const int parts = static_cast<int>((slice.length + longest - 1) / longest);
    for (int part = 0; part < parts; ++part) {
      const Part share = part_of(slice.length, part, parts);
      if (share.length() > 0) out.push_back({slice.offset + share.begin, share.length(), 0});
    }
  }
  return out;
}

void place_by_size(std::vector<PlacedSlice>& slices, int servers) {
  std::vector<PlacedSlice*> order;
  for (PlacedSlice& slice : slices) order.push_back(&slice);
  std::stable_sort(order.begin(), order.end(), [](const PlacedSlice* left, const PlacedSlice* right) {
    return left->length > right->length;
  });
  std::vector<std::size_t> filled(static_cast<std::size_t>(servers), 0);
  for (PlacedSlice* slice : order) {
    const auto least = std::min_element(filled.begin(), filled.end());
    slice->server = static_cast<int>(least - filled.begin());
    *least += slice->length;
  }
}

double megabytes(std::size_t bytes) {
  return static_cast<double>(bytes) / 1e6;
}

std::size_t largest(const std::vector<ServerLoad>& loads) {
  std::size_t most = 0;
  for (const ServerLoad& load : loads) most = std::max(most, load.bytes);
  return most;
}

double mean(const std::vector<ServerLoad>& loads) {
  double sum = 0;
  for (const ServerLoad& load : loads) sum += static_cast<double>(load.bytes);
  return sum / static_cast<double>(loads.size());
}

}  // namespace

std::string_view name_of(Placement placement) {
  switch (placement) {
    case Placement::round_robin:
      return "round-robin";
    case Placement::split:
      return "split";
    case Placement::greedy:
      break;
  }
  return "greedy";
}

std::vector<PlacedSlice> place(const std::vector<GradientSlice>& slices, Placement placement, int servers) {
  std::size_t total = 0;
  for (const GradientSlice& slice : slices) total += slice.length;
  const std::size_t fair = total / static_cast<std::size_t>(servers) / parts_per_server;
  const bool whole = placement != Placement::split || servers == 1;
  std::vector<PlacedSlice> out =
      cut(slices, whole ? std::max<std::size_t>(total, 1) : std::max(fair, line_floats));
  if (placement == Placement::round_robin)
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i].server = static_cast<int>(i % static_cast<std::size_t>(servers));
  else
    place_by_size(out, servers);
  return out;
}

int rank_of_server(int server, int servers, int ranks) {
  return static_cast<int>(static_cast<std::int64_t>(server) * ranks / servers);
}

std::vector<ServerLoad> loads(const std::vector<PlacedSlice>& slices, int servers, int ranks,
                              CommDtype dtype) {
  std::vector<ServerLoad> out(static_cast<std::size_t>(servers));
  for (int server = 0; server < servers; ++server)
    out[static_cast<std::size_t>(server)].rank = rank_of_server(server, servers, ranks);
  for (const PlacedSlice& slice : slices) {
    ServerLoad& load = out[static_cast<std::size_t>(slice.server)];
    ++load.pieces;
    load.bytes += bytes_of(dtype, slice.length);
  }
  return out;
}

std::vector<std::string> table(const std::vector<ServerLoad>& loads, Placement placement) {
  std::vector<std::string> lines;
  lines.push_back(fmt::format("parameter servers: {}, placement {}; the fullest has {:.2f} times the mean",
                              loads.size(), name_of(placement),
                              static_cast<double>(largest(loads)) / std::max(mean(loads), 1.0)));
  for (std::size_t server = 0; server < loads.size(); ++server)
    lines.push_back(fmt::format("  server {} on rank {}: {} tensors or parts, {:.3f} MB", server,
                                loads[server].rank, loads[server].pieces, megabytes(loads[server].bytes)));
  return lines;
}

Json to_json(const std::vector<ServerLoad>& loads, Placement placement) {
  Json servers = Json::array();
  for (const ServerLoad& load : loads)
    servers.push_back({{"rank", load.rank}, {"pieces", load.pieces}, {"bytes", load.bytes}});
  return Json{{"placement", name_of(placement)}, {"servers", std::move(servers)}};
}

}  // namespace dlrun::runtime
