"""The archive's own words: what is in it, how to read it, and how to do the study again."""

from __future__ import annotations

from vnuma.report.model import LoadedRun
from vnuma.report.words import banner, listed


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
| results.csv | the same as one line a figure |
| samples.csv, samples.parquet, columns.md | every timed iteration, and what the columns are |
| tables/ | Table 1 in the paper's layout: CSV, Markdown, LaTeX |
| charts/ | every chart: SVG, PNG, PDF |
| methods.md | how the figures came about, to be quoted |
| study.yml | the study file, as it was run |
| vnuma.db | the run's own store (SQLite), with all settings, boots and facts |
| manifest.json | a checksum (SHA-256) of every file |

The archive names VMs, hosts and the people who changed a VM. It holds no password.
The checksums show damage and careless changes; they do not prove who made the archive.

## To analyse it again

    vnuma import THIS_FILE          # checks it, and says whether the figures come out the same
    vnuma report {run.name}

## To do the study again

    vnuma plan study.yml            # on a VM named as in study.yml: {listed(study.vms)}
    vnuma run study.yml             # same order of cells: the seed ({run.seed}) is in the study

What the machines were like is in report.html under "Configuration", and in vnuma.db (table fact).
"""
