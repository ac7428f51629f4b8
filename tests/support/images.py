"""Container images on a machine without a registry: built by buildah, run in namespaces of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.installation import ROOT, dist
from tests.support.made_once import made_once
from tools.fresh import Fresh, NotPossible, hand_through, handed_through, packed_root

BASE = "localhost/base"
EXECUTION_ENVIRONMENT = "localhost/ee"
ANSIBLE_BUILDER = "ansible-builder==3.2.0"
IN_THE_IMAGE = """
set -eu
root=$1 volume=$2 place=$3 user=$4 folder=$5
shift 5
mount --make-rprivate /
ip link set lo up
mount --bind "$root" "$root"
mount --bind "$volume" "$root$place"
mount -o remount,bind,ro "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -t tmpfs tmpfs "$root/dev"
mkdir "$root/dev/shm" "$root/dev/pts"
for device in null zero random urandom; do
    touch "$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx"
cp -p "$root/etc/passwd" "$root/dev/passwd"
mount --bind "$root/dev/passwd" "$root/etc/passwd"
exec chroot --userspec="$user" "$root" /usr/bin/env -i --chdir="$folder" "$@"
"""
"""What a container's runtime does: a read-only root, one volume, a network without any route.

`/etc/passwd` is the container's own, as runtimes make it, and as writable as in the image.
"""


@dataclass(frozen=True)
class Images:
    """The images of one folder, which nothing outside it knows."""

    folder: Path

    def buildah(self, *words: str | Path) -> str:
        """Run buildah in chroot isolation; its output. AssertionError with its last lines."""
        places = (
            "--root",
            self.folder / "store",
            "--runroot",
            self.folder / "run",
            "--storage-driver",
            "vfs",
        )
        command = ["buildah", *map(str, places), *map(str, words)]
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.folder)}
        done = subprocess.run(
            command,
            env={**environment, "BUILDAH_ISOLATION": "chroot"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-4000:]
        return done.stdout.strip()

    def make_base(self) -> None:
        """A Debian that reaches the registries as this machine does. Raises NotPossible."""
        packed = packed_root("bookworm", ("ca-certificates",))
        root = self.folder / "base"
        root.mkdir()
        subprocess.run(["tar", "-C", str(root), "-xf", str(packed)], check=True)
        hand_through(Fresh(root, "root"))
        container = self.buildah("from", "scratch")
        self.buildah("add", "--quiet", container, root, "/")
        for name, value in handed_through().items():
            self.buildah("config", "--env", f"{name}={value}", container)
        self.buildah("commit", "--quiet", container, BASE)
        self.buildah("rm", container)
        shutil.rmtree(root)

    def build(self, tag: str, context: Path, recipe: str, *arguments: str) -> None:
        """Build an image from a folder; `arguments` are NAME=VALUE."""
        words = [word for argument in arguments for word in ("--build-arg", argument)]
        self.buildah("bud", "--network", "host", *words, "-t", tag, "-f", context / recipe, context)

    def config(self, tag: str) -> dict[str, Any]:
        """The image's user, environment and entry point."""
        found: dict[str, Any] = json.loads(self.buildah("inspect", "--type", "image", tag))["OCIv1"]["config"]
        return found

    @contextmanager
    def container(self, tag: str, volume: str) -> Iterator[Container]:
        """The image's files, and an empty volume at `volume`, for the duration of a `with`."""
        name = self.buildah("from", tag)
        root = Path(self.buildah("mount", name))
        with tempfile.TemporaryDirectory(dir=self.folder) as kept:
            Path(kept).chmod(0o777)
            yield Container(root, Path(kept), volume, self.config(tag))
        self.buildah("rm", name)


@dataclass(frozen=True)
class Container:
    """Something to run commands in, each as the image's user, with its root read-only and no network."""

    root: Path
    volume: Path
    place: str
    config: dict[str, Any]
    network: tuple[str, ...] = ("--net",)
    """What gives it a network of its own. Empty: this machine's, as a pod reaches what is around it."""

    def run(self, *words: str, entrypoint: bool = True) -> subprocess.CompletedProcess[str]:
        """The image's entry point with these words; or the words alone."""
        command = self.command(*words, entrypoint=entrypoint)
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def command(self, *words: str, entrypoint: bool = True) -> list[str]:
        """The command that does so."""
        own = self.config["Entrypoint"] if entrypoint else []
        user = f"{self.config['User']}".partition(":")[0] + ":0"
        command = ["unshare", "--mount", "--pid", *self.network, "--ipc", "--fork", "--kill-child"]
        command += ["sh", "-c", IN_THE_IMAGE, "sh", str(self.root), str(self.volume), self.place]
        return [*command, user, str(self.config["WorkingDir"]), *self.config["Env"], *own, *words]

    def megabytes(self) -> int:
        """What the image's files take, unpacked."""
        du = subprocess.run(["du", "-sxm", str(self.root)], capture_output=True, text=True, check=True)
        return int(du.stdout.split()[0])


def made_images(factory: pytest.TempPathFactory) -> Images:
    """Images of all tests, with a base that a registry would have. Skips the test where none can be built."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("buildah", "mmdebstrap"))):
        pytest.skip("images are built by root, with buildah and mmdebstrap")
    try:
        return Images(made_once(factory, "images", lambda folder: Images(folder).make_base()))
    except NotPossible as error:
        pytest.skip(str(error))


def made_context(factory: pytest.TempPathFactory) -> Path:
    """What a build reads of the checkout after `make dist`."""
    return made_once(factory, "context", partial(_fill, made_once(factory, "built", dist)))


def _fill(built: Path, folder: Path) -> None:
    for name in ("Containerfile", ".containerignore", "execution-environment.yml", "requirements.lock"):
        shutil.copy(ROOT / name, folder)
    (folder / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "odbc.lock", folder / "tools")
    shutil.copytree(built, folder / "dist")


def made_execution_environment(factory: pytest.TempPathFactory) -> Images:
    """The same images, with `EXECUTION_ENVIRONMENT` as ansible-builder writes its recipe."""
    images = made_images(factory)
    made_once(factory, "builder", partial(_build_environment, images, made_context(factory)))
    return images


def _build_environment(images: Images, context: Path, folder: Path) -> None:
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", ANSIBLE_BUILDER]
    subprocess.run(pip, check=True)
    command = [str(folder / "bin" / "ansible-builder"), "create", "--output-filename", "Containerfile"]
    subprocess.run(command, cwd=context, check=True, capture_output=True)
    recipe = context / "context"
    images.build(EXECUTION_ENVIRONMENT, recipe, "Containerfile", f"EE_BASE_IMAGE={BASE}")
