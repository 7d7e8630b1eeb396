# SPDX-License-Identifier: BSD-3-Clause
"""Looks through the recipes whose own tools are not in Debian, and through what configure asks for.

recipes.py TREE spack|conda|container|versions|dependencies|configure: a line for everything that is wrong, status 1 if
there is any, 77 if it cannot be told. The rules are those of the recipes' formats as their manuals have them, as far as
these recipes use them: what is not known here is wrong.
"""
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import types

TREE = sys.argv[1]
problems = []


def wrong(text):
    problems.append(text)


def skip(reason):
    print(reason)
    sys.exit(77)


def read(path):
    with open(os.path.join(TREE, path), encoding="utf-8") as file:
        return file.read()


def modules():
    """What configure looks for by pkg-config: variable, module, version, whether it can do without."""
    pattern = r"PKG_CHECK_MODULES\(\[(\w+)\], \[(\w+) >= ([\d.]+)\](, \[)?"
    return [(m[0], m[1], m[2], bool(m[3])) for m in re.findall(pattern, read("configure.ac"))]


def version():
    return re.search(r"AC_INIT\(\[ucxlike\], \[([^]]+)\]", read("configure.ac"))[1]


def check_shell(where, command):
    """The syntax, and that each program is one of Debian, of the tree or of ours."""
    done = subprocess.run(["bash", "-n", "-c", command], capture_output=True, text=True, check=False)
    if done.returncode:
        wrong(f"{where}: {done.stderr.strip()}")
    for part in re.split(r"&&|\|\||;|\|", command):
        words = [word for word in part.split() if not re.match(r"^\w+=", word)]
        if not words:
            continue
        program, arguments = words[0], words[1:]
        if program.startswith("."):
            name = "configure.ac" if program.endswith("/configure") else program.lstrip("./")
            if not os.path.exists(os.path.join(TREE, name)):
                wrong(f"{where}: {program} is not in the tree")
            check_configure(where, program, arguments)
        elif program not in ("cd", "ucxlike_info", "fi_info") and not shutil.which(
            program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"
        ):
            wrong(f"{where}: there is no program {program}")


def check_configure(where, program, arguments):
    """Options that configure knows: Autoconf's folders, and those of configure.ac."""
    if not program.endswith("/configure"):
        return
    known = {"prefix", "libdir", "bindir", "includedir", "mandir", "docdir"}
    for kind, name in re.findall(r"AC_ARG_(ENABLE|WITH)\(\[([\w-]+)\]", read("configure.ac")):
        known |= {f"enable-{name}", f"disable-{name}"} if kind == "ENABLE" else {f"with-{name}", f"without-{name}"}
    for argument in arguments:
        name = argument.partition("=")[0]
        if name.startswith("--") and name[2:] not in known:
            wrong(f"{where}: configure has no option {name}")


# ---- Spack

DIRECTIVES = {"license", "version", "depends_on", "conflicts", "variant", "provides", "patch", "maintainers"}
METHODS = {"autoreconf", "configure_args", "setup_run_environment", "libs", "headers", "check", "install"}
FROM_SPACK = {"AutotoolsPackage", "Executable", "find_libraries", "find_headers"} | DIRECTIVES
FROM_PYTHON = {"property", "ImportError"}


def spack_calls(body):
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            call = node.value
            texts = [a.value if isinstance(a, ast.Constant) else None for a in call.args]
            named = {k.arg: getattr(k.value, "value", None) for k in call.keywords}
            yield call.func.id, texts, named


