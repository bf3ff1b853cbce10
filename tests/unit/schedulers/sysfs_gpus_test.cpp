// AMD's and Intel's GPUs from trees as amdkfd, i915 and xe make them, and what their variables leave visible.
#include "schedulers/gpus/sysfs_gpus.hpp"

#include <doctest/doctest.h>

#include "schedulers/gpus/bus_ids.hpp"
#include "schedulers/gpus/vendor_visible.hpp"
#include "tests/unit/folder.hpp"

using namespace dlrun;

namespace {

using Names = std::vector<std::string>;

Environment with(std::vector<std::string> entries) {
  return Environment::from_entries(entries);
}

// A node of the topology; the GPU is at bus c1, device 0.
void add_kfd_node(const test::Folder& machine, int number, const std::string& gpu_id,
                  const std::string& unique) {
  const std::string node = "sys/class/kfd/kfd/topology/nodes/" + std::to_string(number) + "/";
  machine.write(node + "gpu_id", gpu_id + "\n");
  machine.write(node + "properties",
                "cpu_cores_count 0\nsimd_count 440\nlocation_id 49408\ndomain 0\nunique_id " + unique + "\n");
}

void add_card(const test::Folder& machine, int number, const std::string& bus, const std::string& vendor,
              const std::string& device_class) {
  const std::string device = "sys/devices/" + bus + "/";
  machine.write(device + "vendor", vendor + "\n");
  machine.write(device + "class", device_class + "\n");
  const std::string card = "sys/class/drm/card" + std::to_string(number);
  machine.write(card + "/dev", "226:0\n");
  std::filesystem::create_directory_symlink("../../../devices/" + bus, machine.path / card / "device");
}

// Two GPUs of two tiles each, behind a VGA of the board and the graphics of a processor.
void make_intel(const test::Folder& machine) {
  add_card(machine, 0, "0000:02:00.0", "0x1a03", "0x030000");
  add_card(machine, 1, "0000:00:02.0", "0x8086", "0x030000");
  add_card(machine, 2, "0000:9a:00.0", "0x8086", "0x038000");
  add_card(machine, 3, "0000:18:00.0", "0x8086", "0x038000");
  for (const char* tile : {"card2/gt/gt0/id", "card2/gt/gt1/id", "card3/device/tile0/id",
                           "card3/device/tile1/id", "card3-DP-1/status"})
    machine.write(std::string("sys/class/drm/") + tile, "");
}

Names names_of(const std::vector<SysfsGpu>& gpus) {
  Names out;
  for (const SysfsGpu& gpu : gpus) out.push_back(gpu.name);
  return out;
}

}  // namespace

TEST_CASE("AMD's GPUs are the nodes of the topology that have an id, by their number") {
  const test::Folder machine;
  CHECK(sysfs_gpus(machine.path, {}).empty());
  CHECK_FALSE(gpus_of_sysfs(machine.path, {}).names.has_value());
  add_kfd_node(machine, 0, "0", "0");
  for (int node : {2, 10, 4}) add_kfd_node(machine, node, "4321", std::to_string(node));
  machine.write("sys/class/kfd/kfd/topology/nodes/5/gpu_id", "777");  // its properties are denied to us
  const std::vector<SysfsGpu> found = amd_gpus(machine.path);
  CHECK(names_of(found) == Names{"0", "1", "2"});
  CHECK(found[1].uuid == "GPU-0000000000000004");
  CHECK(found[2].uuid == "GPU-000000000000000a");
  CHECK(found[0].pci_bus_id == "0000:c1:00.0");
  const FoundGpus gpus = gpus_of_sysfs(machine.path, {});
  CHECK(gpus.vendor == GpuVendor::amd);
  CHECK(gpus.evidence == "/sys/class/kfd: 3 GPUs");
}

