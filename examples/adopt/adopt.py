"""Shared by the ports of this folder: a project's sources, its tests, and the file of results."""
import datetime
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

# pip needs an archive's metadata before it stores it, for which some projects configure their whole
# build; this replaces their build backend meanwhile.
BACKEND = '''
from pathlib import Path


def prepare_metadata_for_build_wheel(folder, config_settings=None):
    place = Path(folder, "{name}-{version}.dist-info")
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n")
    return place.name
'''


class Port:
    """A project of the package index, which is built and tested below target/adopt."""

    def __init__(self, name, sha256, backend):
        self.name, self.sha256, self.backend = name, sha256, backend
        self.here, self.work = HERE / name, ROOT / "target/adopt" / name
        self.requirements = self.here / "requirements.txt"
        self.version = re.search(rf"^#? ?{name}==(.*)$", self.requirements.read_text(), re.M)[1]
        self.source = self.work / f"{name}-{self.version}"
        self.python = self.work / "venv/bin/python"
        self.environment = {**os.environ, "PATH": f"{self.work}/venv/bin:{os.environ['PATH']}"}
        places = sys.argv[1:3] or [ROOT / "target/include", ROOT / "target/lib"]
        self.include, self.lib = (Path(place).resolve() for place in places)

    def run(self, *command, **options):
        options = {"env": self.environment, "check": True, **options}
        return subprocess.run([str(word) for word in command], **options)

    def ask(self, *command, **options):
        return self.run(*command, stdout=subprocess.PIPE, text=True, **options).stdout

    def prepare(self):
        """The virtual environment and the project's sources."""
        if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
            sys.exit(f"make adopt-{self.name} needs Python.h: apt-get install python3-dev")
        self.work.mkdir(parents=True, exist_ok=True)
        pip = [self.python, "-m", "pip", "-q", "--disable-pip-version-check"]
        stamp = self.work / "venv/asked.txt"
        if not stamp.exists() or stamp.read_text() != self.requirements.read_text():
            venv.create(self.work / "venv", with_pip=True, clear=True)
            self.run(*pip, "install", "-r", self.requirements)
            stamp.write_text(self.requirements.read_text())
        archive = self.work / f"{self.name}-{self.version}.tar.gz"
        if not archive.exists():
            stand_in = self.work / "backend" / (self.backend.replace(".", "/") + ".py")
            stand_in.parent.mkdir(parents=True, exist_ok=True)
            stand_in.write_text(BACKEND.format(name=self.name, version=self.version))
            self.run(*pip, "download", "--no-deps", "--no-binary", ":all:", "--no-build-isolation",
                     "-d", self.work, f"{self.name}=={self.version}",
                     env={**self.environment, "PYTHONPATH": str(self.work / "backend")})
        if hashlib.sha256(archive.read_bytes()).hexdigest() != self.sha256:
            sys.exit(f"{archive}: not the archive whose hash is in {self.here}/run.py")
        if not self.source.exists():
            shutil.unpack_archive(archive, self.work / "unpacked")
            (self.work / "unpacked" / self.source.name).rename(self.source)

    def own_tests(self, environment, *tests):
        """The results of the project's tests, as pytest's counts."""
        done = self.run(self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests,
                        env=environment, cwd=self.work, check=False, stdout=subprocess.PIPE,
                        text=True)
        found = re.findall(r"(\d+) (passed|failed|skipped|error)", done.stdout)
        counts = {word: int(n) for n, word in found}
        if done.returncode:
            print(done.stdout)
        return {"passed": 0, "failed": 0, **counts}

    def differential(self, environments):
        """The differences that the folder's differential.py finds between `base` and `ours`."""
        script, answers = self.here / "differential.py", []
        for name, environment in environments.items():
            answers.append(self.work / f"{name}.json")
            answers[-1].write_text(self.ask(self.python, "-B", script, "answers", env=environment))
        return json.loads(self.ask(self.python, "-B", script, "compare", *answers, check=False))

    def versions(self):
        compiler = shlex.split(os.environ.get("CC", "gcc"))
        manifest = (ROOT / "Cargo.toml").read_text()
        return {"date": datetime.date.today().isoformat(), self.name: self.version,
                "dlpack_rs": re.search(r'^version = "(.*)"', manifest, re.M)[1],
                "python": platform.python_version(),
                "compiler": self.ask(*compiler, "--version").splitlines()[0],
                "processor": processor()}

    def finish(self, results, checks):
        """Writes the results, and ends with the counts."""
        text = json.dumps(results, indent=2)
        print(text)
        (self.here / "results.json").write_text(text + "\n")
        failed = len(checks) - sum(checks)
        print(f"adopt-{self.name}: {sum(checks)} passed, {failed} failed")
        sys.exit(failed > 0)


def lines_of_code(text):
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    return sum(bool(line.strip()) for line in text.splitlines())


def processor():
    found = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    return found[1] if found else platform.processor()
