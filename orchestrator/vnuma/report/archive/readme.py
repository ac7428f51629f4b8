"""The archive's README: its content, how to read it, and how to repeat the study."""

from __future__ import annotations

from vnuma.analysis.wording import listed
from vnuma.domain.vm.provenance import banner
from vnuma.report.archive.rerun_guide import LAB_INVENTORY, inventory_name
from vnuma.report.model.model import LoadedRun


def readme(loaded: LoadedRun) -> str:
    """README.md of the archive."""
    run, study = loaded.run, loaded.study
    simulated = banner(loaded.simulated)
    return f"""\
# {run.name}: {study.title or study.name}
{f"{chr(10)}**{simulated}**{chr(10)}" if simulated else ""}
A vNUMA study of {listed(study.vms)}, measured by vnuma {run.product_version}, begun
{run.created_at:%Y-%m-%d %H:%M} UTC, {run.state}. Study file sha256 {loaded.study_sha256}.

| file | what it is |
| --- | --- |
| report.html | the report; needs no network |
| results.json, results.schema.json | every figure, unrounded, and the document's schema |
| results.csv, figures.csv, waits.csv | the comparisons, other figures and waits, one line a value |
| samples.csv, samples.parquet | every iteration, warm-ups included; Parquet only where pyarrow was |
| columns.md | what the columns of those files are, with units |
| tables/ | Table 1 in the paper's layout, other figures and waits by arm: CSV, Markdown, LaTeX |
| charts/ | every chart: SVG, PNG, PDF; a .txt says why one is missing |
| methods.md | how the figures came about, to be quoted |
| study.yml | the study file, as it was run: arms, workload with its T-SQL, design, seed |
| {inventory_name(loaded)} | an inventory for it: where its VMs are reached, without any password |
| versions.json | what it was measured and analysed with: vnuma, driver, ESXi, SQL Server, libraries |
| vnuma.db | the run's own store (SQLite), with all settings, boots and facts |
| manifest.json | a checksum (SHA-256) of every file |

The archive names VMs, hosts and the people who changed a VM. It holds no password.
The checksums show damage and careless changes; they do not prove who made the archive.

## To analyse it again

    vnuma import THIS_FILE          # checks it, analyses it, and says whether the figures are the same
    vnuma report {run.name}         # the page; vnuma results {run.name} --format json: every figure

An imported run takes the next free number if its name is taken; vnuma import says which.

## To do the study again

1. Install vnuma {run.product_version} (versions.json has the rest), and unpack this file into a folder of
   its own: `python -m zipfile -e THIS_FILE FOLDER`
2. {_place(loaded)}
3. In that folder, see what it would change, and for how long:
   `vnuma plan study.yml -i {inventory_name(loaded)}`
4. Run it; the seed in study.yml ({run.seed}) gives the same order of cells:
   `vnuma run study.yml -i {inventory_name(loaded)}`
5. Hold the new run, whose name vnuma run prints, against this one:
   `vnuma compare {run.name} NEW_RUN`

What the machines were like is in report.html under "Configuration", and in vnuma.db (table fact).
"""


def _place(loaded: LoadedRun) -> str:
    """How the reader gets an environment to measure in."""
    if inventory_name(loaded) == LAB_INVENTORY:
        return f"Start the lab that it was measured on: `vnuma lab up {loaded.simulated}`"
    return (
        f"Fill in {inventory_name(loaded)}: it names {listed(loaded.study.vms)} and lacks your addresses, "
        "users and references to passwords"
    )
