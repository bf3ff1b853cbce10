// this_machine(): the host name, the interfaces' addresses, and the names that /etc/hosts gives to them. It
// asks no name server.
#include <algorithm>
#include <array>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "schedulers/node_identity.hpp"
#include "src/base/file.hpp"
#include "src/base/host_name.hpp"
#include "src/base/strings.hpp"

namespace dlrun {
namespace {

std::vector<std::string> words_before_comment(std::string_view line) {
  std::vector<std::string> out;
  std::string word;
  for (const char c : line.substr(0, line.find('#'))) {
    if (c != ' ' && c != '\t' && c != '\r') {
      word += c;
    } else if (!word.empty()) {
      out.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) out.push_back(std::move(word));
  return out;
}

std::string text_of(const sockaddr& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* bytes = nullptr;
  if (address.sa_family == AF_INET)
    bytes = &reinterpret_cast<const sockaddr_in&>(address).sin_addr;
  else if (address.sa_family == AF_INET6)
    bytes = &reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (bytes == nullptr || ::inet_ntop(address.sa_family, bytes, text.data(), text.size()) == nullptr)
    return {};
  return text.data();
}

std::vector<std::string> interface_addresses() {
  std::vector<std::string> out;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return out;
  for (const ifaddrs* each = first; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr) continue;
    std::string text = text_of(*each->ifa_addr);
    if (!text.empty() && !is_loopback(text)) out.push_back(std::move(text));
  }
  ::freeifaddrs(first);
  return out;
}

// Debian writes "127.0.1.1 n1.cluster n1", others the interface's address: a line that has our host name or
// one of our addresses gives our names. A line of loopback that has not is about localhost.
void add_names_of_hosts_file(MachineNames& machine) {
  const auto content = read_file("/etc/hosts");
  if (!content) return;  // a container may have none
  const std::string own = machine.names.empty() ? std::string() : machine.names.front();
  for (const std::string& line : split(*content, '\n')) {
    const std::vector<std::string> words = words_before_comment(line);
    const auto has = [&](const std::string& word) {
      return word == own ||
             std::find(machine.addresses.begin(), machine.addresses.end(), word) != machine.addresses.end();
    };
    if (words.size() < 2 || std::none_of(words.begin(), words.end(), has)) continue;
    for (auto word = words.begin() + 1; word != words.end(); ++word)
      if (!is_loopback(*word) &&
          std::find(machine.names.begin(), machine.names.end(), *word) == machine.names.end())
        machine.names.push_back(*word);
  }
}

}  // namespace

MachineNames this_machine() {
  MachineNames out;
  if (std::string name = host_name(); !name.empty()) out.names.push_back(std::move(name));
  out.addresses = interface_addresses();
  add_names_of_hosts_file(out);
  return out;
}

}  // namespace dlrun
