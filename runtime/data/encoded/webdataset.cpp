// The format `webdataset`: tar files whose members are grouped by name up to the first dot: NAME.jpg (or
// .jpeg, .png) is the image, NAME.cls its class as a number. Other members are not looked at.
#include <array>
#include <optional>

#include "runtime/data/encoded/container.hpp"
#include "runtime/data/encoded/tar.hpp"
#include "src/base/strings.hpp"
#include "src/base/units.hpp"

namespace dlrun::runtime {
namespace {

struct Group {
  std::string key;
  std::optional<TarMember> image, label;
};

class Groups {
 public:
  Groups(const MappedFile& file, const ContainerSpec& spec, FoundSamples& out)
      : file_(file), spec_(spec), out_(out) {}

  Result<void> take(const TarMember& member) {
    const std::size_t slash = member.name.find_last_of('/') + 1;
    const std::size_t dot = std::min(member.name.find('.', slash), member.name.size());
    const std::string key = member.name.substr(0, dot);
    const std::string ending = lower(member.name.substr(std::min(dot + 1, member.name.size())));
    if (key != now_.key) TRY(end());
    now_.key = key;
    if (ending == "cls") return keep(now_.label, member, "class");
    if (ending == "jpg" || ending == "jpeg" || ending == "png") return keep(now_.image, member, "image");
    return {};
  }

  Result<void> end() {
    const Group group = std::exchange(now_, {});
    if (!group.image && !group.label) return {};
    const std::uint64_t at = group.image ? group.image->header : group.label->header;
    if (!group.image || !group.label)
      return leave_out(damaged_at(
          file_, at,
          fmt::format("sample '{}' has no {}", group.key, group.image ? ".cls" : ".jpg, .jpeg or .png")));
    const auto label = label_of(*group.label);
    if (!label) return leave_out(fail(label.error()));
    if (group.image->size == 0 || group.image->size >= Extent::kWholeFile)
      return leave_out(damaged_at(file_, at, fmt::format("an image of {} bytes", group.image->size)));
    out_.samples.push_back({group.image->offset, static_cast<std::uint32_t>(group.image->size), *label});
    return {};
  }

 private:
  // Which of two would be meant, nobody can say.
  Result<void> keep(std::optional<TarMember>& place, const TarMember& member, const char* what) {
    if (place)
      return leave_out(
          damaged_at(file_, member.header, fmt::format("sample '{}' has a second {}", now_.key, what)));
    place = member;
    return {};
  }

  Result<void> leave_out(tl::unexpected<Error> why) {
    if (spec_.damaged == Damaged::refused) return why;
    out_.dropped.push_back(why.value().text());
    return {};
  }

  Result<std::uint16_t> label_of(const TarMember& member) const {
    const auto bytes = file_.bytes().subspan(member.offset, std::min<std::uint64_t>(member.size, 32));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const auto number = parse_integer(std::string(trim(text)), -2'000'000'000, 2'000'000'000);
    if (!number)
      return damaged_at(file_, member.offset, fmt::format("'{}' is not a class number", member.name));
    auto label = class_of(*number, spec_);
    if (!label) label.error().where = place_in_file(file_.name(), member.offset);
    return label;
  }

  const MappedFile& file_;
  const ContainerSpec& spec_;
  FoundSamples& out_;
  Group now_;
};

Result<void> find_in_tar(const MappedFile& file, const ContainerSpec& spec, FoundSamples& out) {
  Groups groups(file, spec, out);
  auto whole = read_tar(file, [&](const TarMember& member) { return groups.take(member); });
  if (!whole && spec.damaged == Damaged::refused) return whole;
  TRY(groups.end());
  return whole;
}

constexpr Container kTar = {
    .accepts = [](const std::filesystem::path& file) { return file.extension() == ".tar"; },
    .find = find_in_tar,
    .unwrap = nullptr,
    .files = "tar files"};

}  // namespace

DataFormat::Read read_webdataset_section;

Result<std::shared_ptr<const DataSource>> read_webdataset_section(yaml::Fields& data, double train_share) {
  return make_container_source(TRY(read_container_section(data, train_share)), kTar);
}

}  // namespace dlrun::runtime
