// {"image", "engine", "digest"} of the job's container; null where it has none. The digest is what identifies
// the content: the id in a SIF file, the digest that podman has, else the length and time of the image's
// file.
#include <filesystem>

#include "src/base/file.hpp"
#include "src/base/regular_file.hpp"
#include "src/base/strings.hpp"
#include "src/process/command.hpp"
#include "src/record/provenance/facts.hpp"

namespace dlrun::job {
namespace {

namespace fs = std::filesystem;

// The global header of a SIF file: launch line, magic, version, architecture, UUID.
std::string sif_id(const fs::path& image) {
  constexpr std::size_t magic_at = 32, id_at = 48, id_bytes = 16;
  constexpr std::string_view magic = "SIF_MAGIC";
  const auto file = open_regular_file(image);
  if (!file || file->size < id_at + id_bytes) return {};
  std::string header(id_at + id_bytes, '\0');
  if (::pread(file->fd.get(), header.data(), header.size(), 0) != static_cast<ssize_t>(header.size()))
    return {};
  if (header.compare(magic_at, magic.size(), magic) != 0) return {};
  std::string out = "sif:";
  for (const char byte : header.substr(id_at)) out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return out;
}

std::string podman_digest(const std::string& image, const Environment& environment) {
  const auto told = run_command({.argv = {"podman", "image", "inspect", "--format", "{{.Digest}}", image},
                                 .environment = environment,
                                 .limit = Seconds(10)});
  return told && told->status.success() ? std::string(trim(told->out)) : std::string();
}

std::string length_and_time(const fs::path& image) {
  std::error_code problem;
  const auto bytes = fs::file_size(image, problem);
  if (problem) return {};
  const auto when = std::chrono::file_clock::to_sys(fs::last_write_time(image, problem));
  return problem ? std::string()
                 : fmt::format("{} bytes of {}", bytes,
                               format_utc(std::chrono::floor<std::chrono::seconds>(when)));
}

}  // namespace

Json find_container_image(const plan::Plan&, const plan::JobSpec& spec, const Environment& environment) {
  if (!spec.environment.container) return nullptr;
  const auto& [image, engine, mounts] = *spec.environment.container;
  const fs::path file = spec.base_directory / image;
  std::string digest = sif_id(file);
  if (digest.empty() && engine == "podman") digest = podman_digest(image, environment);
  if (digest.empty()) digest = length_and_time(file);
  return {{"image", image}, {"engine", engine}, {"digest", digest.empty() ? Json(nullptr) : Json(digest)}};
}

}  // namespace dlrun::job
