// Name resolution both ways: the names of all nodes, and the name of this node's own address. Frameworks
// find each other by names; a node that cannot resolve them hangs at the rendezvous.
#include <array>
#include <chrono>
#include <memory>

#include <netdb.h>
#include <sys/socket.h>

#include "src/base/host_name.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"
#include "src/health/compare.hpp"

namespace dlrun::health {
namespace {

constexpr double kSlow = 2;  // seconds
constexpr std::size_t kMaxNames = 256;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};
using Addresses = std::unique_ptr<addrinfo, FreeAddresses>;

Addresses resolve(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  return Addresses(::getaddrinfo(name.c_str(), nullptr, &hints, &list) == 0 ? list : nullptr);
}

std::string name_of(const addrinfo& address) {
  std::array<char, NI_MAXHOST> name{};
  const int problem =
      ::getnameinfo(address.ai_addr, address.ai_addrlen, name.data(), name.size(), nullptr, 0, NI_NAMEREQD);
  return problem == 0 ? std::string(name.data()) : std::string();
}

Json measure(const Question& question) {
  const auto began = std::chrono::steady_clock::now();
  const std::string own = host_name();
  const Addresses addresses = resolve(own);
  Json out{{"own", own},
           {"resolves", addresses != nullptr},
           {"reverse", addresses ? name_of(*addresses) : std::string()},
           {"unresolved", Json::array()}};
  for (std::size_t i = 0; i < std::min(question.names.size(), kMaxNames); ++i)
    if (!resolve(question.names[i])) out["unresolved"].push_back(question.names[i]);
  out["seconds"] = Seconds(std::chrono::steady_clock::now() - began).count();
  return out;
}

std::vector<std::string> unresolved(const Sample& sample) {
  return field<std::vector<std::string>>(sample.values, "unresolved", "names")
      .value_or(std::vector<std::string>());
}

// A name that nobody resolves is one that only the launcher knows (an alias of ssh).
std::vector<Found> judge_unresolved(const std::vector<Sample>& samples) {
  std::vector<double> counts;
  for (const Sample& sample : samples) counts.push_back(static_cast<double>(unresolved(sample).size()));
  const double usual = median(counts);
  std::vector<Found> out;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (counts[i] <= usual) continue;
    const std::vector<std::string> names = unresolved(samples[i]);
    out.push_back(
        {samples[i].node, samples.size() < 3 ? State::warning : State::bad,
         fmt::format("it cannot resolve {}{}", names.front(),
                     names.size() == 1 ? "" : fmt::format(" and {} more names", names.size() - 1))});
  }
  return out;
}

std::vector<Found> judge(const std::vector<Sample>& samples) {
  std::vector<Found> out = judge_unresolved(samples);
  for (const Sample& sample : samples) {
    const std::string own = text_of(sample.values, "own"), reverse = text_of(sample.values, "reverse");
    if (sample.values.value("resolves", Json(true)) == false)
      out.push_back(
          {sample.node, State::warning, fmt::format("its own name {} does not resolve there", own)});
    else if (reverse.empty())
      out.push_back({sample.node, State::warning, fmt::format("the address of {} has no name there", own)});
    if (const auto seconds = number_of(sample.values, "seconds"); seconds.value_or(0) > kSlow)
      out.push_back({sample.node, State::warning,
                     fmt::format("resolving names takes {}", format_duration(Seconds(*seconds)))});
  }
  return out;
}

}  // namespace

Check names_check() {
  return {.name = "names", .measure = measure, .judge = judge};
}

}  // namespace dlrun::health
