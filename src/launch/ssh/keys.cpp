#include "src/launch/ssh/keys.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/core.h>
#include <pwd.h>
#include <unistd.h>

namespace dlrun::launch {
namespace {

constexpr std::array<const char*, 3> kUsualKeys{"id_ed25519", "id_ecdsa", "id_rsa"};

// As libssh has it: not $HOME.
std::string home() {
  passwd entry{}, *found = nullptr;
  std::string space(16384, '\0');
  ::getpwuid_r(::getuid(), &entry, space.data(), space.size(), &found);
  return found == nullptr ? std::string() : found->pw_dir;
}

std::string usual_folder() {
  return home() + "/.ssh/";
}

// libssh tells the first one only.
std::string first_identity(ssh_session session) {
  char* named = nullptr;
  if (::ssh_options_get(session, SSH_OPTIONS_IDENTITY, &named) != SSH_OK || named == nullptr) return {};
  std::string path = named;
  ::ssh_string_free_char(named);
  if (path.starts_with("%d/")) path.replace(0, 3, usual_folder());
  return path;
}

KeyHandle read_key(const std::string& identity, bool& asked) {
  ssh_key key = nullptr;
  const auto ask = [](const char*, char*, size_t, int, int, void* was_asked) {
    *static_cast<bool*>(was_asked) = true;
    return -1;
  };
  ::ssh_pki_import_privkey_file(identity.c_str(), nullptr, ask, &asked, &key);
  return KeyHandle(key);
}

}  // namespace

std::vector<std::string> identities(ssh_session session) {
  std::vector<std::string> out;
  const auto add = [&](const std::string& path) {
    std::error_code ignored;
    if (std::filesystem::is_regular_file(path, ignored) &&
        std::find(out.begin(), out.end(), path) == out.end())
      out.push_back(path);
  };
  add(first_identity(session));
  for (const char* name : kUsualKeys) add(usual_folder() + name);
  return out;
}

bool names_identities(ssh_session session) {
  return !first_identity(session).starts_with(usual_folder());
}

std::vector<KeyHandle> keys_of(const std::string& identity) {
  std::vector<KeyHandle> out;
  bool asked = false;
  if (KeyHandle certified = read_key(identity, asked)) {
    ssh_key certificate = nullptr;
    if (::ssh_pki_import_cert_file((identity + "-cert.pub").c_str(), &certificate) == SSH_OK) {
      const KeyHandle owned(certificate);
      if (::ssh_pki_copy_cert_to_privkey(certificate, certified.get()) == SSH_OK)
        out.push_back(std::move(certified));
    }
  }
  if (KeyHandle plain = read_key(identity, asked)) out.push_back(std::move(plain));
  return out;
}

KeyState state_of(const std::vector<std::string>& identities) {
  KeyState out;
  for (const std::string& identity : identities) {
    bool asked = false;
    if (read_key(identity, asked))
      ++out.usable;
    else if (asked)
      out.locked.push_back(identity);
  }
  return out;
}

std::string host_key_fingerprint(ssh_session session) {
  ssh_key key = nullptr;
  if (::ssh_get_server_publickey(session, &key) != SSH_OK) return "no key";
  const KeyHandle owned(key);
  unsigned char* hash = nullptr;
  std::size_t size = 0;
  if (::ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &size) != SSH_OK) return "no key";
  char* text = ::ssh_get_fingerprint_hash(SSH_PUBLICKEY_HASH_SHA256, hash, size);
  std::string out =
      fmt::format("{} {}", ::ssh_key_type_to_char(::ssh_key_type(key)), text == nullptr ? "?" : text);
  ::ssh_string_free_char(text);
  ::ssh_clean_pubkey_hash(&hash);
  return out;
}

}  // namespace dlrun::launch