def spack():
    try:
        module = ast.parse(read("packaging/spack/ucxlike/package.py"))
    except SyntaxError as error:
        return wrong(f"no Python: {error}")
    classes = [node for node in module.body if isinstance(node, ast.ClassDef)]
    heads = [ast.unparse(ast.ClassDef(c.name, c.bases, [], [ast.Pass()], [])) for c in classes]
    if [head.partition(":")[0] for head in heads] != ["class Ucxlike(AutotoolsPackage)"]:
        return wrong("the package ucxlike is the class Ucxlike(AutotoolsPackage)")
    body = classes[0].body
    if not ast.get_docstring(classes[0]):
        wrong("a package has a description")
    calls = list(spack_calls(body))
    for name in {name for name, _, _ in calls} - DIRECTIVES:
        wrong(f"{name} is no directive")
    for name in {"version", "license"} - {name for name, _, _ in calls}:
        wrong(f"no {name}")
    for name, texts, named in calls:
        if name == "depends_on":
            if not set(str(named.get("type", "build,link")).split(",")) <= {"build", "link", "run", "test"}:
                wrong(f"{texts[0]}: type {named['type']}")
            if not re.match(r"^[a-z][a-z0-9-]*(@[\d.]*:?[\d.]*)?$", texts[0] or ""):
                wrong(f"{texts[0]} is no dependency")
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name not in METHODS:
            wrong(f"AutotoolsPackage calls no {node.name}()")
    spack_names(module)
    for newer in (False, True):
        spack_run(newer)
    for node in ast.walk(module):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            check_configure("package.py", "./configure", node.value.split())
            if node.value.startswith("./") and not os.path.exists(os.path.join(TREE, node.value)):
                wrong(f"{node.value} is not in the tree")


def spack_modules(newer):
    """Stand-ins for the modules that a recipe imports: since Spack 1.0 the build systems are in a repository."""
    calls = []

    class AutotoolsPackage:
        def __init__(self):
            self.prefix = types.SimpleNamespace(lib=types.SimpleNamespace(libfabric="/prefix/lib/libfabric"))

    package = types.ModuleType("spack.package")
    package.Executable = lambda name: lambda *arguments: calls.append(("run", name) + arguments)
    package.find_libraries = lambda name, root, recursive: [name]
    for name in DIRECTIVES:
        setattr(package, name, lambda *texts, name=name, **named: calls.append((name,) + texts))
    modules = {"spack": types.ModuleType("spack"), "spack.package": package}
    if newer:
        for name in ("spack_repo", "spack_repo.builtin", "spack_repo.builtin.build_systems"):
            modules[name] = types.ModuleType(name)
        modules["spack_repo.builtin.build_systems.autotools"] = types.SimpleNamespace(AutotoolsPackage=AutotoolsPackage)
    else:
        package.AutotoolsPackage = AutotoolsPackage
    return modules, calls


def spack_run(newer):
    """The recipe as Spack would load and call it."""
    modules, calls = spack_modules(newer)
    name = "Spack 1.0" if newer else "Spack before 1.0"
    sys.modules.update(modules)
    try:
        scope = {}
        exec(compile(read("packaging/spack/ucxlike/package.py"), "package.py", "exec"), scope)
        package = scope["Ucxlike"]()
        package.autoreconf(None, None)
        environment = types.SimpleNamespace(append_path=lambda *words: calls.append(("append",) + words))
        package.setup_run_environment(environment)
        if package.libs != ["libucxlike"]:
            wrong(f"{name}: libs is {package.libs}")
    except Exception as error:  # of whatever the recipe does
        return wrong(f"{name}: {type(error).__name__}: {error}")
    finally:
        for module in modules:
            del sys.modules[module]
    for call in (("run", "./autogen.sh"), ("append", "FI_PROVIDER_PATH", "/prefix/lib/libfabric")):
        if call not in calls:
            wrong(f"{name}: the recipe did not call {call}")
    return None


def spack_names(module):
    known = FROM_SPACK | FROM_PYTHON
    for node in ast.walk(module):
        if isinstance(node, ast.arg):
            known.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            known.add(node.id)
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and node.id not in known:
            wrong(f"line {node.lineno}: {node.id} is not known")


# ---- conda

CONDA = {
    "package": {"name", "version"},
    "source": {"path"},
    "build": {"number", "script", "skip"},
    "requirements": {"build", "host", "run"},
    "test": {"requires", "commands"},
    "about": {"license", "license_file", "summary"},
}


# Programs that a test of the package may call, and the package that has them.
CONDA_PROGRAMS = {"ucxlike_info": "ucxlike", "fi_info": "libfabric-bin"}


