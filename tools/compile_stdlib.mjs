// node tools/compile_stdlib.mjs FOLDER: compiles the standard library of the Pyodide there, by that Pyodide.
// Its package has source files alone, which every page would compile while it loads.
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const folder = resolve(process.argv[2]);
const library = `${folder}/python_stdlib.zip`;
const { loadPyodide } = await import(pathToFileURL(`${folder}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${folder}/` });
python.FS.writeFile("/source.zip", new Uint8Array(readFileSync(library)));
python.runPython(`
import compileall, pathlib, py_compile, shutil
shutil.unpack_archive("/source.zip", "/source")
unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
if not compileall.compile_dir("/source", quiet=1, legacy=True, stripdir="/source", invalidation_mode=unchecked):
    raise SystemExit("The standard library was not compiled.")
for made in pathlib.Path("/source").rglob("*.pyc"):
    made.with_suffix(".py").unlink()
shutil.make_archive("/compiled", "zip", "/source")
`);
writeFileSync(library, python.FS.readFile("/compiled.zip"));
