// The versions of what the program has loaded for communication and computation: what a library says of
// itself in its text, else the version in its file's name.
#include <algorithm>
#include <cctype>
#include <filesystem>

#include "src/agent/provenance/facts.hpp"
#include "src/base/regular_file.hpp"

namespace dlrun::agent {
namespace {

namespace fs = std::filesystem;

struct KnownLibrary {
  std::string_view title, file;  // the beginning of the file's name
  std::string_view mark = {};    // stands before the version in the library's text
};
constexpr KnownLibrary kKnown[] = {{"Open MPI", "libmpi.so.40", "Open MPI v"},
                                   {"MPICH library", "libmpich.so"},
                                   {"Intel MPI library", "libmpi.so.12"},
                                   {"PMIx library", "libpmix.so"},
                                   {"libfabric", "libfabric.so"},
                                   {"NCCL", "libnccl.so", "NCCL version "},
                                   {"CUDA runtime", "libcudart.so"},
                                   {"cuDNN", "libcudnn.so"},
                                   {"cuBLAS", "libcublas.so"},
                                   {"oneDNN", "libdnnl.so"},
                                   {"glibc", "libc.so", "stable release version "}};

constexpr std::uint64_t kMaxSearched = std::uint64_t{64} << 20;

std::string version_at(std::string_view text) {
  const auto belongs = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '+';
  };
  std::string out(text.begin(), std::find_if_not(text.begin(), text.end(), belongs));
  while (out.ends_with('.')) out.pop_back();  // the end of a sentence
  return out;
}

// Several places may have the mark: the format that the library prints has no number behind it.
std::string version_in(const std::string& file, std::string_view mark) {
  std::error_code problem;
  if (mark.empty() || fs::file_size(file, problem) > kMaxSearched || problem) return {};
  const auto text = read_regular_file(file);
  if (!text) return {};
  for (std::size_t at = text->find(mark); at != std::string::npos; at = text->find(mark, at + 1)) {
    std::string version = version_at(std::string_view(*text).substr(at + mark.size(), 40));
    if (!version.empty() && std::isdigit(static_cast<unsigned char>(version[0])) != 0) return version;
  }
  return {};
}

// "12.2.2" of libmpich.so.12.2.2
std::string version_of_name(const std::string& name) {
  const std::size_t at = name.find(".so.");
  return at == std::string::npos ? std::string() : name.substr(at + 4);
}

}  // namespace

Json find_versions(const ProgramSeen& program) {
  Json out = Json::object();
  for (const std::string& file : program.libraries) {
    const std::string name = fs::path(file).filename().string();
    for (const KnownLibrary& known : kKnown) {
      if (!name.starts_with(known.file)) continue;
      std::string version = version_in(program.root + file, known.mark);
      if (version.empty()) version = version_of_name(name);
      if (!version.empty()) out[std::string(known.title)] = std::move(version);
    }
  }
  return out;
}

}  // namespace dlrun::agent
