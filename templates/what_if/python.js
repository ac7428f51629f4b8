// A worker with Python (Pyodide) and vnuma's rules, so that the page stays quick while it loads.
import { loadPyodide } from "./runtime/pyodide.mjs";

const ASK = `
import json, sys
sys.path.insert(0, "/vnuma")
from vnuma.checks.what_if import answer
lambda asked: json.dumps(answer(json.loads(asked)))
`;
const JUDGE = `
from vnuma.engine.design_check.dropped_file import judge
lambda path, asked: json.dumps(judge(path, json.loads(asked)))
`;

const loaded = load();
let judge;

async function load() {
  const [pyodide, rules] = await Promise.all([loadPyodide(), bytes("vnuma.zip")]);
  pyodide.unpackArchive(rules, "zip", { extractDir: "/vnuma" });
  const ask = pyodide.runPython(ASK);
  ask("{}");
  return { pyodide, ask };
}

async function bytes(name) {
  const found = await fetch(name);
  if (!found.ok) throw new Error(`${name} is missing`);
  return found.arrayBuffer();
}

// What reads files is loaded with the first one.
async function judged(file, content, question) {
  const { pyodide } = await loaded;
  if (!judge) {
    pyodide.unpackArchive(await bytes("runtime/calamine.whl"), "wheel");
    judge = pyodide.runPython(JUDGE);
    pyodide.FS.mkdir("/dropped");
  }
  const path = `/dropped/${file.replaceAll("/", "_")}`;
  pyodide.FS.writeFile(path, new Uint8Array(content));
  try {
    return judge(path, question);
  } finally {
    pyodide.FS.unlink(path);
  }
}

loaded.then(() => postMessage({ ready: true }), (error) => postMessage({ broken: error.message.slice(0, 200) }));

onmessage = async ({ data: { id, question, file, content } }) => {
  try {
    const { ask } = await loaded;
    const asked = JSON.stringify(question);
    postMessage({ id, answer: file ? await judged(file, content, asked) : ask(asked) });
  } catch (error) {
    postMessage({ id, broken: error.message.trim().split("\n").pop().slice(0, 300) });
  }
};
