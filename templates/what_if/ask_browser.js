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
    else if (!data.id) reject(new Error(`Python did not load (${data.broken}).`));
    else {
      const { answered, failed } = waiting.get(data.id);
      waiting.delete(data.id);
      if (data.broken) failed(new Error(data.broken));
      else answered(JSON.parse(data.answer));
    }
  };
});

export function ask(question) {
  return called({ question });
}

// The VMs of a file, judged by the rules; the content stays in this browser.
export async function judge(file, question) {
  return called({ question, file: file.name, content: await file.arrayBuffer() });
}

function called(message) {
  last += 1;
  const id = last;
  return new Promise((answered, failed) => {
    waiting.set(id, { answered, failed });
    python.postMessage({ id, ...message });
  });
}
