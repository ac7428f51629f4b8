// A worker with Python (Pyodide) and vnuma's rules, so that the page stays quick while it loads.
import { loadPyodide } from "./runtime/pyodide.mjs";

const PROGRAM = `
import json, sys
sys.path.insert(0, "/vnuma")
from vnuma.checks.what_if import answer
lambda asked: json.dumps(answer(json.loads(asked)))
`;

async function load() {
  const [pyodide, code] = await Promise.all([loadPyodide(), fetch("vnuma.zip").then((found) => found.arrayBuffer())]);
  pyodide.unpackArchive(code, "zip", { extractDir: "/vnuma" });
  return pyodide.runPython(PROGRAM);
}

const answer = load();
answer.then((ask) => { ask("{}"); postMessage({ ready: true }); }, (error) => postMessage({ broken: error.message.slice(0, 200) }));

onmessage = async ({ data }) => {
  const ask = await answer;
  postMessage({ id: data.id, answer: ask(JSON.stringify(data.question)) });
};
