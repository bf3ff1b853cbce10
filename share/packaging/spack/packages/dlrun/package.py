"""Spack package of dlrun: `spack repo add share/packaging/spack`, then `spack install dlrun`."""
from spack.package import *


class Dlrun(CMakePackage):
    """dlrun launches distributed training jobs: one job file, every scheduler, every MPI."""

    homepage = "https://example.org/dlrun"
    # No release is published yet: `spack dev-build dlrun@main` in a checkout.
    license("Apache-2.0")

    version("main")
    version("0.1.0")

    variant("openmpi", default=True, description="plug-in for trainers over Open MPI")
    variant("mpich", default=False, description="plug-in for trainers over MPICH and its ABI")
    variant("pmix", default=True, description="start Open MPI ranks without mpirun")
    variant("ssh", default=True, description="start agents by ssh")
    variant("cuda", default=False, description="plug-in for NVIDIA GPUs")
    variant("cuda_arch", default="90", values=str, multi=True, when="+cuda", description="GPU generations")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")

    depends_on("cli11@2.1:")
    depends_on("nlohmann-json@3.11:")
    depends_on("fmt@9:")
    depends_on("spdlog@1.10:")
    depends_on("yaml-cpp@0.7:")
    depends_on("tl-expected@1.0:")
    depends_on("libsodium@1.0.18:")
    depends_on("hwloc@2.9:")
    depends_on("elfutils@0.176:")
    depends_on("onednn@2.6:3 cpu_runtime=omp")
    depends_on("zlib-api")
    depends_on("libdeflate@1.14:")
    depends_on("libjpeg-turbo@2.1:")
    depends_on("libpng@1.6:")
    depends_on("xxhash@0.8:")
    depends_on("libssh@0.10:", when="+ssh")
    depends_on("pmix@4:", when="+pmix")
    depends_on("openmpi@4:", when="+openmpi")
    depends_on("mpich@4:", when="+mpich")
    depends_on("cuda@12:", when="+cuda")
    depends_on("cudnn@8.9:", when="+cuda")

    conflicts("+openmpi", when="+mpich", msg="Spack links one MPI; the tarball has both plug-ins")
    conflicts("%gcc@:11", msg="C++20 as g++ 12 has it")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define("BUILD_TESTING", False),
            self.define("CMAKE_INSTALL_LIBDIR", "lib"),
            self.define("DLRUN_openmpi_WRAPPER", self.wrapper("openmpi")),
            self.define("DLRUN_mpich_WRAPPER", self.wrapper("mpich")),
        ]
        if self.spec.satisfies("+cuda"):
            args.append(self.define("DLRUN_NVCC", self.spec["cuda"].prefix.bin.nvcc))
            args.append(self.define("DLRUN_CUDA_ARCHITECTURES", ";".join(self.spec.variants["cuda_arch"].value)))
        else:
            args.append(self.define("DLRUN_NVCC", "OFF"))
        return args

    def wrapper(self, mpi):
        return self.spec[mpi].prefix.bin.mpicc if self.spec.satisfies(f"+{mpi}") else "OFF"