TEST_CASE("Intel's GPUs are its accelerators in the order of the bus, and each tile is one") {
  const test::Folder machine;
  make_intel(machine);
  CHECK(names_of(intel_gpus(machine.path, {})) == Names{"0", "1", "2", "3"});
  CHECK(intel_gpus(machine.path, {})[0].pci_bus_id == "0000:18:00.0");
  CHECK(intel_gpus(machine.path, {})[2].pci_bus_id == "0000:9a:00.0");
  const Environment composite = with({"ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE"});
  CHECK(names_of(intel_gpus(machine.path, composite)) == Names{"0.0", "0.1", "1.0", "1.1"});
  const FoundGpus gpus = gpus_of_sysfs(machine.path, composite);
  CHECK(gpus.vendor == GpuVendor::intel);
  CHECK(usable_gpus(gpus, with({"ZE_AFFINITY_MASK=1"})).names == Names{"1.0", "1.1"});
  CHECK(usable_gpus(gpus, with({"ZE_AFFINITY_MASK=0.1,1.0"})).names == Names{"0.1", "1.0"});
  CHECK(usable_gpus(gpus, with({"ZE_AFFINITY_MASK="})).names == gpus.names);  // Level Zero's rule
  const FoundGpus wrong = usable_gpus(gpus, with({"ZE_AFFINITY_MASK=0,7"}));
  CHECK(wrong.names == Names{"0.0", "0.1"});
  CHECK(wrong.warning == "ZE_AFFINITY_MASK=0,7: '7' is not one of this machine's 4 GPUs");
}

TEST_CASE("ROCm's two lists count one after the other") {
  const FoundGpus eight{
      .names = Names{"0", "1", "2", "3", "4", "5", "6", "7"}, .evidence = {}, .vendor = GpuVendor::amd};
  CHECK(usable_gpus(eight, {}).names == eight.names);
  CHECK(usable_gpus(eight, with({"ROCR_VISIBLE_DEVICES=4,5,6,7"})).names == Names{"4", "5", "6", "7"});
  const FoundGpus both =
      usable_gpus(eight, with({"ROCR_VISIBLE_DEVICES=4,5,6,7", "HIP_VISIBLE_DEVICES=1,0"}));
  CHECK(both.names == Names{"5", "4"});
  CHECK(both.evidence == "ROCR_VISIBLE_DEVICES=4,5,6,7; HIP_VISIBLE_DEVICES=1,0");
  CHECK(usable_gpus(eight, with({"CUDA_VISIBLE_DEVICES=2"})).names == Names{"2"});
  CHECK(usable_gpus(eight, with({"ROCR_VISIBLE_DEVICES="})).names == Names{});
  const FoundGpus wrong = usable_gpus(eight, with({"ROCR_VISIBLE_DEVICES=6,8,1"}));
  CHECK(wrong.names == Names{"6"});
  CHECK(wrong.warning ==
        "ROCR_VISIBLE_DEVICES=6,8,1: entry 2 ('8') is not one of this machine's 8 GPUs; ROCm stops there, 2 "
        "of 3 "
        "entries hidden");
}

TEST_CASE("without a driver's word the variables of one vendor tell, and those of several do not") {
  CHECK(usable_gpus({}, with({"ROCR_VISIBLE_DEVICES=0,1"})).vendor == GpuVendor::amd);
  CHECK(usable_gpus({}, with({"ZE_AFFINITY_MASK=0.0,0.1"})).names == Names{"0.0", "0.1"});
  const FoundGpus all =
      usable_gpus({}, with({"CUDA_VISIBLE_DEVICES=0", "ROCR_VISIBLE_DEVICES=0", "ZE_AFFINITY_MASK=0"}));
  CHECK(all.names == Names{"0"});
  CHECK_FALSE(all.vendor.has_value());
}

TEST_CASE("the place of a GPU on the bus is found by its index, its tile or the beginning of its id") {
  const GpuBusIds places({}, {{"0", "GPU-00a1", "0000:c1:00.0"}, {"0.1", "", "0000:18:00.0"}});
  CHECK(places.of("0") == "0000:c1:00.0");
  CHECK(places.of("GPU-00") == "0000:c1:00.0");
  CHECK(places.of("0.1") == "0000:18:00.0");
  CHECK(places.of("3").empty());
}
