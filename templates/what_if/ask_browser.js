// The question is answered by vnuma's own Python in this browser: nothing leaves it.
const waiting = new Map();
let last = 0;
let python;

export const ready = new Promise((resolve, reject) => {
  if (typeof WebAssembly !== "object") {
    reject(new Error("This page needs WebAssembly, which this browser does not have or does not allow."));
    return;
  }
  python = new Worker(new URL("python.js", import.meta.url), { type: "module" });
  python.onerror = () => reject(new Error("Python did not load: this copy of the page may lack it. Load it again, or use vnuma serve."));
  python.onmessage = ({ data }) => {
    if (data.ready) resolve();
    else if (data.broken) reject(new Error(`Python did not load (${data.broken}).`));
    else {
      waiting.get(data.id)(JSON.parse(data.answer));
      waiting.delete(data.id);
    }
  };
});

export function ask(question) {
  last += 1;
  const id = last;
  return new Promise((resolve) => {
    waiting.set(id, resolve);
    python.postMessage({ id, question });
  });
}