def conda():
    try:
        import jinja2
        import yaml
    except ImportError:
        skip("python3-jinja2 or python3-yaml is not installed")
    # What conda-build gives a recipe, and nothing else.
    given = {"compiler": "compiler-{}".format, "stdlib": "stdlib-{}".format}
    try:
        text = jinja2.Template(read("packaging/conda/meta.yaml"), undefined=jinja2.StrictUndefined).render(given)
        recipe = yaml.safe_load(text)
    except jinja2.TemplateError as error:
        return wrong(f"no template: {error}")
    except yaml.YAMLError as error:
        return wrong(f"no YAML: {error}")
    for name in sorted(CONDA.keys() | recipe.keys()):
        keys = set(recipe.get(name) or {})
        for key in sorted((keys ^ CONDA.get(name, set())) - {"skip"}):
            wrong(f"{name}: {key} is " + ("missing" if key not in keys else "not known"))
    if problems:
        return None
    source = os.path.join(TREE, "packaging/conda", recipe["source"]["path"])
    for name in ("configure.ac", recipe["about"]["license_file"]):
        if not os.path.exists(os.path.join(source, name)):
            wrong(f"source: there is no {name}")
    for command in recipe["build"]["script"] + recipe["test"]["commands"]:
        check_shell("meta.yaml", command)
    for command in recipe["test"]["commands"]:
        for program in re.findall(r"\b(?:ucxlike|fi)_\w+", re.sub(r"\w+=\S+", "", command)):
            package = CONDA_PROGRAMS.get(program, "no package")
            if package not in recipe["test"]["requires"] + ["ucxlike"]:
                wrong(f"test: {program} is in {package}, which is not required")
    for kind, names in recipe["requirements"].items():
        for name in names:
            if not re.match(r"^[a-z][a-z0-9_-]*( >=[\d.]+)?$", name):
                wrong(f"{kind}: {name} is no requirement")
    return None


# ---- container


def instructions(text):
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines():
        name, _, value = line.partition(" ")
        yield name, value.strip()


def installed_by(command):
    packages = []
    for word in command.split()[2:] if command.startswith("apt-get install ") else []:
        if not word.startswith("-"):
            packages.append(word)
        elif word not in ("-y", "--no-install-recommends"):
            wrong(f"apt-get install {word} is not known")
    return packages


def check_packages(names):
    """In one call, which takes a second."""
    if not shutil.which("apt-cache"):
        skip("no Debian: apt-cache is not installed")
    done = subprocess.run(["apt-cache", "show", "g++"] + names, capture_output=True, text=True, check=False)
    found = set(re.findall(r"^Package: (\S+)$", done.stdout, re.M))
    if "g++" not in found:
        skip("no lists of Debian's packages (apt-get update)")
    for name in names:
        if name not in found:
            wrong(f"Debian has no package {name}")


def container():
    text = read("packaging/container/Containerfile")
    packages = []
    stages, base = [], "debian:bookworm"
    for name, value in instructions(text):
        if name == "FROM":
            stages.append(value.partition(" AS ")[2])
            if value.split()[0] != base:
                wrong(f"FROM {value}: the packages are those of {base}")
        elif name == "RUN":
            check_shell("RUN", value)
            for command in re.split(r"\s*&&\s*", value):
                packages += installed_by(command)
        elif name == "COPY":
            stage = re.match(r"--from=(\S+) ", value)
            if stage and stage[1] not in stages[:-1] or len(value.split()) != (3 if stage else 2):
                wrong(f"COPY {value}")
        elif name == "ENV":
            if not all(re.match(r"^\w+=\S+$", word) for word in value.split()):
                wrong(f"ENV {value}")
        elif name == "CMD":
            container_command(value)
        elif name != "WORKDIR" or not value.startswith("/"):
            wrong(f"{name} {value} is not known")
    if not problems:
        check_packages(packages)
    page = read("docs/containers.md")
    options = re.findall(r"--(?:ipc|network|cap-add|ulimit)[= ]\S+", text)
    for option in options:
        if option not in page:
            wrong(f"docs/containers.md does not say what {option} is for")
    if not options:
        wrong("the options that containers need are not named")


def container_command(value):
    try:
        program = json.loads(value)[0]
    except (ValueError, IndexError):
        return wrong(f"CMD {value} is no list")
    if not re.search(rf"^bin_(PROGRAMS|SCRIPTS) \+?= {program}$", read("src/Makefile.inc"), re.M):
        wrong(f"CMD: {program} is not installed")
    return None


# ---- all


