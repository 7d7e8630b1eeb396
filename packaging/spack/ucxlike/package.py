# SPDX-License-Identifier: BSD-3-Clause
from spack.package import *

try:
    from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
except ImportError:
    pass  # Spack before 1.0 has it in spack.package


class Ucxlike(AutotoolsPackage):
    """The UCX interfaces (UCP and UCT) over any libfabric provider, and a libfabric provider over them."""

    # A site sets where it keeps the tree; there is no public address yet.
    homepage = "https://example.org/ucxlike"
    git = "https://example.org/ucxlike.git"

    license("BSD-3-Clause")

    version("main", branch="main")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("nlohmann-json@3.9:", type="build")
    depends_on("googletest@1.12:", type="test")
    depends_on("libfabric@1.17:")
    depends_on("hwloc@2.0:")

    conflicts("%gcc@:11", msg="needs C++20 as gcc 12 has it")

    def autoreconf(self, spec, prefix):
        Executable("./autogen.sh")()

    def setup_run_environment(self, env):
        env.append_path("FI_PROVIDER_PATH", self.prefix.lib.libfabric)

    @property
    def libs(self):
        return find_libraries("libucxlike", root=self.prefix, recursive=True)
