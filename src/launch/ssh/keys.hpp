// The keys that a login by ssh can use, and what is the matter with those that it cannot. Passphrases are
// never asked for: a key that needs one counts as locked.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <libssh/libssh.h>

namespace dlrun::launch {

struct KeyFree {
  void operator()(ssh_key key) const { ::ssh_key_free(key); }
};
using KeyHandle = std::unique_ptr<ssh_key_struct, KeyFree>;

/// The key files of ssh_config and of custom that exist.
std::vector<std::string> identities(ssh_session session);
/// Whether ssh_config sets key files.
bool names_identities(ssh_session session);
/// The private key; before it, the key with its certificate if FILE-cert.pub exists.
std::vector<KeyHandle> keys_of(const std::string& identity);

struct KeyState {
  int usable = 0;
  std::vector<std::string> locked;  // need a passphrase
};
KeyState state_of(const std::vector<std::string>& identities);

// "SHA256:..." of the key that the host showed, with its type.
std::string host_key_fingerprint(ssh_session session);

}  // namespace dlrun::launch