def versions():
    found = {
        "packaging/rpm/ucxlike.spec": r"^Version: +(\S+)$",
        "packaging/conda/meta.yaml": r"^  version: (\S+)$",
        "debian/changelog": r"\Aucxlike \(([^-]+)-\d+\)",
        "CHANGELOG.md": r"^## (?:Unreleased \()?([\d.]+)",
    }
    for path, pattern in found.items():
        match = re.search(pattern, read(path), re.M)
        if not match or match[1] != version():
            wrong(f"{path} has version {match and match[1]}, configure.ac {version()}")


# What the modules are called by each recipe.
NAMES = {
    "libfabric": ("pkgconfig(libfabric)", "libfabric-dev", "libfabric", "libfabric-devel"),
    "hwloc": ("pkgconfig(hwloc)", "libhwloc-dev", "hwloc", "libhwloc"),
    "nlohmann_json": ("pkgconfig(nlohmann_json)", "nlohmann-json3-dev", "nlohmann-json", "nlohmann_json"),
    "gtest_main": ("pkgconfig(gtest_main)", "libgtest-dev", "googletest", None),
}


def dependencies():
    recipes = (
        ("packaging/rpm/ucxlike.spec", "BuildRequires:  {} >= {}\n"),
        ("debian/control", "{} (>= {})"),
        ("packaging/spack/ucxlike/package.py", 'depends_on("{}@{}:"'),
        ("packaging/conda/meta.yaml", "- {} >={}\n"),
    )
    for _, module, least, _ in modules():
        for (path, form), name in zip(recipes, NAMES[module]):
            if name and form.format(name, least) not in read(path):
                wrong(f"{path} has no {form.format(name, least).strip()}, which configure asks for")


HEADERS = {"FABRIC": "rdma/", "HWLOC": "hwloc.h", "JSON": "nlohmann/", "GTEST": "gtest/"}


def files(*ends):
    for folder, _, names in os.walk(TREE, followlinks=True):
        folder = os.path.relpath(folder, TREE)
        if folder == "." or folder.split("/")[0] in ("src", "prov", "fabtests-ext", "man", "include", "cmake"):
            for name in names:
                if name.endswith(ends):
                    yield os.path.join(folder, name)


def configure():
    """Everything that configure finds out or lets a user choose has an effect somewhere."""
    text = read("configure.ac")
    makefiles = "".join(read(path) for path in files("Makefile.am", ".inc"))
    made = ("Makefile.in", "config.h.in")
    templates = makefiles + "".join(read(path) for path in files(".in") if not path.endswith(made))
    sources = {path: read(path) for path in files(".cc", ".h", ".c")}
    for variable, module, _, _ in modules():
        if f"$({variable}_LIBS)" not in makefiles and f"$({variable}_CFLAGS)" not in makefiles:
            wrong(f"{module} is looked for and no Makefile uses it")
        if not any(f"<{HEADERS.get(variable, variable.lower())}" in source for source in sources.values()):
            wrong(f"{module} is looked for and no source includes it")
    for name in re.findall(r"AM_CONDITIONAL\(\[(\w+)\]", text):
        if not re.search(rf"^if !?{name}$", makefiles, re.M):
            wrong(f"the conditional {name} is not used")
    for name in re.findall(r"AC_SUBST\(\[(\w+)\]", text):
        uses = (f"$({name})", f"@{name}@") + ((f"{name[:-3]}_",) if name.endswith("dir") else ())
        if not any(use in templates for use in uses):
            wrong(f"the variable {name} is not used")
    for name in re.findall(r"AC_DEFINE\(\[(\w+)\]", text):
        users = [path for path, source in sources.items() if re.search(rf"\b{name}\b", source)]
        for path in users or ["no source"]:
            if '#include "config.h"' not in sources.get(path, ""):
                wrong(f"{name} of config.h: {path} does not see it")
    for name in re.findall(r"AC_ARG_ENABLE\(\[(\w+)\]", text):
        if f"$enable_{name}" not in text:
            wrong(f"--enable-{name} has no effect")


CHECKS = (spack, conda, container, versions, dependencies, configure)
{check.__name__: check for check in CHECKS}[sys.argv[2]]()
if problems:
    print("\n".join(problems))
sys.exit(1 if problems else 0)
